// Predicted against measured errors of random assignments on a device. For a model of one's own: HOIST_PREDICT_MODEL
// and HOIST_PREDICT_DATA name the model and its data, 100 assignments are drawn then.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "neural_rules/sensitivity.h"
#include "tools/prepare.h"
#include "tools/samples.h"

namespace hoist {
namespace {

Assignment random_assignment(const Sensitivity& sensitivity, std::mt19937_64& random) {
  Assignment out;
  for (const SiteRule& rule : sensitivity.rules) {
    // Errors far above the budgets that anybody asks for saturate, which no sum predicts.
    if (random() % 4 == 0 && rule.needs.empty()) out.emplace(sensitivity.sites[rule.site].key(), rule.rule);
  }
  return out;
}

double predicted(const Sensitivity& sensitivity, const Assignment& assignment) {
  double sum = 0;
  for (const StudySite& site : sensitivity.studied) {
    const auto chosen = assignment.find(site.site.key());
    for (const Candidate& candidate : site.candidates) {
      if (chosen != assignment.end() && candidate.rule == chosen->second) sum += candidate.error_alone;
    }
  }
  return sum;
}

PredictionQuality quality_of(const std::filesystem::path& path, const std::string& data, int assignments) {
  auto model = open_for_study(path, {});
  HOIST_CHECK(model.ok(), model.failure().problems[0].text());
  auto samples = read_samples(data, model->graph.inputs, {.numbers = true});
  HOIST_CHECK(samples.ok(), samples.errors()[0].text());
  SensitivityOptions options;
  options.kind = output_kind(model->graph);
  options.measure_all = false;
  auto found = find_sensitivity(model->graph, *samples, model->prepare, options);
  HOIST_CHECK(found.ok(), found.errors()[0].text());
  const Switchboard board = make_switchboard(model->graph, found->sites, found->rules);
  auto runnable = model->prepare(board.model);
  HOIST_CHECK(runnable.ok(), runnable.errors()[0].text());
  // As many as each rule alone was measured with.
  const size_t runs = std::min(samples->runs.size(), static_cast<size_t>(options.alone_samples));
  const auto under = [&](const Assignment& assignment) {
    const std::vector<Tensor> fed = board.inputs(found->sites, assignment, Switchboard::npos, 0);
    auto outputs = run_all(**runnable, *samples, runs, [&](size_t) { return fed; });
    HOIST_CHECK(outputs.ok(), outputs.errors()[0].text());
    return *outputs;
  };
  // With all off it is the model, but for the rounding of kernels that were formed differently.
  const std::vector<Tensor> off = under({});
  auto difference = compare_runs(options.kind, *samples, found->reference, off);
  HOIST_CHECK(difference.ok(), difference.errors()[0].text());
  EXPECT_GT(difference->sqnr, 100);
  std::vector<std::pair<double, double>> pairs;
  std::mt19937_64 random(5);
  for (int i = 0; i < assignments; ++i) {
    const Assignment assignment = random_assignment(*found, random);
    auto metrics = compare_runs(options.kind, *samples, off, under(assignment));
    HOIST_CHECK(metrics.ok(), metrics.errors()[0].text());
    pairs.emplace_back(predicted(*found, assignment), metrics->mean_squared_error);
  }
  return prediction_quality(pairs);
}

TEST(Prediction, ErrorsAddUpOnTheDevice) {
  const std::filesystem::path models = std::filesystem::path(HOIST_SOURCE_DIR) / "models";
  const PredictionQuality quality = quality_of(models / "digits_fully_connected.onnx",
                                               (models / "digits_fully_connected_calibration.npz").string(), 10);
  EXPECT_GT(quality.median_ratio, 0.8);
  EXPECT_LT(quality.median_ratio, 1.25);
  EXPECT_GE(quality.share_within_two, 0.9);
}

TEST(Prediction, OfAModelByHand) {
  const char* model = std::getenv("HOIST_PREDICT_MODEL");
  const char* data = std::getenv("HOIST_PREDICT_DATA");
  if (model == nullptr || data == nullptr) GTEST_SKIP() << "HOIST_PREDICT_MODEL and HOIST_PREDICT_DATA are not set";
  const PredictionQuality quality = quality_of(model, data, 100);
  fmt::print("measured over predicted: median {:.3f}, {:.0f} % within a factor of 2\n", quality.median_ratio,
             100 * quality.share_within_two);
  EXPECT_GT(quality.median_ratio, 0.8);
  EXPECT_LT(quality.median_ratio, 1.25);
  EXPECT_GE(quality.share_within_two, 0.9);
}

}  // namespace
}  // namespace hoist
