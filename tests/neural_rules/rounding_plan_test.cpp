// Tests which layers' weights are rounded with data, and that the stored results are sufficient for a rewrite.
#include "neural_rules/formats/rounding_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "neural_rules/calibration/site_statistics.h"
#include "neural_rules/rewrite/rewrite_model.h"
#include "tests/neural_rules/calibrated_model.h"
#include "tests/neural_rules/evaluated_model.h"

namespace hoist::rounding_plan_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr double seconds = 60;

CandidateRules rules_under(const Program& program, const std::vector<Site>& sites, const std::string& text) {
  auto preferences = parse_preferences(text, "preferences");
  HOIST_CHECK(preferences.ok(), preferences.errors()[0].text());
  auto found = candidate_rules(program, sites, *preferences, {});
  HOIST_CHECK(found.ok(), found.errors()[0].text());
  return *found;
}

std::vector<std::string> names(const RoundingPlan& plan) {
  std::vector<std::string> out;
  for (const PlannedRounding& planned : plan.layers) out.push_back(planned.layer);
  return out;
}

// Three convolutions, the widest first; the plan does not depend on weights.
Program three_widths() {
  ModelBuilder b(3);
  b.input("x", {1, 1900, 16, 16});
  b.layer("Conv", "wide", {"x", b.constant("w1", {256, 1900, 1, 1}, 0.1)});
  b.layer("Conv", "middle", {"wide", b.constant("w2", {16, 256, 1, 1}, 0.1)});
  b.layer("Conv", "narrow", {"middle", b.constant("w3", {8, 16, 1, 1}, 0.1)});
  return b.finish({"narrow"});
}

RoundingPlan plan_under(const std::string& preferences, size_t runs, double most_seconds) {
  const Program program = three_widths();
  const std::vector<Site> sites = find_sites(program);
  return plan_rounding(program, sites, rules_under(program, sites, preferences), runs, most_seconds);
}

TEST(RoundingPlan, TakesTheSmallestFirstAndSaysWhatIsLeftOut) {
  const RoundingPlan plan = plan_under("prefer * w4-g32-adaptive\n", 100, seconds);
  EXPECT_THAT(names(plan), ElementsAre("narrow", "middle"));
  EXPECT_THAT(plan.layers[0].rules, ElementsAre("w4-g32-adaptive"));
  EXPECT_THAT(plan.notes, ElementsAre(HasSubstr("the weights of 1 of 3 layers are rounded without data")));
  EXPECT_THAT(names(plan_under("prefer * w4-g32-adaptive\n", 100, 0.05)), ElementsAre("narrow"));
  EXPECT_THAT(names(plan_under("prefer * w4-g32-adaptive\n", 100, 1e-6)), IsEmpty());
}

TEST(RoundingPlan, HasOnlyWhatPreferencesAllow) {
  const RoundingPlan plan = plan_under(
      "prefer middle w4-g64\nforbid narrow w4-g32-adaptive\nforbid narrow w8a8-adaptive\nforbid wide *\n", 8, seconds);
  ASSERT_THAT(names(plan), ElementsAre("narrow"));
  EXPECT_THAT(plan.layers[0].rules, ElementsAre("w4-g128-adaptive"));
  EXPECT_THAT(plan.notes, IsEmpty());
}

TEST(RoundingPlan, ALayerThatHasToIsThereWhateverItTakes) {
  EXPECT_THAT(names(plan_under("pin wide w4-g32-adaptive\n", 100, 0)), ElementsAre("wide"));
}

