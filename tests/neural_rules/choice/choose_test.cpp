// Tests the way from sensitivity to the choice, on small models without a device: the multi-variant program equals the
// model if all rules are off, errors add up as predicted, and the solver beats random choices.
#include "neural_rules/choice/choose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "neural_rules/choice/candidates.h"
#include "neural_rules/choice/cost.h"
#include "neural_rules/learning/trainable_model.h"
#include "tests/neural_rules/calibrated_model.h"
#include "tests/neural_rules/evaluated_model.h"
#include "tests/neural_rules/random_assignment.h"
#include "tests/support/prediction_quality.h"

namespace hoist::choose_test {

using testing::HasSubstr;

constexpr int64_t samples_of_test = 6;

struct Studied {
  Program program;
  Samples samples;
  Sensitivity sensitivity;
};

Studied studied(const Program& program, bool measure_all = true) {
  Studied out{program, {}, {}};
  out.samples = normal_samples(out.program, samples_of_test, 7);
  SensitivityOptions options;
  options.measure_all = measure_all;
  options.device = {.half = true, .bf16 = true};  // the evaluator supports all types
  auto found = find_sensitivity(out.program, out.samples, evaluated_models(), options);
  HOIST_CHECK(found.ok(), found.errors()[0].text());
  out.sensitivity = std::move(*found);
  return out;
}

MultiVariantProgram variants_of(const Studied& model) {
  auto made = make_multi_variant(model.program, model.sensitivity.sites, model.sensitivity.rules);
  HOIST_CHECK(made.ok(), made.errors()[0].text());
  return std::move(*made);
}

RunOutputs outputs_under(const Studied& model, const MultiVariantProgram& variants, RunnableModel& runnable,
                         const Assignment& assignment) {
  const std::vector<Tensor> fed = variants.inputs(model.sensitivity.sites, assignment);
  auto outputs =
      run_all(runnable, model.samples, model.samples.runs.size(), [&](size_t) { return std::vector<Tensor>(fed); });
  HOIST_CHECK(outputs.ok(), outputs.errors()[0].text());
  return *outputs;
}

double measured(const Studied& model, const RunOutputs& outputs) {
  auto metrics = compare_runs(output_kinds(model.program), model.samples, model.sensitivity.reference, outputs);
  HOIST_CHECK(metrics.ok(), metrics.errors()[0].text());
  return metrics->mean_squared_error;
}

TEST(MultiVariantProgram, AllOffIsTheModelBitForBit) {
  for (Program (*make)(uint64_t) : {residual_model, matrix_model}) {
    const Studied model = studied(make(3), false);
    ASSERT_GT(model.sensitivity.rules.size(), 10u);
    const MultiVariantProgram variants = variants_of(model);
    auto runnable = evaluated_models()(variants.model);
    ASSERT_TRUE(runnable.ok()) << runnable.errors()[0].text();
    EXPECT_EQ(outputs_under(model, variants, **runnable, {}), model.sensitivity.reference);
  }
}

// The program computes all rules for each selected rule, so the test is quadratic in their number. One sample is
// enough, since every bit is compared, and the rules need no measurement.
TEST(MultiVariantProgram, OneOnIsTheRewrittenModel) {
  for (Program (*make)(uint64_t) : {residual_model, matrix_model}) {
    Studied model = studied(make(4), false);
    ASSERT_GT(model.sensitivity.rules.size(), 10u);
    model.samples.runs.resize(1);
    model.samples.count = 1;
    const MultiVariantProgram variants = variants_of(model);
    auto runnable = evaluated_models()(variants.model);
    ASSERT_TRUE(runnable.ok()) << runnable.errors()[0].text();
    for (const SiteRule& rule : model.sensitivity.rules) {
      Assignment assignment = rule.needs;
      assignment[model.sensitivity.sites[rule.site].key()] = rule.rule;
      auto rewritten = rewrite(model.program, assignment, model.sensitivity.statistics);
      ASSERT_TRUE(rewritten.ok()) << rewritten.errors()[0].text();
      auto alone = evaluated_models()(*rewritten);
      ASSERT_TRUE(alone.ok()) << alone.errors()[0].text();
      auto expected = run_all(**alone, model.samples, model.samples.runs.size());
      ASSERT_TRUE(expected.ok());
      EXPECT_EQ(outputs_under(model, variants, **runnable, assignment), *expected)
          << model.sensitivity.sites[rule.site].key() << " " << rule.rule;
    }
  }
}

TEST(Sensitivity, ErrorsOfRandomAssignmentsAddUpAsPredicted) {
  std::vector<std::pair<double, double>> pairs;
  std::mt19937_64 random(11);
  for (Program (*make)(uint64_t) : {residual_model, matrix_model}) {
    const Studied model = studied(make(5));
    const MultiVariantProgram variants = variants_of(model);
    auto runnable = evaluated_models()(variants.model);
    ASSERT_TRUE(runnable.ok()) << runnable.errors()[0].text();
    for (int i = 0; i < 10; ++i) {
      const Assignment assignment = random_assignment(model.sensitivity, random);
      pairs.emplace_back(predicted_error(model.sensitivity, assignment),
                         measured(model, outputs_under(model, variants, **runnable, assignment)));
    }
  }
  const PredictionQuality quality = prediction_quality(pairs);
  EXPECT_GT(quality.median_ratio, 0.8);
  EXPECT_LT(quality.median_ratio, 1.25);
  EXPECT_GE(quality.share_within_two, 0.9);
}

// Studied once for several tests, since it takes seconds.
const Studied& residual_six() {
  static const Studied model = studied(residual_model(6));
  return model;
}

// Also if no layer reads the array itself: relu2 is followed by a pooling, silu by a flattening.
TEST(Sensitivity, LocalErrorsAreMeasuredWhereTheFormatIsRead) {
  const Studied& model = residual_six();
  for (const std::string name : {"relu2", "silu"}) {
    const auto& sites = model.sensitivity.studied;
    const auto site =
        std::find_if(sites.begin(), sites.end(), [&](const StudySite& s) { return s.site.key() == "value " + name; });
    ASSERT_NE(site, sites.end()) << name;
    for (const Candidate& candidate : site->candidates) {
      SCOPED_TRACE(name + " " + candidate.rule);
      EXPECT_GT(candidate.local_error, 0);
      if (std::isnan(candidate.error_alone)) continue;
      // Maxima are close together, and floats with few mantissa bits round all of them in the same direction.
      const double factor = candidate.rule == "e4m3" ? 8 : candidate.rule == "bfp8" ? 3 : 2;
      EXPECT_GT(candidate.predicted_error, candidate.error_alone / factor);
      EXPECT_LT(candidate.predicted_error, candidate.error_alone * factor);
    }
  }
}

// Predictions for contractions pack their weights.
TEST(Candidates, ContractionsHaveNoPredictionOnceTheTimeIsOver) {
  ModelBuilder b(3);
  b.input("x", {1, 64, 6, 6});
  b.layer("Conv", "free", {"x", b.constant("w1", {64, 64, 1, 1}, 0.1)});
  b.layer("Conv", "pinned", {"free", b.constant("w2", {64, 64, 1, 1}, 0.1)});
  const CalibratedModel model = calibrated(b.finish({"pinned"}), 4, 7);
  const std::vector<Site> sites = find_sites(model.program);
  const auto preferences = parse_preferences("pin pinned w8\n", "preferences");
  ASSERT_TRUE(preferences.ok());
  const auto candidates = candidate_rules(model.program, sites, *preferences, {});
  ASSERT_TRUE(candidates.ok()) << candidates.errors()[0].text();
  const auto rules = weigh_rules(model.program, sites, *candidates, model.statistics, [] { return true; });
  for (size_t i = 0; i < sites.size(); ++i) {
    for (const WeighedRule& rule : rules[i]) {
      SCOPED_TRACE(sites[i].key() + " " + rule.candidate.rule);
      EXPECT_EQ(std::isnan(rule.predicted_noise), sites[i].key() == "product free");
      EXPECT_GT(rule.bytes, 0);
    }
  }
}

TEST(Candidates, BlocksAreKeptWhereNoSmallerFormatIsAsClose) {
  ModelBuilder b(3);
  b.input("x", {1, 64, 6, 6});
  b.layer("Conv", "conv1", {"x", b.constant("w1", {64, 64, 1, 1}, 0.1)});
  b.layer("Relu", "relu1", {"conv1"});
  b.layer("Conv", "conv2", {"relu1", b.constant("w2", {64, 64, 1, 1}, 0.1)});
  b.layer("Conv", "conv3", {"conv2", b.constant("w3", {8, 64, 1, 1}, 0.1)});
  Program program = b.finish({"conv3"});
  // Half of conv2's channels have another range than the others, and that half is a block.
  Tensor& weights = program.constants.at("w2");
  for (int64_t i = 0; i < weights.size() / 2; ++i) weights.set_float(i, 1000 * weights.float_at(i));
  const CalibratedModel model = calibrated(program, 4, 7);
  const std::vector<Site> sites = find_sites(model.program);
  const auto rules =
      weigh_rules(model.program, sites, *candidate_rules(model.program, sites, {}, {}), model.statistics);
  const auto kept = [&](const std::string& value) {
    for (size_t i = 0; i < sites.size(); ++i) {
      if (sites[i].key() != "value " + value) continue;
      for (const WeighedRule& rule : rules[i]) {
        if (rule.candidate.rule == "bfp8") return rule.kept;
      }
    }
    ADD_FAILURE() << "no blocks at " << value;
    return false;
  };
  EXPECT_FALSE(kept("relu1"));
  EXPECT_TRUE(kept("conv2"));
}

TEST(Sensitivity, FormatsOfValuesSayWhatTheyHold) {
  const Studied& model = residual_six();
  for (const StudySite& site : model.sensitivity.studied) {
    for (const Candidate& candidate : site.candidates) {
      SCOPED_TRACE(site.site.key() + " " + candidate.rule);
      // Blocks have a range of their own in each run.
      if (site.site.kind != SiteKind::value || candidate.rule == "bfp8") {
        EXPECT_TRUE(std::isnan(candidate.clip_low) && std::isnan(candidate.clip_high));
        continue;
      }
      ASSERT_LT(candidate.clip_low, candidate.clip_high);
      const bool inside = candidate.clip_low <= site.statistics.low && site.statistics.high <= candidate.clip_high;
      EXPECT_TRUE(!inside || candidate.clipped_share == 0);
      EXPECT_TRUE(inside || (candidate.rule != "u8" && candidate.rule != "i16"));
      EXPECT_TRUE(candidate.clip_high == 65504 || candidate.rule != "f16");
    }
  }
}

TEST(Sensitivity, NoiseOfTheProbeHasTheErrorThatTheSensitivitySays) {
  const Studied& model = residual_six();
  for (const StudySite& site : model.sensitivity.studied) EXPECT_GT(site.sensitivity, 0) << site.site.key();
  // An error injected at the output is unchanged there.
  EXPECT_GT(model.sensitivity.output_power, 0);
}

TEST(CostModel, TheFrontIsNoWorseThanRandomAndUniformAssignments) {
  Studied model = studied(residual_model(8), false);
  SensitivityOptions options;
  std::vector<UniformBaseline> uniform;
  auto all = add_uniform_baselines(uniform, model.sensitivity, evaluated_models(), options);
  ASSERT_TRUE(all.ok()) << all.errors()[0].text();
  const CostModel costs = cost_model(model.sensitivity, uniform, Objective::time);
  std::mt19937_64 random(12);
  const int compared = compare_front(model.sensitivity, costs, uniform, 30, random);
  EXPECT_GT(compared, 30);
}

TEST(Choose, TheChosenPointKeepsTheBudgetAndIsCheapest) {
  const Program program = residual_model(9);
  ChooseOptions options = options_for("sqnr=25dB");
  options.objective = Objective::size;  // formats do not save time on the simulated device
  auto found = choose(program, normal_samples(program, samples_of_test, 1),
                      normal_samples(program, samples_of_test, 100), evaluated_models(), options);
  ASSERT_TRUE(found.ok()) << found.errors()[0].text();
  EXPECT_TRUE(found->study.budget_met);
  const StudyPoint* chosen = nullptr;
  for (const StudyPoint& point : found->study.points) {
    if (point.chosen) chosen = &point;
  }
  ASSERT_NE(chosen, nullptr);
  EXPECT_EQ(chosen->assignment, found->chosen);
  EXPECT_GE(chosen->sqnr, 25);
  EXPECT_FALSE(found->chosen.empty());
  for (const StudyPoint& point : found->study.points) {
    if (point.verified && point.sqnr >= 25) {
      EXPECT_LE(chosen->size, point.size) << point.name;
    }
  }
}

// Twice as fast with any rule, on a machine that is disturbed in seven of ten runs.
class DisturbedModel : public RunnableModel {
 public:
  DisturbedModel(std::unique_ptr<RunnableModel> model, double seconds, uint64_t seed)
      : model_(std::move(model)), seconds_(seconds), random_(seed) {}

  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) override { return model_->run(inputs); }
  Result<std::vector<StepTime>> step_times() override { return model_->step_times(); }
  Result<std::vector<double>> run_times(int count) override {
    std::vector<double> out;
    for (int i = 0; i < count; ++i) out.push_back(random_() % 10 < 7 ? 10 * seconds_ : seconds_);
    return out;
  }

