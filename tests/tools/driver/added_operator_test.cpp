// Tests an operator that one row of text adds, under a budget on the first device: its rules are measured as kernels,
// and the chosen model compiles and replays. Without a device: tests/neural_rules/added_operator_test.cpp.
#include <gtest/gtest.h>

#include "backends/opencl/device.h"
#include "ir/base/seeded.h"
#include "ir/operators/definitions/operator_text.h"
#include "ir/text/program_text.h"
#include "neural_rules/choice/choose.h"
#include "tools/inspection/derivation.h"
#include "tools/study/device_models.h"

namespace hoist::added_operator_test {

using operators::ScopedOperators;

constexpr char waves[] =
    "program version 21\n"
    "input %x : [16][8]f32\n"
    "constant %v : [8][2]f32 = {1, -2, 3, 1, -0.5, 0.25, 0.5, 1, 1, -1, 2, -2, 0.5, 0.5, -0.25, 0.75}\n"
    "constant %w : [2][3]f32 = {1, -2, 3, 0.5, 0.25, -1}\n"
    "define %p : [16][2]f32 = MatMul(%x, %v) from \"first\"\n"
    "define %g : [16][2]f32 = Wave(%p) from \"wave\"\n"
    "define %y : [16][3]f32 = MatMul(%g, %w) from \"second\"\n"
    "output %y\n";

Samples seeded_samples(uint64_t seed) {
  Samples out;
  for (out.count = 0; out.count < 4; ++out.count)
    out.runs.push_back({seeded_tensor(Scalar::f32, {16, 8}, seed + static_cast<uint64_t>(out.count), 0, -1, 1)});
  return out;
}

TEST(AddedOperatorOnADevice, IsChosenForUnderABudget) {
  const ScopedOperators added("operator Wave since 1 (x : floats; depth = 0.5) = each x. depth * tanh(x) + x * x");
  auto read = parse_program(waves);
  ASSERT_TRUE(read.ok()) << read.errors()[0].text();
  auto program = prepared_program(std::move(*read));
  ASSERT_TRUE(program.ok());
  auto device = find_device("");
  ASSERT_TRUE(device.ok()) << device.errors()[0].text();
  PrepareOptions prepare;
  prepare.profile = profile_of(*device);

  // Times of such small kernels are noise, so the preferences select the formula for tanh. Drivers take a third of a
  // second per kernel, so other sites have one rule each.
  ChooseOptions options;
  options.budget = *parse_budget("sqnr=20dB");
  options.timing_seconds = 1;
  options.sensitivity.preferences =
      *parse_preferences("pin wave tanh-rational-5\nprefer * w8\nprefer * f16\n", "wishes");
  auto found = choose(*program, seeded_samples(1), seeded_samples(100), prepare_on_device(prepare), options);
  ASSERT_TRUE(found.ok()) << found.errors()[0].text();
  EXPECT_TRUE(found->study.budget_met);
  ASSERT_EQ(found->chosen.count("function wave"), 1U);
  EXPECT_EQ(found->chosen.at("function wave"), "tanh-rational-5");
  ASSERT_TRUE(scale_channels(*program, found->factors).ok());
  auto rewritten = rewrite(*program, found->chosen, found->statistics);
  ASSERT_TRUE(rewritten.ok()) << rewritten.errors()[0].text();
  auto lowered = lower_rewritten(*rewritten, {}, prepare.profile);
  ASSERT_TRUE(lowered.ok()) << lowered.errors()[0].text();
  auto from = derived(lowered->derivation, prepare.profile);
  ASSERT_TRUE(from.ok());
  bool approximated = false;
  auto replayed = replay(from->derivation, from->options, [&](const ReplayedStep& seen) {
    approximated |= seen.step.rule == "tanh-rational-5" && seen.layer == "wave";
  });
  ASSERT_TRUE(replayed.ok()) << replayed.errors()[0].text();
  EXPECT_TRUE(approximated);
  for (size_t i = 0; i < lowered->groups.size(); ++i)
    EXPECT_EQ(replayed->program.definitions[i].expression, lowered->groups[i].low);
}

}  // namespace hoist::added_operator_test
