// Tests choices with little time and on busy machines: unfinished work is dropped, the choice is made from the points
// that are verified, and notes say what is missing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <thread>

#include "ir/base/cancellation.h"
#include "ir/base/stopwatch.h"
#include "neural_rules/choice/choose.h"
#include "tests/neural_rules/calibrated_model.h"
#include "tests/neural_rules/evaluated_model.h"

namespace hoist::time_limit_test {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t samples_of_test = 6;

// The unchanged model always takes the same time. A model with rules takes a third of it, or twice the time while the
// machine is busy: before or after a moment that follows the first run.
class DriftingModel : public RunnableModel {
 public:
  struct Machine {
    double busy_from = 0, busy_until = 0;  // seconds since the first timed run
    std::optional<Stopwatch> since = {};
    int runs = 0;
  };

  DriftingModel(std::unique_ptr<RunnableModel> model, Machine& machine, bool is_changed)
      : model_(std::move(model)), machine_(machine), is_changed_(is_changed) {}

  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) override { return model_->run(inputs); }
  Result<std::vector<StepTime>> step_times() override { return model_->step_times(); }
  Result<std::vector<double>> run_times(int count) override {
    if (!machine_.since) machine_.since.emplace();
    const double now = machine_.since->seconds();
    const bool is_busy = now >= machine_.busy_from && now < machine_.busy_until;
    machine_.runs += count;
    if (!is_changed_) std::this_thread::sleep_for(std::chrono::milliseconds(5));  // a round
    return std::vector<double>(static_cast<size_t>(count), !is_changed_ ? 3e-4 : is_busy ? 6e-4 : 1e-4);
  }

 private:
  std::unique_ptr<RunnableModel> model_;
  Machine& machine_;
  bool is_changed_;
};

Choosing chosen_on(DriftingModel::Machine& machine, double timing_seconds) {
  const Program program = matrix_model(9);
  const PrepareModel drifting = [&](const RewrittenModel& model) -> Result<std::unique_ptr<RunnableModel>> {
    HOIST_TRY(auto runnable, evaluated_models()(model));
    return std::unique_ptr<RunnableModel>(
        std::make_unique<DriftingModel>(std::move(runnable), machine, !model.uses.empty()));
  };
  ChooseOptions options = options_for("sqnr=25dB");
  options.timing_rounds = 10;
  options.least_timing_seconds = 1;
  options.timing_seconds = timing_seconds;
  auto found = choose(program, normal_samples(program, samples_of_test, 1),
                      normal_samples(program, samples_of_test, 100), drifting, options);
  HOIST_CHECK(found.ok(), found.errors()[0].text());
  return std::move(*found);
}

// One half of the rounds would choose the unchanged model, the other half another one.
TEST(ChoiceInTime, AMachineThatIsBusyForAWhileIsMeasuredLonger) {
  DriftingModel::Machine steady, busy{.busy_until = 0.4};
  const Choosing expected = chosen_on(steady, 30), found = chosen_on(busy, 30);
  EXPECT_FALSE(expected.chosen.empty());
  EXPECT_EQ(found.chosen, expected.chosen);
  EXPECT_GT(busy.runs, 2 * steady.runs);
  for (const std::string& note : found.study.notes) EXPECT_THAT(note, Not(HasSubstr("too busy")));
}

TEST(ChoiceInTime, AMachineThatStaysBusyIsSaidToBeSo) {
  DriftingModel::Machine machine{.busy_from = 0.6, .busy_until = 1e9};
  const Choosing found = chosen_on(machine, 2.9);  // less time than a second turn takes
  EXPECT_THAT(found.study.notes, Contains(HasSubstr("this machine is too busy to time runs: one half of the "
                                                    "rounds chooses ")));
}

// A program whose preparation takes `seconds` and stops at a deadline.
PrepareModel slow_models(const std::function<double(const RewrittenModel& model)>& seconds) {
  return [seconds](const RewrittenModel& model) -> Result<std::unique_ptr<RunnableModel>> {
    const double wanted = seconds(model);
    for (const Stopwatch taken; taken.seconds() < wanted;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      cancellation_point();
    }
    return evaluated_models()(model);
  };
}

// `first` is the time limit of the first model; the other options are as in compilations.
Result<Choosing> chosen_within(double limit, double first, const PrepareModel& prepare, const std::string& pins = "") {
  const Program program = residual_model(9);
  ChooseOptions options = options_for("sqnr=5dB");
  options.objective = Objective::size;
  auto preferences = parse_preferences(pins, "pins");
  HOIST_CHECK(preferences.ok(), "pins");
  options.sensitivity.preferences = *preferences;
  const Stopwatch stopwatch;
  options.spent = [&] { return stopwatch.seconds() / limit; };
  options.seconds_until = [&](double share) { return share * limit - stopwatch.seconds(); };
  options.seconds_for_first = [&] { return first - stopwatch.seconds(); };
  options.sensitivity.calibration_seconds = limit / 5;
  auto found = choose(program, normal_samples(program, samples_of_test, 1),
                      normal_samples(program, samples_of_test, 100), prepare, options);
  EXPECT_LT(stopwatch.seconds(), limit + 20);  // holds on any machine, and is less than the dropped work
  return found;
}

