// Models in two parts: both together give the model's values, and values that are no cut are refused.
#include "ir/gradient/training/trunk.h"

#include <gmock/gmock.h>

#include "ir/program/program_values.h"
#include "tests/ir/gradient/program_gradients.h"

namespace hoist::gradients::trunk_test {

using testing::HasSubstr;

constexpr char layers[] =
    "input %x : [2][3]f64\nconstant %w : [3][2]f64 = {0.5, -1, 2, 0.25, 1, -2}\n"
    "define %h : [2][2]f64 = MatMul(%x, %w)\ndefine %r : [2][2]f64 = Relu(%h)\ndefine %y : [2][2]f64 = Exp(%r)\n"
    "define %s : [2][3]f64 = Relu(%x)\ndefine %t : [2][3]f64 = Add(%s, %x)\noutput %y\noutput %t\n";

TEST(Trunk, AndHeadAreTheModel) {
  const Program whole = program(layers);
  const auto parts = split_model(whole, "r", "y");
  ASSERT_TRUE(parts.ok()) << parts.errors()[0].text();
  EXPECT_EQ(parts->trunk.definitions.size(), 2u);
  EXPECT_EQ(parts->head.definitions.size(), 1u);
  EXPECT_TRUE(parts->head.constants.empty());
  const Tensor x = Tensor::of<double>(Scalar::f64, {2, 3}, {1, -2, 0.5, 3, 0, -1});
  const auto all = program_outputs(whole, std::vector<Tensor>{x});
  const auto between = program_outputs(parts->trunk, std::vector<Tensor>{x});
  ASSERT_TRUE(all.ok() && between.ok());
  const auto last = program_outputs(parts->head, *between);
  ASSERT_TRUE(last.ok());
  EXPECT_EQ((*all)[0], (*last)[0]);
}

TEST(Trunk, EndsAtACut) {
  const auto problem = [](const std::string& value, const std::string& judged) {
    const auto parts = split_model(program(layers), value, judged);
    return parts.ok() ? std::string("none") : parts.errors()[0].text();
  };
  EXPECT_THAT(problem("q", "y"), HasSubstr("q: is no value of the model"));
  EXPECT_THAT(problem("x", "y"), HasSubstr("x: is computed by no layer"));
  EXPECT_THAT(problem("w", "y"), HasSubstr("w: is computed by no layer"));
  EXPECT_THAT(problem("s", "y"), HasSubstr("y: does not depend on s"));
  EXPECT_THAT(problem("s", "t"), HasSubstr("t: depends on the input x also without s"));
}

}  // namespace hoist::gradients::trunk_test
