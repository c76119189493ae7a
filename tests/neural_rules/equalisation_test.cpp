// Helpers that move scale between layers: the model computes the same, and what they are for becomes better.
#include "neural_rules/equalisation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "neural_rules/rewrite.h"
#include "tests/neural_rules/calibrated_model.h"

namespace hoist {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Convolution, Relu, depthwise, LeakyRelu, convolution; channel c of the first one is about 4^c / 8 as large.
Graph mobile_model() {
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
  Graph graph = b.finish({"narrow"});
  Tensor& weights = graph.constants.at("w1");
  for (int64_t i = 0; i < weights.size(); ++i) {
    const int64_t channel = i / 3;
    weights.set_float(i, weights.float_at(i) * std::pow(4.0, static_cast<double>(channel)) / 8);
  }
  return graph;
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
  Graph graph = model.graph;
  EXPECT_THAT(equalise(graph), ElementsAre("wide", "depthwise", "narrow"));
  EXPECT_EQ(graph.steps.size(), 3U);
  EXPECT_EQ(graph.steps[0].rule_class, RuleClass::rounding);
  EXPECT_LT(measured_error(model, graph, "narrow"), 1e-12 * model.statistics.at("narrow").mean_square);
  const auto wide = largest_by_channel(graph.constants.at("w1"), 6, 3);
  const auto middle = largest_by_channel(graph.constants.at("w2"), 6, 9);
  const auto narrow = largest_by_channel(graph.constants.at("w3"), 6, 1);
  for (size_t c = 0; c < 6; ++c) {
    EXPECT_NEAR(wide[c] / middle[c], 1, 0.01);
    EXPECT_NEAR(middle[c] / narrow[c], 1, 0.01);
  }
  EXPECT_THAT(equalise(graph), IsEmpty());
}

TEST(Equalisation, HelpsAStoredValue) {
  CalibratedModel model = calibrated(mobile_model(), 3, 5);
  auto error = [](const CalibratedModel& m) {
    auto stored = rewrite(m.graph, {{"value relu", "u8"}}, m.statistics);
    return measured_error(m, stored->graph, "narrow");
  };
  Graph graph = model.graph;
  equalise(graph);
  EXPECT_LT(error(calibrated(graph, 3, 5)), 0.5 * error(model));
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
  Graph graph = b.finish({"four"});
  const auto before = graph.constants;
  EXPECT_THAT(equalise(graph), IsEmpty());
  EXPECT_EQ(graph.constants, before);
}

// A normalisation, two of whose channels are 40 times as large as the others, and two products that read it.
Graph outlier_model() {
  ModelBuilder b(23);
  b.input("x", {4, 5, 32});
  b.constant("scale", {32}, 0.2, 1);
  b.constant("shift", {32}, 0.1);
  b.layer("Mul", "normal", {"x", "x"});
  b.layer("LayerNormalization", "norm", {"normal", "scale", "shift"});
  b.layer("MatMul", "query", {"norm", b.constant("wq", {32, 16}, 0.2)});
  b.layer("MatMul", "key", {"norm", b.constant("wk", {32, 16}, 0.2)});
  b.layer("Add", "both", {"query", "key"});
  Graph graph = b.finish({"both"});
  for (int64_t c : {3, 20}) graph.constants.at("scale").set_float(c, 40);
  return graph;
}

TEST(Smoothing, KeepsTheModelAndHelpsQuantisation) {
  const CalibratedModel model = calibrated(outlier_model(), 6, 5);
  Graph graph = model.graph;
  EXPECT_THAT(smooth(graph, model.statistics), ElementsAre("norm"));
  EXPECT_LT(measured_error(model, graph, "both"), 1e-11 * model.statistics.at("both").mean_square);
  const Assignment integers = {{"value norm", "u8"}, {"product query", "w8a8"}, {"product key", "w8a8"}};
  auto error = [&](const CalibratedModel& m) {
    return measured_error(m, rewrite(m.graph, integers, m.statistics)->graph, "both");
  };
  EXPECT_LT(error(calibrated(graph, 6, 5)), 0.5 * error(model));
}

TEST(Smoothing, NeedsStatisticsOfChannels) {
  const CalibratedModel model = calibrated(outlier_model(), 1, 5);
  Graph graph = model.graph;
  EXPECT_THAT(smooth(graph, {}), IsEmpty());
  EXPECT_EQ(graph.constants, model.graph.constants);
}

}  // namespace
}  // namespace hoist
