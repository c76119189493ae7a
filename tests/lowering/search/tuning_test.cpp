// Tests knobs in place of estimates: for any record, kernels compute the same values and derivations replay.
#include "lowering/search/tuning.h"

#include <gmock/gmock.h>

#include <random>
#include <set>
#include <string>

#include "ir/text/text.h"
#include "lowering/cost/winograd.h"
#include "lowering/pipeline/replay.h"
#include "tests/lowering/random_graphs.h"
#include "tests/lowering/stored_run.h"
#include "tests/support/lower_model.h"

namespace hoist::tuning_test {

using testing::HasSubstr;
using testing::Not;

Expr term(const std::string& text) {
  auto parsed = parse(text);
  HOIST_CHECK(parsed.ok(), parsed.errors()[0].text());
  return *parsed;
}

TEST(Tuning, ATaskIsATermWhateverItsParametersAreCalled) {
  const TuningTask a = tuning_task(term("%a : [8][16]f32 |> map (map (\\v. v + 1))"));
  EXPECT_EQ(a, tuning_task(term("%other2 : [8][16]f32 |> map (map (\\v. v + 1))")));
  EXPECT_EQ(a.numbers, (std::vector<int64_t>{8, 16, 1}));
  const TuningTask larger = tuning_task(term("%a : [32][16]f32 |> map (map (\\v. v + 1))"));
  EXPECT_EQ(larger.structure, a.structure);
  EXPECT_EQ(larger.numbers, (std::vector<int64_t>{32, 16, 1}));
  EXPECT_NE(tuning_task(term("%a : [8][16]f16 |> map (map (\\v. v + 1))")).structure, a.structure);
  EXPECT_NE(tuning_task(term("%a : [8][16]f32 |> map (map (\\v. v * 1))")).structure, a.structure);
}

Profile profile_of(uint64_t seed) {
  Profile profile;
  profile.gpu = seed % 3 == 0;
  profile.vector_width = profile.gpu ? 1 : seed % 2 == 0 ? 8 : 16;
  profile.vector_registers = profile.gpu ? 255 : 16;
  profile.local_memory = 49152;
  return profile;
}

// A random legal point for every tile of a model.
std::map<TuningTask, KnobValues> drawn_knobs(const LoweredModel& model, const Profile& profile,
                                             std::mt19937_64& random) {
  std::map<TuningTask, KnobValues> out;
  for (const LoweredGroup& group : model.groups) {
    const auto results = model.tiled.find(group.value);
    if (results == model.tiled.end()) continue;
    const KnobSpace space = tile_knobs(results->second, profile);
    const std::vector<Point> points = every_point(space);
    HOIST_CHECK(!points.empty(), "a tile without a point");
    EXPECT_TRUE(point_with(space, knobs_of(choose_tile(results->second, profile))).has_value());
    out[tuning_task(group.high)] = values_of(space, points[random() % points.size()]);
  }
  return out;
}

TEST(Tuning, EveryTileComputesTheSameAndReplays) {
  size_t tuned_kernels = 0;
  std::set<std::string> orders;  // orders of loops over work-groups
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const RandomGraph graph = random_graph(random);
    const Profile profile = profile_of(seed);
    auto usual = lower_model(graph.graph, {}, profile);
    ASSERT_TRUE(usual.ok()) << usual.errors()[0].text();
    const auto knobs = drawn_knobs(*usual, profile, random);
    LowerOptions options;
    options.records = [&](const TuningTask& task) -> KnobValues {
      const auto found = knobs.find(task);
      return found == knobs.end() ? KnobValues() : found->second;
    };
    auto tuned = lower_model(graph.graph, options, profile);
    ASSERT_TRUE(tuned.ok()) << tuned.errors()[0].text();
    for (size_t i = 0; i < tuned->groups.size(); ++i)
      tuned_kernels += tuned->groups[i].low != usual->groups[i].low ? 1 : 0;
    const Bindings expected = outputs_of(*usual, graph.inputs), actual = outputs_of(*tuned, graph.inputs);
    for (const auto& [name, value] : expected) {
      const auto error = graph.error.find(name);
      EXPECT_TRUE(close(actual.at(name), value, error == graph.error.end() ? 0 : error->second)) << name;
    }
    for (const ProgramStep& step : tuned->derivation.steps) {
      if (step.rule.rfind("open-tiles", 0) == 0) orders.insert(step.rule);
    }
    ReplayOptions replaying;
    replaying.profile = profile;
    auto replayed = replay(tuned->derivation, replaying);
    ASSERT_TRUE(replayed.ok()) << replayed.errors()[0].text();
    for (size_t i = 0; i < tuned->groups.size(); ++i)
      ASSERT_EQ(replayed->program.definitions[i].expression, tuned->groups[i].low);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(tuned_kernels, 50u);
  EXPECT_THAT(orders, testing::IsSupersetOf({"open-tiles", "open-tiles-by-columns", "open-tiles-by-columns-4d"}));
}

NamedModel wide_convolution() {
  NamedModel graph;
  graph.opset = 21;
  graph.inputs = {{"x", Scalar::f32, {1, 32, 28, 28}}};
  graph.constants["w"] = seeded_tensor(Scalar::f32, {32, 32, 3, 3}, 1, 0, -1, 1);
  graph.layers = {{"conv", "Conv", "", {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}, {"x", "w"}, {"y"}}};
  graph.outputs = {{"y", Scalar::f32, {}}};
  return graph;
}

std::string derivation_with(const KnobValues& knobs, const Profile& profile, ConvolutionForm form) {
  LowerOptions options;
  options.convolution = form;
  options.records = [&](const TuningTask&) { return knobs; };
  auto model = lower_model(wide_convolution(), options, profile);
  HOIST_CHECK(model.ok(), model.errors()[0].text());
  return print_derivation(model->derivation);
}

TEST(Tuning, ARecordChoosesTheFormOfAConvolution) {
  for (const bool gpu : {false, true}) {
    Profile profile;
    profile.gpu = gpu;
    const auto with = [&](int64_t results) {
      return derivation_with({{std::string(winograd_knob), results}}, profile, ConvolutionForm::automatic);
    };
    EXPECT_THAT(with(0), Not(HasSubstr("\nwinograd-")));
    EXPECT_THAT(with(2), HasSubstr("\nwinograd-f2x2-3x3"));
    EXPECT_THAT(with(4), HasSubstr("\nwinograd-f4x4-3x3"));
    EXPECT_THAT(with(3), Not(HasSubstr("\nwinograd-")));  // there is no such form
    // The user's choice has precedence.
    const KnobValues none = {{std::string(winograd_knob), 0}}, four = {{std::string(winograd_knob), 4}};
    EXPECT_THAT(derivation_with(none, profile, ConvolutionForm::winograd), HasSubstr("\nwinograd-"));
    EXPECT_THAT(derivation_with(four, profile, ConvolutionForm::stencil), Not(HasSubstr("\nwinograd-")));
  }
}

TEST(Tuning, KnobsThatNoTileHasLeaveTheEstimate) {
  const Profile profile;
  const std::string usual = derivation_with({}, profile, ConvolutionForm::stencil);
  EXPECT_THAT(usual, Not(HasSubstr("\nchoose-knobs")));
  const std::string strange = derivation_with({{"rows", 1000}, {"colour", 3}}, profile, ConvolutionForm::stencil);
  EXPECT_THAT(strange, HasSubstr("\nchoose-knobs(colour = 3, rows = 1000) at %y"));
  const auto kernels = [](const std::string& text) { return text.substr(text.find("\nchoose-storage")); };
  EXPECT_EQ(kernels(strange), kernels(usual));
}

}  // namespace hoist::tuning_test
