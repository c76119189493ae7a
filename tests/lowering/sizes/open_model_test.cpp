// Tests models that are lowered for a range of sizes: the kernels of each size compute what the model computes.
#include "lowering/sizes/open_model.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "ir/base/seeded.h"
#include "ir/program/sizes.h"
#include "ir/target/starter_profiles.h"
#include "ir/text/program_text.h"
#include "tests/lowering/stored_run.h"

namespace hoist::open_model_test {

using testing::HasSubstr;

// A perceptron over n rows, with a normalisation of each row.
constexpr char perceptron[] =
    "program %perceptron version 17\n"
    "input %x : [n][20]f32\n"
    "input %b : [48]f32\n"
    "input %w : [20][48]f32\n"
    "input %v : [48][9]f32\n"
    "define %p : [n][48]f32 = MatMul(%x, %w) from \"product\"\n"
    "define %q : [n][48]f32 = Add(%p, %b) from \"bias\"\n"
    "define %r : [n][48]f32 = Relu(%q) from \"relu\"\n"
    "define %y : [n][9]f32 = MatMul(%r, %v) from \"last\"\n"
    "define %s : [n][48]f32 = Softmax(%r; axis = 1) from \"softmax\"\n"
    "output %y\n"
    "output %s\n";

// Attention of two heads over n rows, with a mask and a table of positions, and the mean of its rows.
constexpr char attention[] =
    "program %attention version 17\n"
    "input %x : [2][n][16]f32\n"
    "input %positions : [n][16]f32\n"
    "input %w : [16][16]f32\n"
    "define %h : [2][n][16]f32 = Add(%x, %positions) from \"positions\"\n"
    "define %q : [2][n][16]f32 = MatMul(%h, %w) from \"queries\"\n"
    "define %k : [2][16][n]f32 = Transpose(%h; perm = [0, 2, 1]) from \"keys\"\n"
    "define %p : [2][n][n]f32 = MatMul(%q, %k) from \"scores\"\n"
    "define %s : [2][n][n]f32 = Softmax(%p; axis = 2) from \"softmax\"\n"
    "define %y : [2][n][16]f32 = MatMul(%s, %h) from \"values\"\n"
    "define %m : [2][16]f32 = ReduceMean(%y; axes = [1], keepdims = 0) from \"mean\"\n"
    "output %y\n"
    "output %m\n";

// Inputs besides x are constants.
Program program_of(std::string text, int64_t n) {
  const std::string extent = "[n]";
  for (size_t i = text.find(extent); i != std::string::npos; i = text.find(extent, i))
    text.replace(i, extent.size(), fmt::format("[{}]", n));
  auto program = parse_program(text);
  HOIST_CHECK(program.ok(), program.errors()[0].text());
  for (size_t i = 1; i < program->inputs.size(); ++i) {
    const auto& [name, type] = program->inputs[i];
    program->constants[name] = seeded_tensor(leaf_of(type)->scalar, shape_of(type), i, 0, -1, 1);
  }
  program->inputs.resize(1);
  return *program;
}

Result<LoweredModel> lowered(const std::string& text, int64_t least, int64_t most) {
  return lower_open([&](int64_t n) -> Result<Program> { return program_of(text, n); }, {"n", least, most}, {},
                    find_starter_profile("cpu-avx2")->profile);
}

// The model for one size: extents of values that are the largest size become it.
LoweredModel instance(const LoweredModel& open, int64_t n) {
  LoweredModel out = open;
  const std::map<std::string, Nat> size = {{"n", n}};
  for (size_t i = 0; i < out.arrays.size(); ++i) {
    for (size_t d = 0; d < out.arrays[i].shape.size(); ++d)
      out.arrays[i].shape[d] = open.open_shapes[i][d].substitute(size).value();
  }
  for (LoweredKernel& kernel : out.kernels) {
    auto term = with_sizes(kernel.open, {{"n", n}});
    HOIST_CHECK(term.ok(), term.errors()[0].text());
    kernel.expression = *term;
    std::replace(kernel.region.shape.begin(), kernel.region.shape.end(), open.open_sizes[0].most, n);
  }
  for (size_t i = 0; i < out.steps.size(); ++i) {
    const PlanStep& step = out.steps[i];
    Region& region = out.kernels[static_cast<size_t>(step.kernel)].region;
    region.array = out.arrays[static_cast<size_t>(step.arguments.back())].shape;
    int64_t& padding = out.program.storage.at(out.groups[i].value).vector_padding;
    if (padding > 0) padding = region.array.back() - region.before.back() - region.shape.back();
  }
  return out;
}

// The outputs of the kernels are the model's at these sizes; `shape` is that of x.
void expect_right(const LoweredModel& open, const std::string& text, const std::vector<int64_t>& sizes,
                  const std::vector<std::string>& outputs, std::vector<int64_t> (*shape)(int64_t n)) {
  for (const int64_t n : sizes) {
    const Program program = program_of(text, n);
    const Bindings inputs = {{"x", seeded_tensor(Scalar::f32, shape(n), 7, 0, -2, 2)}};
    const Bindings expected = values_of(program, inputs), found = outputs_of(instance(open, n), inputs);
    for (const std::string& output : outputs)
      EXPECT_TRUE(close(found.at(output), expected.at(output), 1e-4)) << output << " at " << n;
  }
}

TEST(OpenModel, ComputesTheModelAtEverySize) {
  const auto open = lowered(perceptron, 1, 300);
  ASSERT_TRUE(open.ok()) << open.errors()[0].text();
  EXPECT_EQ(open->open_sizes, (std::vector<PlanSize>{{"n", 1, 300}}));
  expect_right(*open, perceptron, {1, 2, 5, 7, 16, 33, 64, 150, 299, 300}, {"y", "s"}, [](int64_t n) {
    return std::vector<int64_t>{n, 20};
  });
}

TEST(OpenModel, ComputesAttentionAtEverySize) {
  const auto open = lowered(attention, 1, 300);
  ASSERT_TRUE(open.ok()) << open.errors()[0].text();
  expect_right(*open, attention, {1, 2, 15, 16, 17, 64, 131, 299, 300}, {"y", "m"}, [](int64_t n) {
    return std::vector<int64_t>{2, n, 16};
  });
}

TEST(OpenModel, HasTheNumbersOfTheLargestSize) {
  const auto open = lowered(perceptron, 1, 300);
  ASSERT_TRUE(open.ok()) << open.errors()[0].text();
  for (size_t i = 0; i < open->arrays.size(); ++i) {
    for (size_t d = 0; d < open->arrays[i].shape.size(); ++d)
      EXPECT_EQ(open->open_shapes[i][d].substitute({{"n", 300}}), Nat(open->arrays[i].shape[d]))
          << open->arrays[i].name;
  }
  for (const LoweredKernel& kernel : open->kernels)
    EXPECT_EQ(kernel.expression, *with_sizes(kernel.open, {{"n", 300}}));
}

TEST(OpenModel, RefusesWhatAFixedSizeAllowsAlone) {
  const auto error = [](const Result<LoweredModel>& model) {
    return model.ok() ? "no error" : model.errors()[0].text();
  };
  EXPECT_THAT(error(lowered(perceptron, 1, 12)), HasSubstr("--dim n: the range 1 to 12 is too small"));
  // Its rows of n elements are no parts of longer ones.
  constexpr char table[] =
      "program %table version 17\n"
      "input %x : [20][n]f32\n"
      "input %c : [20][n]f32\n"
      "define %y : [20][n]f32 = Add(%x, %c) from \"table\"\n"
      "output %y\n";
  EXPECT_THAT(error(lowered(table, 1, 300)),
              HasSubstr("has a constant that depends on the size: c, and not as a part"));
}

TEST(OpenModel, NamesTheLayerThatDividesTheSize) {
  const auto strided = [](int64_t n) -> Result<Program> {
    auto program = parse_program(
        fmt::format("program %strided version 17\n"
                    "input %x : [1][3][32][{}]f32\n"
                    "input %w : [16][3][3][3]f32\n"
                    "define %y : [1][16][16][{}]f32 = Conv(%x, %w; pads = [1, 1, 1, 1], strides = [2, 2]) from "
                    "\"halves\"\n"
                    "output %y\n",
                    n, (n + 1) / 2));
    HOIST_CHECK(program.ok(), program.errors()[0].text());
    program->constants["w"] = seeded_tensor(Scalar::f32, {16, 3, 3, 3}, 1, 0, -1, 1);
    program->inputs.resize(1);
    return *program;
  };
  const auto open = lower_open(strided, {"n", 16, 300}, {}, find_starter_profile("cpu-avx2")->profile);
  ASSERT_FALSE(open.ok());
  EXPECT_THAT(open.errors()[0].text(), HasSubstr("layer halves: makes "));
}

}  // namespace hoist::open_model_test
