// The work of backward passes: no more than 2.5 times that of the forward pass, for convolutions, products and
// encoders.
#include <gtest/gtest.h>

#include <filesystem>

#include "frontend/frontend.h"
#include "ir/gradient/gradient.h"
#include "ir/text/program_text.h"
#include "lowering/cost/work.h"
#include "lowering/graph/program.h"
#include "lowering/tiling/contractions.h"

namespace hoist::gradient_work_test {

int64_t work_of(const Program& program) {
  int64_t sum = 0;
  for (const Definition& d : program.definitions) sum += executed_work(d.expression).arithmetic();
  return sum;
}

// The work of the backward pass by the work of the forward pass, for the gradients of all weights.
double relative_work(const Program& program, const std::string& loss) {
  auto both = gradient(program, {loss, true, weights_of(program, loss)});
  EXPECT_TRUE(both.ok()) << both.errors()[0].text();
  if (!both.ok()) return 0;
  const auto forward = static_cast<double>(work_of(program));
  return (static_cast<double>(work_of(*both)) - forward) / forward;
}

Program model(const std::string& name) {
  const auto read = read_model(std::filesystem::path(HOIST_SOURCE_DIR) / "models" / name, {});
  EXPECT_TRUE(read.ok());
  return *read;
}

TEST(GradientWork, OfModelsIsAtMostTwoAndAHalfTimesTheForwardPass) {
  for (const char* name : {"digits_fully_connected.onnx", "digits_residual.onnx", "digits_attention.onnx"}) {
    const double relative = relative_work(model(name), "logits");
    EXPECT_GT(relative, 0.5) << name;
    EXPECT_LE(relative, 2.5) << name;
  }
}

// Filters with and without strides, poolings and activations.
Program convolutions() {
  return *parse_program_without_values(R"(program %p version 21
input %x : [2][3][32][32]f32
constant %w1 : [16][3][3][3]f32 = #0123456789abcdef
constant %w2 : [32][16][3][3]f32 = #0123456789abcdef
constant %w3 : [32][32][5][5]f32 = #0123456789abcdef
constant %w4 : [64][32][1][1]f32 = #0123456789abcdef
define %c1 : [2][16][32][32]f32 = Conv(%x, %w1; pads = [1, 1, 1, 1])
define %r1 : [2][16][32][32]f32 = Relu(%c1)
define %c2 : [2][32][16][16]f32 = Conv(%r1, %w2; pads = [1, 1, 1, 1], strides = [2, 2])
define %r2 : [2][32][16][16]f32 = Relu(%c2)
define %c3 : [2][32][16][16]f32 = Conv(%r2, %w3; pads = [2, 2, 2, 2])
define %m : [2][32][8][8]f32 = MaxPool(%c3; kernel_shape = [2, 2], strides = [2, 2])
define %c4 : [2][64][4][4]f32 = Conv(%m, %w4; strides = [2, 2])
define %y : [2][64][1][1]f32 = GlobalAveragePool(%c4)
output %y
)");
}

TEST(GradientWork, OfConvolutionsIsAtMostTwoAndAHalfTimesTheForwardPass) {
  const double relative = relative_work(convolutions(), "y");
  EXPECT_GT(relative, 1.5);
  EXPECT_LE(relative, 2.5);
}

// Strategies tile the products that give the gradients of filters: their columns are the last dimension.
TEST(GradientWork, OfFiltersIsAProduct) {
  const Program program = convolutions();
  auto both = gradient(program, {"y", true, weights_of(program, "y")});
  ASSERT_TRUE(both.ok());
  int products = 0;
  for (Definition& d : both->definitions) {
    if (d.value.find(".gradient.part") == std::string::npos || d.value[0] != 'w') continue;
    describe_definition(d);
    ASSERT_EQ(d.weights.size(), 1) << d.value;
    EXPECT_TRUE(is_product(d) && !d.channels_first) << d.value;
    EXPECT_EQ(shape_of(d.expression->type).back(), d.weights[0].extents[d.weights[0].output_dimension]) << d.value;
    ++products;
  }
  EXPECT_EQ(products, 4);
}

}  // namespace hoist::gradient_work_test
