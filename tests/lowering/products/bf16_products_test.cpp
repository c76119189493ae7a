// Tests bf16 contractions on processors with bf16 matrix instructions: which ones use tiles, which stay unchanged, and
// that sums equal the interpreter's.
#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "ir/language/tensor.h"
#include "ir/properties/properties.h"
#include "ir/text/program_text.h"
#include "ir/text/text.h"
#include "lowering/pipeline/lower.h"
#include "tests/lowering/stored_run.h"
#include "tests/support/lower_model.h"

namespace hoist::bf16_products_test {

using Ints = std::vector<int64_t>;

std::string type_of(const Ints& shape, const std::string& scalar) {
  std::string out;
  for (int64_t extent : shape) out += "[" + std::to_string(extent) + "]";
  return out + scalar;
}

// A contraction of x and w, both cast to bf16 and back, whose results are cast to bf16 unless they are the model's.
struct Case {
  Ints input = {2, 32, 14, 14}, weights = {48, 32, 3, 3}, result = {2, 48, 14, 14};
  std::string call = "Conv(%wide, %w_wide; pads = [1, 1, 1, 1])";
  bool output = false;

  std::string text() const {
    // Small values: f32 holds their sums in any order.
    std::string numbers;
    for (int64_t i = 0; i < element_count(weights); ++i)
      numbers += (i == 0 ? "" : ", ") + std::to_string((i * 7) % 11 - 5);
    std::string out = "program version 21\ninput %x : " + type_of(input, "f32") +
                      "\nconstant %w : " + type_of(weights, "bf16") + " = {" + numbers + "}\n" +
                      "define %short : " + type_of(input, "bf16") + " = Cast(%x; to = 16) from \"narrow\"\n" +
                      "define %wide : " + type_of(input, "f32") + " = Cast(%short; to = 1) from \"widen\"\n" +
                      "define %w_wide : " + type_of(weights, "f32") + " = Cast(%w; to = 1) from \"widen\"\n" +
                      "define %y : " + type_of(result, "f32") + " = " + call + " from \"product\"\n";
    if (!output) out += "define %z : " + type_of(result, "bf16") + " = Cast(%y; to = 16) from \"result\"\n";
    return out + "output " + (output ? "%y" : "%z") + "\n";
  }
};

LoweredModel lowered(const Case& c, int64_t matrix_tile = 16, bool strict = false) {
  auto program = parse_program(c.text());
  HOIST_CHECK(program.ok(), program.errors()[0].text());
  Profile profile;
  profile.matrix_tile = matrix_tile;
  LowerOptions options;
  options.strict = strict;
  options.convolution = ConvolutionForm::stencil;
  auto model = lower_model(std::move(*program), options, profile);
  HOIST_CHECK(model.ok(), model.errors()[0].text());
  return std::move(*model);
}

// True if some kernel has rows of matrices; each of these must have the pair sums of an instruction.
bool in_tiles(const LoweredModel& model) {
  bool any = false;
  for (const LoweredGroup& group : model.groups) {
    const bool rows = any_node(group.low, [](Expr n) { return n->pattern == Pattern::map && n->mode == Mode::matrix; });
    const bool sums = any_node(group.low, [](Expr n) { return n->pattern == Pattern::fold && n->mode == Mode::vec; });
    EXPECT_EQ(rows, sums) << print(group.low);
    any |= rows;
  }
  return any;
}

void expect_same_results(const Case& c, const LoweredModel& model) {
  Tensor x(Scalar::f32, c.input);
  for (int64_t i = 0; i < x.size(); ++i) x.set_float(i, static_cast<double>((i * 37) % 17) - 8);
  const Bindings low = outputs_of(model, {{"x", x}}), high = outputs_of(model, {{"x", x}}, false);
  ASSERT_EQ(low.size(), 1U);
  EXPECT_TRUE(same_bits(low.begin()->second, high.begin()->second));
}

TEST(Bf16Products, StandInTilesOfMatrixInstructions) {
  const Case cases[] = {
      {},
      {.output = true},
      {.input = {1, 64, 9, 16}, .weights = {20, 64, 1, 1}, .result = {1, 20, 9, 16}, .call = "Conv(%wide, %w_wide)"},
      {.input = {1, 8, 40}, .weights = {16, 8, 5}, .result = {1, 16, 36}, .call = "Conv(%wide, %w_wide)"},
      {.input = {3, 14, 64}, .weights = {64, 40}, .result = {3, 14, 40}, .call = "MatMul(%wide, %w_wide)"},
      {.input = {32, 24}, .weights = {24, 33}, .result = {32, 33}, .call = "Gemm(%wide, %w_wide; alpha = 0.5)"},
      {.input = {32, 24}, .weights = {33, 24}, .result = {32, 33}, .call = "Gemm(%wide, %w_wide; transB = 1)"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.call + " to " + type_of(c.result, ""));
    const LoweredModel model = lowered(c);
    EXPECT_TRUE(in_tiles(model));
    expect_same_results(c, model);
  }
}

TEST(Bf16Products, StayInF32ElsewhereAndWhereEveryBitIsKept) {
  for (const LoweredModel& model : {lowered({}, 0), lowered({}, 16, true)}) {
    EXPECT_FALSE(in_tiles(model));
    EXPECT_EQ(model.program.constants.begin()->second.scalar(), Scalar::f32);
    expect_same_results({}, model);
  }
}

// One row, channels that fill no whole words, one channel, and rows that fill no whole bands.
TEST(Bf16Products, WithoutRowsOrWordsStandInNoTiles) {
  const Case cases[] = {
      {.input = {1, 64}, .weights = {64, 40}, .result = {1, 40}, .call = "MatMul(%wide, %w_wide)"},
      {.input = {1, 3, 16, 16}, .weights = {16, 3, 1, 1}, .result = {1, 16, 16, 16}, .call = "Conv(%wide, %w_wide)"},
      {.input = {1, 32, 16, 17}, .weights = {16, 32, 1, 1}, .result = {1, 16, 16, 17}, .call = "Conv(%wide, %w_wide)"},
      {.input = {1, 32, 16, 16},
       .weights = {32, 1, 3, 3},
       .result = {1, 32, 14, 14},
       .call = "Conv(%wide, %w_wide; group = 32)"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.call);
    const LoweredModel model = lowered(c);
    EXPECT_FALSE(in_tiles(model));
    expect_same_results(c, model);
  }
}

}  // namespace hoist::bf16_products_test
