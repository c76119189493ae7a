// The worked example of a neural rule (tools/pages/contributing.md): one row, and the test of every row: its error on
// data is the predicted one.
#include <gtest/gtest.h>

#include "neural_rules/formats/product_weights.h"
#include "neural_rules/rewrite/rewrite_model.h"
#include "tests/neural_rules/calibrated_model.h"

namespace hoist {
namespace {

NeuralRule u4_g16() {
  // clang-format off
  return {"u4-g16", RuleFamily::weights, SiteKind::product, ErrorModel::noise,
          "weights in 4 bits, one scale and zero point per 16 terms of a sum", "constant weights of type f32",
          "",     // source
          false,  // needs no calibration
          {},     // not a format of values
          ProductScheme{{.scalar = Scalar::u4, .block = 16, .symmetric = false, .search_clipping = true}}};
  // clang-format on
}

TEST(NeuralRuleExample, OneRowAddsARule) {
  EXPECT_EQ(find_neural_rule("u4-g16"), nullptr);
  const ScopedNeuralRules added({u4_g16()});
  const NeuralRule* rule = find_neural_rule("u4-g16");
  ASSERT_NE(rule, nullptr);

  const CalibratedModel model = calibrated(matrix_model(6), measured_samples, 21);
  int sites = 0;
  for (const Site& site : find_sites(model.program)) {
    if (why_not(*rule, site, model.program)) continue;
    auto predicted = predicted_noise(model.program, site, *rule, model.statistics);
    ASSERT_TRUE(predicted.ok()) << predicted.errors()[0].text();
    auto rewritten = rewrite(model.program, {{site.key(), std::string(rule->name)}}, model.statistics);
    ASSERT_TRUE(rewritten.ok()) << rewritten.errors()[0].text();
    const double measured = measured_error(model, rewritten->program, site.value);
    EXPECT_LT(measured, 1.5 * *predicted);
    EXPECT_GT(1.5 * measured, *predicted);
    ++sites;
  }
  EXPECT_EQ(sites, 2);
}

}  // namespace
}  // namespace hoist