 private:
  std::unique_ptr<RunnableModel> model_;
  double seconds_;
  std::mt19937_64 random_;
};

TEST(Choose, ABusyMachineDoesNotHideWhatIsFaster) {
  const Program program = residual_model(9);
  const PrepareModel disturbed = [&](const RewrittenModel& model) -> Result<std::unique_ptr<RunnableModel>> {
    HOIST_TRY(auto runnable, evaluated_models()(model));
    const bool is_changed = model.program.definitions.size() != program.definitions.size();
    return std::unique_ptr<RunnableModel>(std::make_unique<DisturbedModel>(
        std::move(runnable), is_changed ? 5e-5 : 1e-4, model.program.definitions.size()));
  };
  auto found = choose(program, normal_samples(program, samples_of_test, 1),
                      normal_samples(program, samples_of_test, 100), disturbed, options_for("sqnr=25dB"));
  ASSERT_TRUE(found.ok()) << found.errors()[0].text();
  EXPECT_TRUE(found->study.budget_met);
  EXPECT_FALSE(found->chosen.empty()) << "the unchanged model takes twice as long";
  EXPECT_LT(found->study.points[0].time.high, 2e-4);
}

// A machine that was three times as fast when steps were profiled as in the interleaved runs.
class SlowerModel : public RunnableModel {
 public:
  explicit SlowerModel(std::unique_ptr<RunnableModel> model) : model_(std::move(model)) {}
  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) override { return model_->run(inputs); }
  Result<std::vector<StepTime>> step_times() override { return model_->step_times(); }
  Result<std::vector<double>> run_times(int count) override {
    HOIST_TRY(std::vector<double> times, model_->run_times(count));
    for (double& time : times) time *= 3;
    return times;
  }

 private:
  std::unique_ptr<RunnableModel> model_;
};