TEST(RoundingPlan, ManySamplesGiveFewerWindowsEach) {
  const auto windows = [](size_t runs) {
    const RoundingPlan plan = plan_under("prefer middle w4-g32-adaptive\nforbid wide *\nforbid narrow *\n", runs, 60);
    return plan.layers.empty() ? 0 : plan.layers[0].windows;
  };
  EXPECT_EQ(windows(100), most_sample_windows);
  EXPECT_LT(windows(10'000), most_sample_windows);
  EXPECT_GT(windows(10'000), 1);
  EXPECT_EQ(windows(1'000'000), 0);
}

Statistics statistics_for(const Program& program, const Samples& samples) {
  const std::vector<Site> sites = find_sites(program);
  const RoundingPlan plan =
      plan_rounding(program, sites, rules_under(program, sites, ""), samples.runs.size(), seconds);
  HOIST_CHECK(!plan.layers.empty(), "no layer is rounded");
  auto found = calibrate(program, sites, samples, evaluated_models(), plan, ChannelScaling::off);
  HOIST_CHECK(found.ok(), found.errors()[0].text());
  return found->statistics;
}

// Every rule that rounds with data, with its requirements, at all sites where it applies.
std::vector<Assignment> adaptive_assignments(const Program& program) {
  const std::vector<Site> sites = find_sites(program);
  std::vector<Assignment> out;
  for (const std::vector<std::string>& rules :
       {std::vector<std::string>{"w4-g32-adaptive"}, {"w4-g128-adaptive"}, {"u8", "w8a8-adaptive"}}) {
    auto assignment = uniform_assignment(program, sites, rules);
    HOIST_CHECK(assignment.ok(), assignment.errors()[0].text());
    out.push_back(*assignment);
  }
  return out;
}

std::map<std::string, Tensor> constants_under(const Program& program, const Assignment& assignment,
                                              const Statistics& statistics) {
  auto model = rewrite(program, assignment, statistics);
  HOIST_CHECK(model.ok(), model.errors()[0].text());
  return model->program.constants;
}

TEST(RoundedWeights, AreThoseThatMomentsGiveAndNeedThemNoMore) {
  for (Program (*make)(uint64_t) : {residual_model, matrix_model}) {
    const Program program = make(3);
    Statistics kept = statistics_for(program, normal_samples(program, 6, 7));
    Statistics moments = kept;
    for (auto& [value, of] : moments) of.rounded.clear();
    drop_second_moments(kept);
    for (const Assignment& assignment : adaptive_assignments(program)) {
      Statistics chosen = kept;
      keep_rounded(assignment, chosen);
      EXPECT_EQ(constants_under(program, assignment, chosen), constants_under(program, assignment, moments));
      Statistics nothing = kept;
      keep_rounded({}, nothing);
      EXPECT_FALSE(rewrite(program, assignment, nothing).ok());
    }
  }
}

TEST(RoundedWeights, DoNotDependOnTheOrderOfSamples) {
  const Program program = matrix_model(3);
  Samples samples = normal_samples(program, 6, 7);
  const Statistics one = statistics_for(program, samples);
  std::reverse(samples.runs.begin(), samples.runs.end());
  const Statistics other = statistics_for(program, samples);
  for (const Assignment& assignment : adaptive_assignments(program))
    EXPECT_EQ(constants_under(program, assignment, one), constants_under(program, assignment, other));
}

TEST(RoundedWeights, OfAnotherShapeOrRangeAreRefused) {
  const Program program = matrix_model(3);
  Statistics statistics = statistics_for(program, normal_samples(program, 6, 7));
  const Assignment assignment = {{"product dense", "w4-g32-adaptive"}};
  std::shared_ptr<const Tensor>& numbers = statistics.at("x").rounded.at("dense").at("w4-g32-adaptive");
  const auto error_with = [&](const Tensor& changed) {
    numbers = std::make_shared<const Tensor>(changed);
    const auto result = rewrite(program, assignment, statistics);
    return result.ok() ? "" : result.errors()[0].text();
  };
  Tensor lowest = *numbers;
  EXPECT_EQ(error_with(lowest), "");
  lowest.set_integer(5, -8);
  EXPECT_THAT(error_with(lowest), HasSubstr("dense: rounded number 5 is -8, i4 goes from -7 to 7"));
  EXPECT_THAT(error_with(Tensor(Scalar::i4, {80, 96})),
              HasSubstr("its rounded weights are [80][96]i4, expected [96][80]i4"));
  EXPECT_THAT(error_with(Tensor(Scalar::i8, {96, 80})), HasSubstr("are [96][80]i8"));
}

}  // namespace hoist::rounding_plan_test