// There is a choice even with very little time, and it lists what is missing.
TEST(ChoiceInTime, WithoutTimeTheModelStaysAsItIs) {
  const PrepareModel never = slow_models([](const RewrittenModel&) { return 60.0; });
  const auto nothing = chosen_within(0.2, 0.1, never);
  ASSERT_TRUE(nothing.ok()) << nothing.errors()[0].text();
  EXPECT_TRUE(nothing->chosen.empty() && nothing->measured.empty());
  ASSERT_EQ(nothing->study.points.size(), 1u);
  EXPECT_FALSE(nothing->study.points[0].verified);
  EXPECT_EQ(nothing->study.confidence, "met without a run, since nothing is changed");
  EXPECT_THAT(nothing->study.notes, Contains(HasSubstr("before the unchanged model was verified")));

  const PrepareModel no_rules = slow_models([](const RewrittenModel& model) { return model.only_values ? 60 : 0.05; });
  const auto reference = chosen_within(3, 3, no_rules);
  ASSERT_TRUE(reference.ok()) << reference.errors()[0].text();
  EXPECT_TRUE(reference->chosen.empty() && reference->measured.empty() && reference->study.budget_met);
  EXPECT_TRUE(reference->study.points[0].verified);
  EXPECT_THAT(reference->study.notes, Contains(HasSubstr("before a model under rules was verified")));

  const PrepareModel slow = slow_models([](const RewrittenModel&) { return 0.4; });
  const auto too_short = chosen_within(1, 1, slow);
  ASSERT_TRUE(too_short.ok()) << too_short.errors()[0].text();
  EXPECT_THAT(too_short->study.notes, Contains(HasSubstr("too short for a model under rules")));

  const auto pinned = chosen_within(1, 1, no_rules, "pin * w8\n");
  ASSERT_FALSE(pinned.ok());
  EXPECT_THAT(pinned.errors()[0].text(), HasSubstr("the time is over before a pinned rule is measured"));
}

TEST(ChoiceInTime, VerificationThatTakesTooLongUsesFewerSamples) {
  const Program program = matrix_model(9);
  ChooseOptions options = options_for("sqnr=25dB");
  options.objective = Objective::size;
  options.verification_seconds = 1e-9;
  auto found = choose(program, normal_samples(program, samples_of_test, 1), normal_samples(program, 20, 100),
                      evaluated_models(), options);
  ASSERT_TRUE(found.ok()) << found.errors()[0].text();
  EXPECT_GT(found->study.points.size(), 2u);
  for (const StudyPoint& point : found->study.points) EXPECT_TRUE(!point.verified || point.samples == 8) << point.name;
  EXPECT_THAT(found->study.notes, Contains(HasSubstr("verified on the first 8 of 20 samples")));
}

// Work ends within its time limit, even if a single candidate would take minutes.
TEST(ChoiceInTime, TheEndOfTheTimeIsKeptByLongCandidates) {
  const Program program = residual_model(9);
  constexpr double limit = 4;
  const Stopwatch stopwatch;
  const PrepareModel slow = slow_models([](const RewrittenModel& model) {
    return model.only_values && !model.functions.empty() ? 60 : model.uses.size() > 2 ? 60 : 0.1;
  });
  ChooseOptions options = options_for("sqnr=5dB");
  options.objective = Objective::size;
  options.spent = [&] { return stopwatch.seconds() / limit; };
  options.seconds_until = [&](double share) { return share * limit - stopwatch.seconds(); };
  options.sensitivity.calibration_seconds = 1;
  const auto found = choose(program, normal_samples(program, samples_of_test, 1),
                            normal_samples(program, samples_of_test, 100), slow, options);
  EXPECT_LT(stopwatch.seconds(), limit + 2);
  ASSERT_TRUE(found.ok()) << found.errors()[0].text();
  EXPECT_TRUE(found->study.budget_met);
  EXPECT_FALSE(found->measured.complete());
}

// With a clock that is at half of the time limit after the calibration, and that each later reading moves by `step`.
Result<Choosing> chosen_after_slow_calibration(double step) {
  const Program program = residual_model(9);
  ChooseOptions options = options_for("sqnr=5dB");
  options.objective = Objective::size;
  double spent = 0;
  options.spent = [&] { return spent > 0 ? spent += step : 0; };
  const PrepareModel prepare = [&](const RewrittenModel& model) {
    if (model.only_values && spent == 0) spent = 0.5;
    return evaluated_models()(model);
  };
  return choose(program, normal_samples(program, samples_of_test, 1), normal_samples(program, samples_of_test, 100),
                prepare, options);
}

TEST(ChoiceInTime, ASlowCalibrationLeavesTimeForRules) {
  const auto found = chosen_after_slow_calibration(0.0005);
  ASSERT_TRUE(found.ok()) << found.errors()[0].text();
  EXPECT_FALSE(found->chosen.empty());
  EXPECT_THAT(found->study.notes, Not(Contains(HasSubstr("left out"))));
}

TEST(ChoiceInTime, EverySiteHasItsFirstRuleBeforeAnyHasTheNext) {
  const auto found = chosen_after_slow_calibration(0.005);
  ASSERT_TRUE(found.ok()) << found.errors()[0].text();
  EXPECT_THAT(found->study.notes, Contains(HasSubstr("rules are left out")));
  for (const StudySite& site : found->measured.sensitivity.studied) {
    const auto stands = [](const Candidate& candidate) { return candidate.stands; };
    EXPECT_TRUE(site.candidates.empty() || std::any_of(site.candidates.begin(), site.candidates.end(), stands))
        << site.site.key();
  }
}

}  // namespace hoist::time_limit_test
