// Tests helpers that move scales between layers: the model computes the same values, and the targeted error falls.
#include "neural_rules/model/equalisation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "neural_rules/calibration/site_statistics.h"
#include "neural_rules/rewrite/rewrite_model.h"
#include "tests/neural_rules/calibrated_model.h"
#include "tests/neural_rules/evaluated_model.h"

namespace hoist::equalisation_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;

// Convolution, Relu, depthwise, LeakyRelu, convolution; channel c of the first one is about 4^c / 8 as large.
Program mobile_model() {
  ModelBuilder b(17);
  const std::map<std::string, Attribute> same = {{"pads", std::vector<int64_t>{1, 1, 1, 1}}};
  b.input("x", {2, 3, 6, 6});
  b.layer("Conv", "wide", {"x", b.constant("w1", {6, 3, 1, 1}, 0.3), b.constant("b1", {6}, 0.1)});
  b.layer("Relu", "relu", {"wide"});
  auto depthwise = same;
  depthwise["group"] = int64_t{6};
  b.layer("Conv", "depthwise", {"relu", b.constant("w2", {6, 1, 3, 3}, 0.3)}, depthwise);
  b.layer("LeakyRelu", "leaky", {"depthwise"}, {{"alpha", 0.1}});
  b.layer("Conv", "narrow", {"leaky", b.constant("w3", {4, 6, 1, 1}, 0.3)});
  Program program = b.finish({"narrow"});
  Tensor& weights = program.constants.at("w1");
  for (int64_t i = 0; i < weights.size(); ++i) {
    const int64_t channel = i / 3;
    weights.set_float(i, weights.float_at(i) * std::pow(4.0, static_cast<double>(channel)) / 8);
  }
  return program;
}

std::vector<double> largest_by_channel(const Tensor& weights, int64_t channels, int64_t inner) {
  std::vector<double> largest(static_cast<size_t>(channels));
  for (int64_t i = 0; i < weights.size(); ++i) {
    double& most = largest[static_cast<size_t>(i / inner % channels)];
    most = std::max(most, std::abs(weights.float_at(i)));
  }
  return largest;
}

TEST(Equalisation, KeepsTheModelAndMakesRangesEqual) {
  const CalibratedModel model = calibrated(mobile_model(), 3, 5);
  Program program = model.program;
  const ChannelFactors factors = equalisation(program);
  EXPECT_THAT(factors, ElementsAre(Key("leaky"), Key("relu")));
  ASSERT_TRUE(scale_channels(program, factors).ok());
  EXPECT_EQ(program.steps.size(), 2U);
  EXPECT_EQ(program.steps[0].rule_class, RuleClass::rounding);
  EXPECT_LT(measured_error(model, program, "narrow"), 1e-12 * model.statistics.at("narrow").mean_square);
  const auto wide = largest_by_channel(program.constants.at("w1"), 6, 3);
  const auto middle = largest_by_channel(program.constants.at("w2"), 6, 9);
  const auto narrow = largest_by_channel(program.constants.at("w3"), 6, 1);
  for (size_t c = 0; c < 6; ++c) {
    EXPECT_NEAR(wide[c] / middle[c], 1, 0.01);
    EXPECT_NEAR(middle[c] / narrow[c], 1, 0.01);
  }
  EXPECT_THAT(equalisation(program), IsEmpty());
}

TEST(Equalisation, HelpsAStoredValue) {
  CalibratedModel model = calibrated(mobile_model(), 3, 5);
  auto error = [](const CalibratedModel& m) {
    auto stored = rewrite(m.program, {{"value relu", "u8"}}, m.statistics);
    return measured_error(m, stored->program, "narrow");
  };
  Program program = model.program;
  ASSERT_TRUE(scale_channels(program, equalisation(program)).ok());
  EXPECT_LT(error(calibrated(program, 3, 5)), 0.5 * error(model));
}