TEST(Choose, PredictionsFollowTheTimesOfWholeRuns) {
  const PrepareModel slower = [](const RewrittenModel& model) -> Result<std::unique_ptr<RunnableModel>> {
    HOIST_TRY(auto runnable, evaluated_models()(model));
    return std::unique_ptr<RunnableModel>(std::make_unique<SlowerModel>(std::move(runnable)));
  };
  const Program program = residual_model(9);
  const auto found = choose(program, normal_samples(program, samples_of_test, 1),
                            normal_samples(program, samples_of_test, 100), slower, options_for("sqnr=25dB"));
  ASSERT_TRUE(found.ok()) << found.errors()[0].text();
  int compared = 0;
  for (const StudyPoint& point : found->study.points) {
    if (!point.is_timed() || !(point.name == "reference" || point.name.starts_with("uniform"))) continue;
    EXPECT_NEAR(point.predicted_time / point.time.value, 1, 0.05) << point.name;
    ++compared;
  }
  EXPECT_GT(compared, 3);
}

TEST(Choose, PinsThatBreakTheBudgetAreSaidToDoSo) {
  const Program program = residual_model(9);
  ChooseOptions options = options_for("sqnr=90dB");
  std::string product;
  for (const Site& site : find_sites(program)) {
    if (site.kind == SiteKind::product && product.empty()) product = site.layer;
  }
  auto preferences = parse_preferences("pin \"" + product + "\" w8\n", "pins");
  ASSERT_TRUE(preferences.ok()) << preferences.errors()[0].text();
  options.sensitivity.preferences = *preferences;
  auto found = choose(program, normal_samples(program, samples_of_test, 1),
                      normal_samples(program, samples_of_test, 100), evaluated_models(), options);
  ASSERT_TRUE(found.ok()) << found.errors()[0].text();
  EXPECT_FALSE(found->study.budget_met);
  EXPECT_EQ(found->chosen.at("product " + product), "w8");
}

