// Tests contractions with sums in f16: the row against arithmetic by hand, its conditions, its error bound, and its
// ONNX form. noise_test.cpp checks its error.
#include "neural_rules/functions/sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lowering/graph/program.h"
#include "neural_rules/choice/candidates.h"
#include "neural_rules/functions/functions.h"
#include "tests/neural_rules/calibrated_model.h"
#include "tests/neural_rules/evaluated_model.h"
#include "tests/support/lower_model.h"

namespace hoist::sums_test {

using testing::HasSubstr;

const std::string rule(half_rule);

double in_half(double x) { return float_from_bits(Scalar::f16, bits_from_float(Scalar::f16, x)); }

// y = x w with sums of this many terms.
Program product_of_terms(int64_t terms) {
  ModelBuilder b(1);
  b.input("x", {3, terms});
  b.layer("MatMul", "y", {"x", b.constant("w", {terms, 5}, 1)});
  return b.finish({"y"});
}

TEST(Sums, EveryStepIsRoundedToF16) {
  const CalibratedModel model = calibrated(product_of_terms(64), 1, 7);
  auto changed = rewrite(model.program, {{"product y", rule}}, model.statistics);
  ASSERT_TRUE(changed.ok()) << changed.errors()[0].text();
  const Tensor x = model.samples[0].at("x"), w = model.program.constants.at("w");
  const Tensor y = all_values(changed->program, model.samples[0], changed->functions).at("y");
  double moved = 0;
  for (int64_t row = 0; row < 3; ++row) {
    for (int64_t column = 0; column < 5; ++column) {
      double sum = 0, exact = 0;
      for (int64_t k = 0; k < 64; ++k) {
        const double a = x.float_at(row * 64 + k), b = w.float_at(k * 5 + column);
        sum = in_half(sum + in_half(in_half(a) * in_half(b)));
        exact += a * b;
      }
      EXPECT_EQ(y.float_at(row * 5 + column), sum);
      moved = std::max(moved, std::abs(sum - exact));
    }
  }
  EXPECT_GT(moved, 1e-4);
}

TEST(Sums, LongOnesStayInF32) {
  const Program program = product_of_terms(65);
  const Site site = find_sites(program).back();
  EXPECT_THAT(why_not(*find_neural_rule(rule), site, program).value_or(""), HasSubstr("65 terms, at most 64"));
  auto lowered = lower_calls(program, true);
  ASSERT_TRUE(lowered.ok());
  auto under = approximate(lowered->definitions.back().expression, rule);
  ASSERT_FALSE(under.ok());
  EXPECT_THAT(under.errors()[0].text(), HasSubstr("no function that the rule approximates"));
}

TEST(Sums, TransposedConvolutionsStayInF32) {
  ModelBuilder b(1);
  b.input("x", {1, 3, 4, 4});
  b.layer("ConvTranspose", "y", {"x", b.constant("w", {3, 2, 2, 2}, 1)});
  const Program program = b.finish({"y"});
  EXPECT_THAT(why_not(*find_neural_rule(rule), find_sites(program).back(), program).value_or(""),
              HasSubstr("transposed convolution"));
}

TEST(Sums, AreBoundedByWhatCalibrationSaw) {
  CalibratedModel model = calibrated(product_of_terms(16), 2, 7);
  auto changed = rewrite(model.program, {{"product y", rule}}, model.statistics);
  ASSERT_TRUE(changed.ok());
  EXPECT_EQ(changed->functions, (std::map<std::string, std::string>{{"y", rule}}));
  EXPECT_THAT(changed->uses[0].proof, testing::StartsWith("sums stay below "));
  model.statistics.at("x").high = 30000;
  auto refused = rewrite(model.program, {{"product y", rule}}, model.statistics);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.errors()[0].text(), HasSubstr("f16 ends at 65504"));
}

TEST(Sums, AreCandidatesOfDevicesThatComputeInF16Alone) {
  const Program program = product_of_terms(16);
  const std::vector<Site> sites = find_sites(program);
  const auto offered = [&](bool half) {
    const CandidateRules found = *candidate_rules(program, sites, {}, {.half = half});
    const auto is_it = [](const CandidateRule& candidate) { return candidate.rule == rule; };
    return std::any_of(found.rules.back().begin(), found.rules.back().end(), is_it);
  };
  EXPECT_TRUE(offered(true));
  EXPECT_FALSE(offered(false));
  const Preferences pins = *parse_preferences("forbid * w8\npin y " + rule, "wishes");
  EXPECT_TRUE(candidate_rules(program, sites, pins, {.half = true}).ok());
  auto refused = candidate_rules(program, sites, pins, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.errors()[0].text(), HasSubstr("wishes:2: rule f16-arithmetic needs arithmetic in f16"));
  EXPECT_TRUE(candidate_rules(program, sites, *parse_preferences("forbid * " + rule, "wishes"), {}).ok());
}

TEST(Sums, OnnxHasTheOperatorInF16BetweenCasts) {
  Program program = product_of_terms(16);
  program.constants["y/f16"] = Tensor(Scalar::f32, {});  // a name that is taken
  const auto written = with_half_products(program, {"y"});
  ASSERT_TRUE(written.ok()) << written.errors()[0].text();
  const std::vector<NamedCall> layers = named_calls(*written);
  ASSERT_EQ(layers.size(), 4u);
  EXPECT_EQ(layers[2].operation, "MatMul");
  EXPECT_EQ(layers[2].inputs[0], layers[0].outputs[0]);
  EXPECT_EQ(layers[2].inputs[1], layers[1].outputs[0]);
  EXPECT_EQ(layers[3].inputs[0], layers[2].outputs[0]);
  EXPECT_EQ(layers[3].outputs[0], "y");
  EXPECT_NE(layers[2].outputs[0], "y/f16");
  for (size_t i : {0u, 1u, 3u}) EXPECT_EQ(layers[i].operation, "Cast");
  // hoist itself sums in f32 here and rounds once, which is closer to the exact sum than f16 in every step.
  const Bindings x = {{"x", normal_tensor({3, 16}, 1, 0, 4)}};
  const Tensor exact = all_values(product_of_terms(16), x).at("y"), half = all_values(*written, x).at("y");
  for (int64_t i = 0; i < exact.size(); ++i) EXPECT_NEAR(half.float_at(i), exact.float_at(i), 0.02);
}

}  // namespace hoist::sums_test
