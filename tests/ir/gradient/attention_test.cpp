// The loss attention-transfer: its maps and its value by the formulas, and its gradients against central differences.
#include "ir/gradient/training/attention.h"

#include <gmock/gmock.h>

#include <cmath>

#include "ir/gradient/losses.h"
#include "tests/ir/gradient/program_gradients.h"

namespace hoist::gradients {
namespace attention_test {

using testing::ElementsAre;
using testing::HasSubstr;

// Two values of 2x2 positions, of which the second counts, and one of 1x1, which has no map.
constexpr char model[] =
    "constant %x : [2][2][2][2]f64 = {1, -2, 0.5, 3, 2, 1, -1, 0.25, 0, 0, 0, 0, 0, 0, 0, 0}\n"
    "constant %w : [2][2][1][1]f64 = {0.5, -1, 2, 0.25}\n"
    "define %c : [2][2][2][2]f64 = Conv(%x, %w)\n"
    "define %a : [2][2][2][2]f64 = Abs(%c)\n"
    "define %p : [2][2][1][1]f64 = GlobalAveragePool(%a)\n"
    "define %y : [2][2]f64 = Flatten(%p; axis = 1)\noutput %y\n";

TEST(Attention, IsTheMeanOfSquaresOverTheChannels) {
  Program p = program(model);
  const auto name = add_attention(p, "y");
  ASSERT_TRUE(name.ok()) << name.errors()[0].text();
  const Bindings values = values_of(p, {});
  const Tensor &both = values.at(*name), &a = values.at("a"), &y = values.at("y");
  ASSERT_THAT(both.shape(), ElementsAre(2, 6));
  double length = 0, squares[4];
  for (int64_t k = 0; k < 4; ++k) {
    squares[k] = (std::pow(a.float_at(k), 2) + std::pow(a.float_at(4 + k), 2)) / 2;
    length += squares[k] * squares[k];
  }
  for (int64_t c = 0; c < 2; ++c) EXPECT_EQ(both.float_at(c), y.float_at(c));
  for (int64_t k = 0; k < 4; ++k) {
    EXPECT_NEAR(both.float_at(2 + k), squares[k] / std::sqrt(length) / 2, 1e-12);
    EXPECT_EQ(both.float_at(8 + k), 0) << "an image of zeros";
  }
}

TEST(Attention, MovesMapsTowardsTheTeachers) {
  Program p = program(model);
  const auto name = add_attention(p, "y");
  ASSERT_TRUE(name.ok());
  const Tensor value = values_of(p, {}).at(*name);
  const auto loss = add_loss(p, *name, "attention-transfer:2,1");
  ASSERT_TRUE(loss.ok()) << loss.errors()[0].text();
  const std::string teacher = p.inputs.back().first;
  EXPECT_NEAR(values_of(p, {{teacher, value}}).at(*loss).float_at(0), 0, 1e-12);
  Tensor other = value;
  other.set_float(3, value.float_at(3) + 0.125);
  other.set_float(8, -0.25);
  EXPECT_NEAR(values_of(p, {{teacher, other}}).at(*loss).float_at(0),
              1000 * (std::pow(0.125, 2) + std::pow(0.25, 2)) / 2, 1e-9);
  p.constants.emplace("teacher_value", other);
  for (Definition& d : p.definitions)
    d.expression = substitute_parameters(d.expression, {{teacher, parameter("teacher_value", type_of(other))}});
  p.inputs.clear();
  p.outputs = {*loss};
  expect_gradients(p, {*loss, false, {"w"}});
}

TEST(Attention, NeedsImagesAndLogits) {
  Program flat = program("input %x : [2][3]f32\ndefine %y : [2][3]f32 = Relu(%x)\noutput %y\n");
  EXPECT_THAT(add_attention(flat, "y").errors()[0].text(), HasSubstr("depends on no images"));
  Program image = program(model);
  EXPECT_THAT(add_attention(image, "p").errors()[0].text(), HasSubstr("is no array of [samples][classes]"));
  EXPECT_FALSE(add_loss(flat, "y", "attention-transfer").ok());
}

}  // namespace attention_test
}  // namespace hoist::gradients