// The choice of 4-bit weights under the preferences `text`, with the smallest size at 12 dB.
Choosing chosen_under(const Program& program, const std::string& text) {
  ChooseOptions options = options_for("sqnr=12dB");
  options.objective = Objective::size;
  auto preferences = parse_preferences(text, "preferences");
  HOIST_CHECK(preferences.ok(), preferences.errors()[0].text());
  options.sensitivity.preferences = *preferences;
  auto found = choose(program, normal_samples(program, samples_of_test, 1),
                      normal_samples(program, samples_of_test, 100), evaluated_models(), options);
  HOIST_CHECK(found.ok(), found.errors()[0].text());
  return std::move(*found);
}

TEST(Choose, WeightsThatAreRoundedWithDataAreChosenAndKept) {
  const Program program = residual_model(9);
  const Choosing found = chosen_under(program, "prefer * w4-g32-adaptive\n");
  EXPECT_TRUE(found.study.budget_met);
  int rounded = 0;
  for (const auto& [site, rule] : found.chosen) rounded += rule == "w4-g32-adaptive" ? 1 : 0;
  EXPECT_GT(rounded, 1);
  int kept = 0;
  for (const auto& [value, of] : found.statistics) {
    EXPECT_TRUE(of.second_moments.empty()) << value;
    for (const auto& [layer, rules] : of.rounded) kept += static_cast<int>(rules.size());
  }
  EXPECT_EQ(kept, rounded);
  EXPECT_TRUE(rewrite(program, found.chosen, found.statistics).ok());
}

