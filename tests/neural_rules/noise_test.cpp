// The self-test of every rule for values and contractions: its error on data is the error predicted from statistics,
// within a factor of 1.5.
#include <gtest/gtest.h>

#include <cmath>

#include "neural_rules/formats/product_weights.h"
#include "neural_rules/rewrite/rewrite_model.h"
#include "tests/neural_rules/calibrated_model.h"
#include "tests/neural_rules/evaluated_model.h"

namespace hoist::noise_test {

constexpr double factor = 1.5;

RewrittenModel changed(const CalibratedModel& model, const Assignment& assignment) {
  auto result = rewrite(model.program, assignment, model.statistics);
  HOIST_CHECK(result.ok(), result.errors()[0].text());
  return std::move(*result);
}

// The other sites that the rule needs: every value in the format that an integer contraction reads.
Assignment needed_by(const NeuralRule& rule, const Program& program) {
  Assignment assignment;
  if (!rule.input()) return assignment;
  for (const Site& site : find_sites(program)) {
    if (site.kind == SiteKind::value) assignment[site.key()] = row(*rule.input()).name;
  }
  return assignment;
}

// The error at the contraction's output, or where the value is f32 again; empty if no array holds exactly the value's
// elements.
double measured_at(const CalibratedModel& model, const Site& site, const RewrittenModel& before,
                   const RewrittenModel& after) {
  const auto against = [&](const std::string& value) {
    return difference(model, before.program, site.value, after.program, value, after.functions);
  };
  if (site.kind == SiteKind::product) return against(site.value);
  for (const NamedCall& layer : named_calls(after.program)) {
    if (layer.name == site.value + "/dequantise") return against(layer.outputs[0]);
  }
  return NAN;
}

class Noise : public testing::TestWithParam<const NeuralRule*> {};

TEST_P(Noise, IsWhatWasPredicted) {
  const NeuralRule& rule = *GetParam();
  int measured_sites = 0;
  std::vector<Program> programs = {residual_model(5), matrix_model(6)};
  if (rule.half()) programs.push_back(outlier_model());  // most sums of the other models are too long for this rule
  for (const Program& program : programs) {
    // Second moments of sums of 96 terms need more than that many vectors.
    const int samples = rule.product && rule.product->adaptive ? 32 : measured_samples;
    const CalibratedModel model = calibrated(program, samples, 21);
    for (const Site& site : find_sites(program)) {
      if (why_not(rule, site, program)) continue;
      SCOPED_TRACE(program.definitions[0].value + ": " + site.key());
      auto predicted = predicted_noise(program, site, rule, model.statistics);
      ASSERT_TRUE(predicted.ok()) << predicted.errors()[0].text();
      Assignment assignment = needed_by(rule, program);
      const RewrittenModel before = changed(model, assignment);
      assignment[site.key()] = rule.name;
      const RewrittenModel after = changed(model, assignment);
      const double measured = measured_at(model, site, before, after);
      if (std::isnan(measured)) continue;
      EXPECT_GT(measured, 0);
      EXPECT_LT(measured, factor * *predicted);
      EXPECT_GT(measured * factor, *predicted);
      ++measured_sites;
    }
  }
  EXPECT_GT(measured_sites, 2);
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
  const CalibratedModel model = calibrated(residual_model(5), 32, 21);
  const CalibratedModel unseen = calibrated(residual_model(5), 6, 900);
  for (const char* layer : {"conv2", "conv3", "dense"}) {
    auto error = [&](const CalibratedModel& data, const char* rule) {
      return measured_error(data, changed(model, {{std::string("product ") + layer, rule}}).program, layer);
    };
    SCOPED_TRACE(layer);
    EXPECT_LT(error(model, "w4-g32-corrected"), error(model, "w4-g32"));
    EXPECT_LT(error(unseen, "w4-g32-corrected"), 1.02 * error(unseen, "w4-g32"));
    EXPECT_LT(error(model, "w4-g32-adaptive"), 0.9 * error(model, "w4-g32"));
    EXPECT_LT(error(unseen, "w4-g32-adaptive"), error(unseen, "w4-g32"));
  }
}

}  // namespace hoist::noise_test
