// Tests which operands of a kernel are not in the caches, given all arrays that a run reads and writes, and which
// operands the run computes.
#include <gmock/gmock.h>

#include "ir/text/program_text.h"
#include "lowering/pipeline/lower.h"

namespace hoist::cold_arrays_test {

using testing::ElementsAre;
using testing::IsEmpty;

// Two matmuls with weights of one megabyte and of half a megabyte.
LoweredModel two_products(const Profile& profile) {
  auto program = parse_program(
      "program version 21\ninput %x : [8][512]f32\ninput %v : [512][512]f32\ninput %w : [512][256]f32\n"
      "define %y : [8][512]f32 = MatMul(%x, %v) from \"first\"\n"
      "define %z : [8][256]f32 = MatMul(%y, %w) from \"second\"\noutput %z\n");
  HOIST_CHECK(program.ok(), program.errors()[0].text());
  std::erase_if(program->inputs, [](const auto& input) { return input.first != "x"; });
  for (const char* name : {"v", "w"}) {
    Tensor weights(Scalar::f32, {512, *name == 'v' ? 512 : 256});
    for (int64_t i = 0; i < weights.size(); ++i)
      weights.set_float(i, static_cast<double>(i % 5) - (*name == 'v' ? 2 : 1));
    program->constants.emplace(name, std::move(weights));
  }
  auto model = lower_model(std::move(*program), {}, profile);
  HOIST_CHECK(model.ok(), model.errors()[0].text());
  return std::move(*model);
}

// The names of the step's arrays whose parameters are in this list of its kernel.
std::vector<std::string> arrays_in(std::vector<std::string> LoweredKernel::*list, const LoweredModel& model,
                                   size_t step) {
  const PlanStep& s = model.steps[step];
  const LoweredKernel& kernel = model.kernels[static_cast<size_t>(s.kernel)];
  std::vector<std::string> out;
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    if (std::count((kernel.*list).begin(), (kernel.*list).end(), kernel.parameters[i]->name) != 0)
      out.push_back(model.arrays[static_cast<size_t>(s.arguments[i])].name);
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::string> cold_of(const LoweredModel& model, size_t step) {
  return arrays_in(&LoweredKernel::cold, model, step);
}

TEST(ComputedArrays, AreWhatOtherStepsWrite) {
  const LoweredModel model = two_products(Profile{});
  ASSERT_EQ(model.steps.size(), 2U);
  EXPECT_THAT(arrays_in(&LoweredKernel::computed, model, 0), IsEmpty());
  EXPECT_THAT(arrays_in(&LoweredKernel::computed, model, 1), ElementsAre("y"));
}

TEST(ColdArrays, WeightsOfARunThatTheCachesDoNotHold) {
  Profile profile;
  profile.second_caches = 1 << 20;
  const LoweredModel model = two_products(profile);
  ASSERT_EQ(model.steps.size(), 2U);
  EXPECT_THAT(cold_of(model, 0), ElementsAre("v", "x"));
  EXPECT_THAT(cold_of(model, 1), ElementsAre("w"));  // the first step has just written the other operand
}

TEST(ColdArrays, NoneWhereTheRunStaysInTheCaches) {
  const LoweredModel model = two_products(Profile{});
  for (size_t i = 0; i < model.steps.size(); ++i) EXPECT_THAT(cold_of(model, i), IsEmpty());
}

TEST(ColdArrays, WhatAStepHasJustWrittenWhereItIsTooLarge) {
  Profile profile;
  profile.second_caches = 1 << 10;
  EXPECT_THAT(cold_of(two_products(profile), 1), ElementsAre("w", "y"));
}

TEST(ColdArrays, GpusHaveNone) {
  Profile profile;
  profile.gpu = true;
  profile.second_caches = 1 << 10;
  const LoweredModel model = two_products(profile);
  for (size_t i = 0; i < model.steps.size(); ++i) EXPECT_THAT(cold_of(model, i), IsEmpty());
}

}  // namespace hoist::cold_arrays_test