TEST(Choose, RoundingWithDataLosesLessThanRoundingToNearest) {
  const Program program = residual_model(9);
  const auto uniform_error = [&](const std::string& rule) {
    const Choosing found = chosen_under(program, "prefer * " + rule + "\n");
    for (const StudyPoint& point : found.study.points) {
      if (point.name == "uniform " + rule) return point.error;
    }
    return std::nan("");
  };
  EXPECT_LT(uniform_error("w4-g32-adaptive"), 0.9 * uniform_error("w4-g32"));
}

// Stands for training: numbers with the same scales, which other statistics have from rounding with data.
Result<Retraining> better_weights(const Program& program, const Assignment& assignment, const Statistics& statistics,
                                  const Statistics& with_data) {
  HOIST_TRY(const TrainableModel model, trainable_model(program, assignment, statistics));
  std::map<std::string, Tensor> constants;
  for (const TrainedConstant& constant : model.constants)
    constants.emplace(constant.name, model.program.constants.at(constant.name));
  Retraining out;
  HOIST_TRY(out.weights, retrained_weights(model, constants));
  for (RetrainedConstant& constant : out.weights) {
    for (const auto& [value, of] : with_data) {
      const auto layer = of.rounded.find(constant.layer);
      if (constant.part == RetrainedPart::weights && layer != of.rounded.end())
        constant.value = *layer->second.at("w4-g32-adaptive");
    }
  }
  return out;
}

