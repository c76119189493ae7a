// Tests kernels whose rows stay in the cache of a core: attention in the forms of exporters is one kernel with the same
// numbers as its layers.
#include "lowering/tiling/row_blocks.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "ir/text/program_text.h"
#include "ir/text/text.h"
#include "lowering/pipeline/lower.h"
#include "tests/lowering/stored_run.h"
#include "tests/support/lower_model.h"

namespace hoist::row_blocks_test {

// Every array is larger than the first cache, so that its size decides nothing.
Profile small_cache(int64_t vector_width = 4) {
  Profile profile;
  profile.vector_width = vector_width;
  profile.vector_registers = 16;
  profile.first_cache = 64;
  return profile;
}

Program attention(const std::string& text) {
  auto program = parse_program("program version 21\n" + text + "output %o\n");
  HOIST_CHECK(program.ok(), program.errors()[0].text());
  return std::move(*program);
}

LoweredModel lowered(const std::string& text, const Profile& profile, const LowerOptions& options = {}) {
  auto model = lower_model(attention(text), options, profile);
  HOIST_CHECK(model.ok(), model.errors()[0].text());
  return std::move(*model);
}

// Numbers of both signs with a small mean.
Bindings inputs_of(const Program& program) {
  Bindings out;
  for (const auto& [name, type] : program.inputs) {
    Tensor x(leaf_of(type)->scalar, shape_of(type));
    for (int64_t i = 0; i < x.size(); ++i) {
      const int64_t number = (i * 7919 + static_cast<int64_t>(name.size() + name[0]) * 104729) % 257;
      if (is_float(x.scalar()))
        x.set_float(i, static_cast<double>(number) / 64 - 2);
      else
        x.set_integer(i, number % 3 == 0 ? 0 : 1);
    }
    out.emplace(name, std::move(x));
  }
  return out;
}

const LoweredGroup* group_of(const LoweredModel& model, const std::string& value) {
  for (const LoweredGroup& group : model.groups) {
    if (group.value == value) return &group;
  }
  return nullptr;
}

// The value in the middle of these definitions lies in no array.
bool is_one_kernel(const LoweredModel& model) {
  const LoweredGroup* group = group_of(model, "o");
  HOIST_CHECK(group != nullptr, "the result has a kernel");
  const std::vector<std::string>& layers = group->layers;
  const auto has = [&](const char* layer) { return std::find(layers.begin(), layers.end(), layer) != layers.end(); };
  return has("scores") && has("softmax") && has("values");
}

struct Case {
  const char* name;
  std::string text;
};

const std::string values = "define %o : [2][3][21][10]f32 = MatMul(%p, %v) from \"values\"\n";
const std::string operands =
    "input %q : [2][3][21][10]f32\ninput %k : [2][3][10][19]f32\ninput %v : [2][3][19][10]f32\n";
const std::string scores = "define %s : [2][3][21][19]f32 = MatMul(%q, %k) from \"scores\"\n";
const std::string softmax = "define %p : [2][3][21][19]f32 = Softmax(%t; axis = -1) from \"softmax\"\n";
const std::string scaled =
    operands + "constant %c : f32 = {0.25}\n" + scores + "define %t : [2][3][21][19]f32 = Mul(%s, %c) from \"scale\"\n";

std::vector<Case> cases() {
  const auto masked = [](const std::string& type) {
    return operands + "input %m : " + type + "\n" + scores +
           "define %t : [2][3][21][19]f32 = Add(%s, %m) from \"mask\"\n" + softmax + values;
  };
  return {
      {"scaled after", scaled + softmax + values},
      {"divided", operands + "constant %c : f32 = {4}\n" + scores +
                      "define %t : [2][3][21][19]f32 = Div(%s, %c) from \"scale\"\n" + softmax + values},
      {"scaled before", operands + "constant %c : f32 = {0.25}\n" +
                            "define %r : [2][3][21][10]f32 = Mul(%q, %c) from \"scale\"\n" +
                            "define %t : [2][3][21][19]f32 = MatMul(%r, %k) from \"scores\"\n" + softmax + values},
      {"mask of keys", masked("[2][1][1][19]f32")},
      {"mask of queries and keys", masked("[21][19]f32")},
      {"mask of every score", masked("[2][3][21][19]f32")},
      {"selected", operands + "input %m : [1][1][21][19]bool\nconstant %low : f32 = {-1e30}\n" + scores +
                       "define %t : [2][3][21][19]f32 = Where(%m, %s, %low) from \"mask\"\n" + softmax + values},
      {"transposed keys",
       "input %q : [2][3][21][10]f32\ninput %l : [2][3][19][10]f32\ninput %v : [2][3][19][10]f32\n"
       "define %k : [2][3][10][19]f32 = Transpose(%l; perm = [0, 1, 3, 2]) from \"transposed\"\n"
       "define %t : [2][3][21][19]f32 = MatMul(%q, %k) from \"scores\"\n" +
           softmax + values},
      {"written out", scaled +
                          "define %b : [2][3][21][1]f32 = ReduceMax(%t; axes = [-1]) from \"largest\"\n"
                          "define %d : [2][3][21][19]f32 = Sub(%t, %b) from \"difference\"\n"
                          "define %e : [2][3][21][19]f32 = Exp(%d) from \"exponentials\"\n"
                          "define %n : [2][3][21][1]f32 = ReduceSum(%e; axes = [-1]) from \"sum\"\n"
                          "define %p : [2][3][21][19]f32 = Div(%e, %n) from \"softmax\"\n" +
                          values},
      {"masks of windows", operands + "input %m : [1][2][1][21][19]f32\n" + scores +
                               "define %w : [1][2][3][21][19]f32 = Reshape(%s; shape = [1, 2, 3, 21, 19]) from \"w\"\n"
                               "define %a : [1][2][3][21][19]f32 = Add(%w, %m) from \"mask\"\n"
                               "define %t : [2][3][21][19]f32 = Reshape(%a; shape = [2, 3, 21, 19]) from \"t\"\n" +
                               softmax + values},
      {"three dimensions",
       "input %q : [5][21][10]f32\ninput %k : [5][10][19]f32\ninput %v : [5][19][10]f32\n"
       "define %s : [5][21][19]f32 = MatMul(%q, %k) from \"scores\"\n"
       "define %p : [5][21][19]f32 = Softmax(%s; axis = -1) from \"softmax\"\n"
       "define %o : [5][21][10]f32 = MatMul(%p, %v) from \"values\"\n"},
      {"one head",
       "input %q : [21][10]f32\ninput %k : [10][19]f32\ninput %v : [19][10]f32\n"
       "define %s : [21][19]f32 = MatMul(%q, %k) from \"scores\"\n"
       "define %p : [21][19]f32 = Softmax(%s; axis = -1) from \"softmax\"\n"
       "define %o : [21][10]f32 = MatMul(%p, %v) from \"values\"\n"},
      {"grouped heads",
       "input %q : [1][4][24][16]f32\ninput %l : [1][2][32][16]f32\ninput %w : [1][2][32][16]f32\n"
       "define %l5 : [1][2][1][32][16]f32 = Reshape(%l; shape = [1, 2, 1, 32, 16]) from \"l5\"\n"
       "define %le : [1][2][2][32][16]f32 = Expand(%l5; shape = [1, 2, 2, 32, 16]) from \"le\"\n"
       "define %lr : [1][4][32][16]f32 = Reshape(%le; shape = [1, 4, 32, 16]) from \"lr\"\n"
       "define %k : [1][4][16][32]f32 = Transpose(%lr; perm = [0, 1, 3, 2]) from \"k\"\n"
       "define %w5 : [1][2][1][32][16]f32 = Reshape(%w; shape = [1, 2, 1, 32, 16]) from \"w5\"\n"
       "define %we : [1][2][2][32][16]f32 = Expand(%w5; shape = [1, 2, 2, 32, 16]) from \"we\"\n"
       "define %v : [1][4][32][16]f32 = Reshape(%we; shape = [1, 4, 32, 16]) from \"v\"\n"
       "define %s : [1][4][24][32]f32 = MatMul(%q, %k) from \"scores\"\n"
       "define %p : [1][4][24][32]f32 = Softmax(%s; axis = -1) from \"softmax\"\n"
       "define %o : [1][4][24][16]f32 = MatMul(%p, %v) from \"values\"\n"},
  };
}

TEST(RowBlocks, AttentionIsOneKernelWithTheSameNumbers) {
  for (const Case& each : cases()) {
    SCOPED_TRACE(each.name);
    const LoweredModel model = lowered(each.text, small_cache());
    EXPECT_TRUE(is_one_kernel(model));
    const Program program = attention(each.text);
    const Bindings inputs = inputs_of(program);
    const Tensor expected = values_of(program, inputs).at("o");
    EXPECT_TRUE(close(outputs_of(model, inputs, false).at("o"), expected, 1e-5)) << "before the strategy";
    EXPECT_TRUE(close(outputs_of(model, inputs).at("o"), expected, 1e-5)) << print(group_of(model, "o")->low);
  }
}

TEST(RowBlocks, StrictKernelsKeepEveryBit) {
  for (const Case& each : cases()) {
    SCOPED_TRACE(each.name);
    LowerOptions options;
    options.strict = true;
    const LoweredModel model = lowered(each.text, small_cache(), options);
    const Program program = attention(each.text);
    const Bindings inputs = inputs_of(program);
    EXPECT_TRUE(is_one_kernel(model));
    EXPECT_TRUE(same_bits(outputs_of(model, inputs).at("o"), values_of(program, inputs).at("o")));
  }
}

TEST(RowBlocks, SmallArraysAndConstantWeightsKeepTheirKernels) {
  Profile large = small_cache();
  large.first_cache = 1 << 20;
  EXPECT_FALSE(is_one_kernel(lowered(scaled + softmax + values, large)));
  Profile gpu;
  gpu.gpu = true;
  EXPECT_FALSE(is_one_kernel(lowered(scaled + softmax + values, gpu)));
  std::string weights;
  for (int i = 0; i < 190; ++i) weights += (i == 0 ? "" : ", ") + std::to_string(i % 7);
  EXPECT_FALSE(is_one_kernel(lowered("input %q : [2][3][21][10]f32\nconstant %k : [10][19]f32 = {" + weights +
                                         "}\ninput %v : [2][3][19][10]f32\n"
                                         "define %t : [2][3][21][19]f32 = MatMul(%q, %k) from \"scores\"\n" +
                                         softmax + values,
                                     small_cache())));
}

// Scores that are an output or that two layers read keep their array, and then the rest of attention has the kernels
// that it has without blocks.
TEST(RowBlocks, ScoresThatAreReadElsewhereKeepTheirArray) {
  const LoweredModel model =
      lowered(scaled + softmax + values + "define %u : [2][3][21][19]f32 = Relu(%t) from \"other\"\noutput %u\n",
              small_cache());
  const std::vector<std::string>& layers = group_of(model, "o")->layers;
  EXPECT_EQ(std::count(layers.begin(), layers.end(), "scores"), 0);
  EXPECT_EQ(std::count(layers.begin(), layers.end(), "softmax"), 0);
}

TEST(RowBlocks, BlocksFitIntoTheCache) {
  const Profile profile = small_cache();
  // Rows of scores and of exponentials, in vectors of four; both products of heads of 64 elements.
  const auto rows = [&](int64_t words) {
    const int64_t columns = (words + 3) / 4 * 4;
    return rows_of_block(words, 2 * 4 * columns, {{columns, 64}, {64, words}}, profile);
  };
  EXPECT_LE(rows(1500) * 2 * 4 * 1500, 256 << 10);
  EXPECT_GE(rows(1500), 16);
  EXPECT_LE((197 + rows(197) - 1) / rows(197) * rows(197), 210) << "the last block is about as long as the others";
  EXPECT_EQ(rows(7), 7);
  Profile with_first_cache = profile;
  with_first_cache.first_cache = 32 << 10;
  const auto of_windows = [&](int64_t words) {
    return rows_of_block(words, 2 * 4 * words, {{words, 32}, {32, words}}, with_first_cache);
  };
  EXPECT_LE(of_windows(64) * 2 * 4 * 64, 16 << 10) << "half of the first cache";
  EXPECT_EQ(of_windows(49), 49) << "no two equal blocks";
  EXPECT_FALSE(gains_by_blocks(4096, 64 << 10, 1 << 30, profile)) << "four rows reuse no operands";
  EXPECT_FALSE(gains_by_blocks(1, 1024, 1 << 20, profile)) << "one word";
}

}  // namespace hoist::row_blocks_test
