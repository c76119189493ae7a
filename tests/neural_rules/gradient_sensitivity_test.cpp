// Tests that gradients estimate the sensitivities that noise measures.
#include "neural_rules/calibration/gradient_sensitivity.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <set>

#include "neural_rules/calibration/sensitivity.h"
#include "tests/neural_rules/calibrated_model.h"
#include "tests/neural_rules/evaluated_model.h"

namespace hoist::gradient_sensitivity_test {

using testing::HasSubstr;

// A model of one product: the sensitivity of its input is the mean square of the weights' columns, less their mean.
TEST(GradientSensitivity, OfAProductIsThatOfItsWeights) {
  ModelBuilder b(3);
  b.input("x", {1, 16});
  b.layer("Relu", "relu", {"x"});
  const std::string weights = b.constant("w", {16, 5}, 0.4);
  b.layer("MatMul", "product", {"relu", weights});
  const Program program = b.finish({"product"});
  const std::vector<Site> sites = find_sites(program);
  auto made = GradientSensitivity::make(program, sites, {});
  ASSERT_TRUE(made.ok()) << made.errors()[0].text();
  auto runnable = evaluated_models()(made->model());
  ASSERT_TRUE(runnable.ok()) << runnable.errors()[0].text();
  const Samples samples = normal_samples(program, 400, 5);
  const RunOutputs reference(samples.runs.size(), {normal_tensor({1, 5}, 1, 0, 1)});
  const auto estimates = made->estimate(**runnable, samples, reference, samples.runs.size(), 1);
  ASSERT_TRUE(estimates.ok()) << estimates.errors()[0].text();
  const Tensor& w = program.constants.at(weights);
  double squares = 0;
  for (int64_t row = 0; row < 16; ++row) {
    double mean = 0;
    for (int64_t column = 0; column < 5; ++column) mean += w.float_at(row * 5 + column) / 5;
    for (int64_t column = 0; column < 5; ++column) squares += std::pow(w.float_at(row * 5 + column) - mean, 2);
  }
  // The sensitivity of the output is the mean square of five signs less their mean.
  const std::map<std::string, double> expected = {{"relu", squares / 5}, {"product", 0.8}};
  std::set<std::string> found;
  for (size_t i = 0; i < sites.size(); ++i) {
    if (expected.count(sites[i].value) == 0) continue;
    EXPECT_NEAR((*estimates)[i] / expected.at(sites[i].value), 1, 0.1) << sites[i].key();
    found.insert(sites[i].value);
  }
  EXPECT_EQ(found.size(), 2U);
}

Sensitivity studied(const Program& program, int64_t samples, bool gradients) {
  SensitivityOptions options;
  options.noise_samples = samples;
  options.alone_seconds = 0;
  options.always_gradients = gradients;
  options.device = {.half = true, .bf16 = true};
  auto found = find_sensitivity(program, normal_samples(program, samples, 7), evaluated_models(), options);
  HOIST_CHECK(found.ok(), found.errors()[0].text());
  return std::move(*found);
}

TEST(GradientSensitivity, IsWhatNoiseMeasures) {
  for (const Program& program : {residual_model(5), residual_model(8)}) {
    const Sensitivity measured = studied(program, 16, false), estimated = studied(program, 16, true);
    ASSERT_EQ(measured.studied.size(), estimated.studied.size());
    size_t estimates = 0;
    double product = 1;
    for (size_t i = 0; i < measured.studied.size(); ++i) {
      const double ratio = estimated.studied[i].sensitivity / measured.studied[i].sensitivity;
      if (ratio == 1) continue;  // measured in both
      EXPECT_GT(ratio, 0.5) << measured.sites[i].key();
      EXPECT_LT(ratio, 2) << measured.sites[i].key();
      product *= ratio;
      ++estimates;
    }
    ASSERT_FALSE(estimated.notes.empty());
    EXPECT_THAT(estimated.notes.back(), HasSubstr("gradients estimate the sensitivities; at"));
    ASSERT_GT(estimates, 0U);
    EXPECT_NEAR(std::pow(product, 1.0 / static_cast<double>(estimates)), 1, 0.25);
  }
}

TEST(GradientSensitivity, NeedsDerivatives) {
  ModelBuilder b(3);
  b.input("x", {1, 16});
  b.layer("Relu", "relu", {"x"});
  b.layer("ArgMax", "out", {"relu"}, {{"axis", int64_t{1}}});
  const Program program = b.finish({"out"});
  EXPECT_FALSE(GradientSensitivity::make(program, find_sites(program), {}).ok());
}

TEST(EstimateQuality, SaysWhetherEstimatesAreUsed) {
  const double unknown = std::nan("");
  const EstimateQuality good = quality_of({1, 2, 3, 9}, {2, 2, 2.5, unknown});
  EXPECT_EQ(good.count, 3U);
  EXPECT_DOUBLE_EQ(good.least, 0.5);
  EXPECT_DOUBLE_EQ(good.median, 1);
  EXPECT_DOUBLE_EQ(good.most, 1.2);
  EXPECT_TRUE(good.is_good());
  EXPECT_FALSE(quality_of({1, 2, 3}, {4, 8, 12}).is_good());
  EXPECT_THAT(quality_of({1, 2, 3}, {4, 8, 12}).text(), HasSubstr("which are not used"));
  EXPECT_FALSE(quality_of({1}, {unknown}).is_good());
}

}  // namespace hoist::gradient_sensitivity_test