TEST(Choose, PointsThatBreakTheBudgetAreRetrained) {
  const Program program = residual_model(9);
  const Statistics with_data = chosen_under(program, "prefer * w4-g32-adaptive\n").statistics;
  const Samples calibration = normal_samples(program, samples_of_test, 1),
                verification = normal_samples(program, samples_of_test, 100);
  ChooseOptions options = options_for("sqnr=90dB");
  options.objective = Objective::size;
  options.sensitivity.preferences = *parse_preferences("prefer * w4-g32\n", "preferences");
  options.retrain = [&](const Assignment& assignment, const Statistics& statistics, const ChannelFactors&) {
    return better_weights(program, assignment, statistics, with_data);
  };
  const auto sqnr_of = [](const Choosing& found, const std::string& name) {
    for (const StudyPoint& point : found.study.points) {
      if (point.name == name) return point.sqnr;
    }
    return std::nan("");
  };
  const auto missed = choose(program, calibration, verification, evaluated_models(), options);
  ASSERT_TRUE(missed.ok()) << missed.errors()[0].text();
  const double nearest = sqnr_of(*missed, "uniform w4-g32"), better = sqnr_of(*missed, "uniform w4-g32, retrained");
  ASSERT_GT(better, nearest + 1);
  options.budget.limit = (nearest + better) / 2;
  auto found = choose(program, calibration, verification, evaluated_models(), options);
  ASSERT_TRUE(found.ok()) << found.errors()[0].text();
  EXPECT_TRUE(found->study.budget_met);
  ASSERT_NE(found->retraining, nullptr) << "no rounded point of this size keeps the budget";
  EXPECT_EQ(found->retraining->weights, better_weights(program, found->chosen, found->statistics, with_data)->weights);
  // The measurements hold the retrained point, which only a choice with retraining may take.
  options.retrain = nullptr;
  const auto other = choose(program, {}, {}, evaluated_models(), options, std::move(found->measured));
  ASSERT_TRUE(other.ok()) << other.errors()[0].text();
  EXPECT_EQ(other->retraining, nullptr);
}

TEST(Choose, ScaledChannelsGoWithTheChoice) {
  const Program program = outlier_model();
  const Samples verification = normal_samples(program, samples_of_test, 100);
  ChooseOptions options = options_for("sqnr=25dB");
  options.objective = Objective::size;
  auto found = choose(program, normal_samples(program, samples_of_test, 1), verification, evaluated_models(), options);
  ASSERT_TRUE(found.ok()) << found.errors()[0].text();
  ASSERT_TRUE(found->factors.contains("norm"));
  Program scaled = program;
  ASSERT_TRUE(scale_channels(scaled, found->factors).ok());
  auto rewritten = rewrite(scaled, found->chosen, found->statistics);
  ASSERT_TRUE(rewritten.ok()) << rewritten.errors()[0].text();
  const auto outputs = [&](const RewrittenModel& model) {
    auto runnable = evaluated_models()(model);
    HOIST_CHECK(runnable.ok(), runnable.errors()[0].text());
    return *run_all(**runnable, verification, verification.runs.size());
  };
  RewrittenModel as_it_was;
  as_it_was.program = program;
  const auto metrics = compare_runs(output_kinds(program), verification, outputs(as_it_was), outputs(*rewritten));
  ASSERT_TRUE(metrics.ok());
  for (const StudyPoint& point : found->study.points) {
    if (point.chosen) {
      EXPECT_EQ(point.sqnr, metrics->sqnr);
    }
  }
}

