// Tests models that are lowered for a range of sizes: the kernels of each size compute what the model computes.
#include "lowering/sizes/open_model.h"

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
    "size n from 1 to 300\n"
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

// Inputs besides x are constants.
Program program_of(const std::string& text, int64_t n) {
  auto open = parse_program(text);
  HOIST_CHECK(open.ok(), open.errors()[0].text());
  auto program = with_sizes(*open, {{"n", n}});
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

// The model for one size: extents that are the largest size become it.
LoweredModel instance(const LoweredModel& open, int64_t n) {
  LoweredModel out = open;
  const std::map<std::string, Nat> size = {{"n", n}};
  const auto resized = [&](std::vector<int64_t>& extents) {
    std::replace(extents.begin(), extents.end(), open.open_sizes[0].most, n);
  };
  for (size_t i = 0; i < out.arrays.size(); ++i) {
    for (size_t d = 0; d < out.arrays[i].shape.size(); ++d)
      out.arrays[i].shape[d] = open.open_shapes[i][d].substitute(size).value();
  }
  for (LoweredKernel& kernel : out.kernels) {
    auto term = with_sizes(kernel.open, {{"n", n}});
    HOIST_CHECK(term.ok(), term.errors()[0].text());
    kernel.expression = *term;
    resized(kernel.region.array);
    resized(kernel.region.shape);
  }
  return out;
}

TEST(OpenModel, ComputesTheModelAtEverySize) {
  const auto open = lowered(perceptron, 1, 300);
  ASSERT_TRUE(open.ok()) << open.errors()[0].text();
  EXPECT_EQ(open->open_sizes, (std::vector<PlanSize>{{"n", 1, 300}}));
  for (const int64_t n : {1, 2, 5, 7, 16, 33, 64, 150, 299, 300}) {
    const Program program = program_of(perceptron, n);
    const Bindings inputs = {{"x", seeded_tensor(Scalar::f32, {n, 20}, 7, 0, -2, 2)}};
    const Bindings expected = values_of(program, inputs), found = outputs_of(instance(*open, n), inputs);
    for (const char* output : {"y", "s"})
      EXPECT_TRUE(close(found.at(output), expected.at(output), 1e-4)) << output << " at " << n;
  }
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
  // A constant of n elements.
  constexpr char positions[] =
      "program %positions version 17\n"
      "size n from 1 to 300\n"
      "input %x : [n][20]f32\n"
      "input %c : [n][20]f32\n"
      "define %y : [n][20]f32 = Add(%x, %c) from \"positions\"\n"
      "output %y\n";
  EXPECT_THAT(error(lowered(positions, 1, 300)), HasSubstr("has a constant that depends on the size: c"));
}

}  // namespace hoist::open_model_test