TEST(Equalisation, LeavesAloneWhatOthersReadOrWhatIsNotHomogeneous) {
  ModelBuilder b(9);
  b.input("x", {1, 3, 4, 4});
  b.layer("Conv", "one", {"x", b.constant("w1", {4, 3, 1, 1}, 1)});
  b.layer("Sigmoid", "bent", {"one"});
  b.layer("Conv", "two", {"bent", b.constant("w2", {4, 4, 1, 1}, 1)});
  b.layer("Relu", "shared", {"two"});
  b.layer("Conv", "three", {"shared", b.constant("w3", {4, 4, 1, 1}, 1)});
  b.layer("Add", "sum", {"three", "shared"});
  b.layer("Conv", "four", {"sum", "w3"});
  Program program = b.finish({"four"});
  EXPECT_THAT(equalisation(program), IsEmpty());
}

TEST(SmoothQuant, KeepsTheModelAndHelpsQuantisation) {
  const CalibratedModel model = calibrated(outlier_model(), 6, 5);
  Program program = model.program;
  const ChannelFactors factors = smoothquant(program, model.statistics);
  EXPECT_THAT(factors, ElementsAre(Key("norm")));
  EXPECT_EQ(channel_factors(program, model.statistics, ChannelScaling::automatic), factors)
      << "it more than halves the cost";
  EXPECT_THAT(smoothquant(program, model.statistics, 0.01), IsEmpty()) << "nothing saves 99 % of the cost";
  ASSERT_TRUE(scale_channels(program, factors).ok());
  EXPECT_LT(measured_error(model, program, "both"), 1e-11 * model.statistics.at("both").mean_square);
  const Assignment integers = {{"value norm", "u8"}, {"product query", "w8a8"}, {"product key", "w8a8"}};
  auto error = [&](const CalibratedModel& m) {
    return measured_error(m, rewrite(m.program, integers, m.statistics)->program, "both");
  };
  EXPECT_LT(error(calibrated(program, 6, 5)), 0.5 * error(model));
}

// Scaled channels have to be calibrated again.
TEST(SmoothQuant, IsLeftOutWithoutTimeForAnotherCalibration) {
  const Program program = outlier_model();
  const Samples samples = normal_samples(program, 6, 5);
  for (const double seconds : {1e9, 0.0}) {
    CalibrationWatch watch;
    watch.seconds_left = [&] { return seconds; };
    const auto found = calibrate(
        program, find_sites(program), samples, evaluated_models(), {}, ChannelScaling::automatic,
        [](const std::vector<Tensor>&) {}, watch);
    ASSERT_TRUE(found.ok()) << found.errors()[0].text();
    EXPECT_EQ(found->unscaled, seconds == 0);
    EXPECT_EQ(found->factors.empty(), seconds == 0);
  }
}

TEST(SmoothQuant, NeedsStatisticsOfChannels) {
  const CalibratedModel model = calibrated(outlier_model(), 1, 5);
  EXPECT_THAT(smoothquant(model.program, {}), IsEmpty());
}

TEST(ChannelScaling, FactorsThatDoNotFitAreRefused) {
  const auto refusal = [](const ChannelFactors& factors) {
    Program program = mobile_model();
    const auto scaled = scale_channels(program, factors);
    return scaled.ok() ? "" : scaled.errors()[0].text();
  };
  EXPECT_THAT(refusal({{"nowhere", {1}}}), HasSubstr("value nowhere: has no channels that can be scaled"));
  EXPECT_THAT(refusal({{"x", {1, 1, 1}}}), HasSubstr("has no channels"));
  EXPECT_THAT(refusal({{"relu", {1, 2}}}), HasSubstr("has 6 channels, not 2"));
  EXPECT_THAT(refusal({{"relu", {1, 2, 3, 4, 5, 0}}}), HasSubstr("not a positive number"));
  EXPECT_THAT(refusal({{"relu", {1, 2, 3, 4, 5, -1}}}), HasSubstr("not a positive number"));
  EXPECT_EQ(refusal({{"relu", {1, 2, 3, 4, 5, 6}}}), "");
}

}  // namespace hoist::equalisation_test