TEST(Choose, BudgetsThatTheModelCannotAnswerAreRefused) {
  const auto refusal = [](const Program& program) {
    const Samples samples = normal_samples(program, 4, 1);
    const auto found = choose(program, samples, samples, evaluated_models(), options_for("top1=1%"));
    return found.ok() ? "" : found.errors()[0].text();
  };
  Program images = residual_model(9);
  images.outputs[0] = images.definitions[0].value;
  EXPECT_THAT(refusal(images), HasSubstr("requires classes"));
  EXPECT_THAT(refusal(matrix_model(9)), HasSubstr("needs labels"));
}

// More rules make the model faster; times are deterministic.
class SteadyModel : public RunnableModel {
 public:
  SteadyModel(std::unique_ptr<RunnableModel> model, double seconds) : model_(std::move(model)), seconds_(seconds) {}

  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) override { return model_->run(inputs); }
  Result<std::vector<StepTime>> step_times() override { return model_->step_times(); }
  Result<std::vector<double>> run_times(int count) override {
    return std::vector<double>(static_cast<size_t>(count), seconds_);
  }

 private:
  std::unique_ptr<RunnableModel> model_;
  double seconds_;
};

PrepareModel steady_models() {
  return [](const RewrittenModel& model) -> Result<std::unique_ptr<RunnableModel>> {
    HOIST_TRY(auto runnable, evaluated_models()(model));
    const double seconds = 1e-3 / static_cast<double>(1 + model.uses.size());
    return std::unique_ptr<RunnableModel>(std::make_unique<SteadyModel>(std::move(runnable), seconds));
  };
}

// A killed process can leave the record of every moment at which one may be written. HOIST_KILLS tries all of them.
TEST(Choose, AStudyThatEndsAnywhereIsResumedToTheSameChoice) {
  const Program program = matrix_model(9);
  const Samples calibration = normal_samples(program, samples_of_test, 1);
  const Samples verification = normal_samples(program, samples_of_test, 100);
  for (const Objective objective : {Objective::time, Objective::size}) {
    ChooseOptions options = options_for("sqnr=25dB");
    options.objective = objective;
    options.least_timing_seconds = 0;
    const ChooseOptions plain = options;
    std::vector<Record> moments;
    options.keep = [&](const Measured& measured, bool) { add_to_record(moments.emplace_back(), measured); };
    const auto whole = choose(program, calibration, verification, steady_models(), options);
    ASSERT_TRUE(whole.ok()) << whole.errors()[0].text();
    EXPECT_FALSE(whole->chosen.empty());
    EXPECT_TRUE(whole->measured.complete());
    ASSERT_GT(moments.size(), 10u);
    const size_t step = std::getenv("HOIST_KILLS") != nullptr ? 1 : std::max<size_t>(1, moments.size() / 6);
    size_t untimed = 0;
    for (size_t i = 0; i < moments.size(); i += i + 4 < moments.size() ? std::min(step, moments.size() - 4 - i) : 1) {
      SCOPED_TRACE(i);
      if (moments[i].sites.empty()) continue;
      auto known = recall(program, moments[i], {}, {}, "record");
      ASSERT_TRUE(known.ok()) << known.errors()[0].text();
      const bool is_untimed = std::any_of(known->points.begin(), known->points.end(),
                                          [](const StudyPoint& point) { return !point.is_timed(); });
      untimed += is_untimed ? 1 : 0;
      EXPECT_TRUE(!is_untimed || !moments[i].complete);
      const auto resumed = choose(program, calibration, verification, steady_models(), plain, std::move(*known));
      ASSERT_TRUE(resumed.ok()) << resumed.errors()[0].text();
      EXPECT_EQ(resumed->chosen, whole->chosen);
      EXPECT_TRUE(resumed->measured.complete());
      for (const StudyPoint& point : resumed->measured.points) EXPECT_TRUE(point.is_timed()) << point.name;
    }
    EXPECT_GT(untimed, 3u);
  }
}

}  // namespace hoist::choose_test
