// Every rule for values and products, its own test: what it costs on data is what was predicted from statistics, within
// a factor of 1.5.
#include <gtest/gtest.h>

#include "neural_rules/prepare.h"
#include "neural_rules/rewrite.h"
#include "tests/neural_rules/calibrated_model.h"

namespace hoist {
namespace {

constexpr double factor = 1.5;

Graph changed(const CalibratedModel& model, const Assignment& assignment) {
  auto result = rewrite(model.graph, assignment, model.statistics);
  HOIST_CHECK(result.ok(), result.errors()[0].text());
  return result->graph;
}

// Other sites that the rule needs: every value in the format that an integer product reads.
Assignment needed_by(const NeuralRule& rule, const Graph& graph) {
  Assignment assignment;
  if (rule.input_format.empty()) return assignment;
  for (const Site& site : find_sites(graph)) {
    if (site.kind == SiteKind::value) assignment[site.key()] = rule.input_format;
  }
  return assignment;
}

class Noise : public testing::TestWithParam<const NeuralRule*> {};

TEST_P(Noise, IsWhatWasPredicted) {
  const NeuralRule& rule = *GetParam();
  int measured_sites = 0;
  for (const Graph& graph : {residual_model(5), matrix_model(6)}) {
    const CalibratedModel model = calibrated(graph, 12, 21);
    for (const Site& site : find_sites(graph)) {
      if (why_not(rule, site, graph)) continue;
      SCOPED_TRACE(graph.layers[0].name + ": " + site.key());
      auto predicted = predicted_noise(graph, site, rule, model.statistics);
      ASSERT_TRUE(predicted.ok()) << predicted.errors()[0].text();
      Assignment assignment = needed_by(rule, graph);
      const Graph before = changed(model, assignment);
      assignment[site.key()] = rule.name;
      const Graph after = changed(model, assignment);
      const std::string read = site.kind == SiteKind::value ? site.value + "/dequantised" : site.value;
      const double measured = difference(model, before, site.value, after, read);
      EXPECT_GT(measured, 0);
      EXPECT_LT(measured, factor * *predicted);
      EXPECT_GT(measured * factor, *predicted);
      ++measured_sites;
    }
  }
  EXPECT_GT(measured_sites, 1);
}

std::vector<const NeuralRule*> predicted_rules() {
  std::vector<const NeuralRule*> rules;
  for (const NeuralRule& rule : neural_rules()) {
    if (rule.kind != SiteKind::function) rules.push_back(&rule);
  }
  return rules;
}

INSTANTIATE_TEST_SUITE_P(Rules, Noise, testing::ValuesIn(predicted_rules()), [](const auto& info) {
  std::string name(info.param->name);
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
});

TEST(Helpers, BiasCorrectionAndAdaptiveRoundingMakeTheErrorSmaller) {
  const CalibratedModel model = calibrated(residual_model(5), 12, 21);
  const CalibratedModel unseen = calibrated(residual_model(5), 6, 900);
  for (const char* layer : {"conv2", "conv3", "dense"}) {
    auto error = [&](const CalibratedModel& data, const char* rule) {
      return measured_error(data, changed(model, {{std::string("product ") + layer, rule}}), layer);
    };
    SCOPED_TRACE(layer);
    EXPECT_LT(error(model, "w4-g32-corrected"), error(model, "w4-g32"));
    EXPECT_LT(error(unseen, "w4-g32-corrected"), 1.02 * error(unseen, "w4-g32"));
    EXPECT_LT(error(model, "w4-g32-adaptive"), 0.9 * error(model, "w4-g32"));
    // 24 samples say little about sums of 384 terms.
    const double most = std::string(layer) == "dense" ? 1.5 : 0.9;
    EXPECT_LT(error(unseen, "w4-g32-adaptive"), most * error(unseen, "w4-g32"));
  }
}

}  // namespace
}  // namespace hoist
