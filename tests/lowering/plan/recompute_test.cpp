// Values that are computed again: the memory between layers, the bits of the results, and the derivation.
#include "lowering/plan/recompute.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "ir/base/seeded.h"
#include "ir/text/program_text.h"
#include "lowering/pipeline/lower.h"
#include "lowering/pipeline/replay.h"
#include "tests/lowering/stored_run.h"

namespace hoist::recompute_test {

using testing::HasSubstr;

Result<LoweredModel> lowered(const std::string& text, int64_t memory) {
  auto program = parse_program(text);
  HOIST_CHECK(program.ok(), program.errors()[0].text());
  LowerOptions options;
  options.memory = memory;
  return lower_model(std::move(*program), options, {});
}

// The arena and the arrays with a border.
int64_t memory_of(const LoweredModel& model) {
  int64_t out = model.arena_bytes;
  for (const PlanArray& array : model.arrays) {
    if (array.place == Place::cleared) out += byte_size(array.scalar, array.shape);
  }
  return out;
}

// The same outputs, bit for bit, and a derivation that leads to the same terms.
void expect_same(const LoweredModel& model, const LoweredModel& limited) {
  Bindings inputs;
  uint32_t number = 0;
  for (const auto& [name, type] : model.program.inputs)
    inputs.emplace(name, seeded_tensor(leaf_of(type)->scalar, shape_of(type), 7, number++, -1, 1));
  const Bindings expected = outputs_of(model, inputs), found = outputs_of(limited, inputs);
  for (const auto& [name, tensor] : expected) EXPECT_TRUE(same_bits(found.at(name), tensor)) << name;
  const auto derivation = parse_derivation(print_derivation(limited.derivation));
  ASSERT_TRUE(derivation.ok()) << derivation.errors()[0].text();
  const auto replayed = replay(*derivation, {});
  ASSERT_TRUE(replayed.ok()) << replayed.errors()[0].text();
  ASSERT_EQ(replayed->program.definitions.size(), limited.groups.size());
  for (size_t i = 0; i < limited.groups.size(); ++i)
    EXPECT_EQ(replayed->program.definitions[i].expression, limited.groups[i].low) << limited.groups[i].value;
}

// Products down and up again, each read by the one at its height.
std::string products(int height) {
  std::string inputs = "input %d0 : [64][64]f32\n", definitions;
  for (int i = 1; i <= height; ++i) {
    inputs += fmt::format("input %w{} : [64][64]f32\n", i);
    definitions += fmt::format("define %d{} : [64][64]f32 = MatMul(%d{}, %w{}) from \"down{}\"\n", i, i - 1, i, i);
  }
  std::string last = fmt::format("d{}", height);
  for (int i = height - 1; i >= 1; --i) {
    definitions += fmt::format("define %u{} : [64][64]f32 = MatMul(%d{}, %{}) from \"up{}\"\n", i, i, last, i);
    last = fmt::format("u{}", i);
  }
  return "program %ladder version 21\n" + inputs + definitions + "output %" + last + "\n";
}

TEST(Recompute, FreesMemoryAndKeepsBits) {
  constexpr int64_t array = 64 * 64 * 4;
  const auto model = lowered(products(8), 0), limited = lowered(products(8), 5 * array);
  ASSERT_TRUE(model.ok() && limited.ok()) << (limited.ok() ? "" : limited.errors()[0].text());
  EXPECT_GE(memory_of(*model), 8 * array);
  EXPECT_LE(memory_of(*limited), 5 * array);
  EXPECT_FALSE(recomputations(limited->program, limited->derivation.steps).empty());
  EXPECT_EQ(limited->kernels.size(), model->kernels.size()) << "a copy has the kernel of its original";
  expect_same(*model, *limited);
}

TEST(Recompute, ChangesNothingThatFits) {
  const auto model = lowered(products(4), 0), limited = lowered(products(4), 1 << 20);
  ASSERT_TRUE(model.ok() && limited.ok());
  EXPECT_TRUE(recomputations(limited->program, limited->derivation.steps).empty());
  EXPECT_EQ(limited->steps.size(), model->steps.size());
}

TEST(Recompute, SaysHowMuchIsNeeded) {
  const auto limited = lowered(products(8), 4096);
  ASSERT_FALSE(limited.ok());
  EXPECT_THAT(limited.errors()[0].text(), HasSubstr("bytes between layers even if values are computed again"));
}

// Filters whose images have a border: these arrays are outside of the arena.
TEST(Recompute, ArraysWithABorderTakeTurns) {
  std::string text = "program %chain version 21\ninput %c0 : [1][16][12][12]f32\n", definitions;
  for (int i = 1; i <= 5; ++i) {
    text += fmt::format("input %w{} : [16][16][3][3]f32\n", i);
    definitions += fmt::format(
        "define %c{} : [1][16][12][12]f32 = Conv(%c{}, %w{}; pads = [1, 1, 1, 1]) from \"c{}\"\n", i, i - 1, i, i);
  }
  text += definitions + "output %c5\n";
  const auto model = lowered(text, 0);
  ASSERT_TRUE(model.ok()) << model.errors()[0].text();
  const int64_t all = memory_of(*model);
  const auto limited = lowered(text, all * 2 / 3);
  ASSERT_TRUE(limited.ok()) << limited.errors()[0].text();
  EXPECT_LE(memory_of(*limited), all * 2 / 3);
  EXPECT_TRUE(recomputations(limited->program, limited->derivation.steps).empty()) << "turns alone are enough";
  expect_same(*model, *limited);
}

TEST(Recompute, WrongStepsAreFound) {
  const auto limited = lowered(products(8), 5 * 64 * 64 * 4);
  ASSERT_TRUE(limited.ok());
  const auto with = [&](const std::function<void(ProgramStep&)>& change) {
    ProgramDerivation derivation = limited->derivation;
    for (ProgramStep& step : derivation.steps) {
      if (step.rule != "recompute") continue;
      change(step);
      const auto replayed = replay(derivation, {});
      return replayed.ok() ? std::string("no fault") : replayed.errors()[0].text();
    }
    return std::string("no step");
  };
  EXPECT_THAT(with([](ProgramStep& s) { s.parameters["before"] = "d1"; }), HasSubstr("no later definition"));
  EXPECT_THAT(with([](ProgramStep& s) { s.parameters["copy"] = "d2"; }), HasSubstr("no new copy"));
  EXPECT_THAT(with([](ProgramStep& s) { s.parameters["operand0"] = "d2"; }), HasSubstr("the value d2 is not"));
  EXPECT_THAT(with([](ProgramStep& s) { s.parameters = {{"array", "d1"}}; }), HasSubstr("has another form"));
}

}  // namespace hoist::recompute_test
