// Compares predicted with measured errors of random assignments on a device. HOIST_PREDICT_MODEL and HOIST_PREDICT_DATA
// select another model and its data, for 100 assignments.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "tests/neural_rules/random_assignment.h"
#include "tests/support/prediction_quality.h"
#include "tools/data/samples.h"
#include "tools/study/device_models.h"

namespace hoist::prediction_test {

struct Findings {
  PredictionQuality quality;
  double all_off = 0;  ///< SQNR of the multi-variant program, with all rules off, relative to the model
  int compared = 0;    ///< assignments compared with the solver's front
};

Findings findings_of(const std::filesystem::path& path, const std::string& data, int assignments, int rivals) {
  auto model = open_for_study(path, {});
  HOIST_CHECK(model.ok(), model.errors()[0].text());
  auto samples = read_samples(data, input_infos(model->program), {.numbers = true});
  HOIST_CHECK(samples.ok(), samples.errors()[0].text());
  SensitivityOptions options;
  options.measure_all = false;
  auto found = find_sensitivity(model->program, *samples, model->prepare, options);
  HOIST_CHECK(found.ok(), found.errors()[0].text());
  const auto variants = make_multi_variant(found->program, found->sites, found->rules);
  HOIST_CHECK(variants.ok(), variants.errors()[0].text());
  auto runnable = model->prepare(variants->model);
  HOIST_CHECK(runnable.ok(), runnable.errors()[0].text());
  // The same number of runs as for measuring each rule alone.
  const size_t runs = std::min(samples->runs.size(), static_cast<size_t>(options.alone_samples));
  const auto under = [&](const Assignment& assignment) {
    const std::vector<Tensor> fed = variants->inputs(found->sites, assignment);
    auto outputs = run_all(**runnable, *samples, runs, [&](size_t) { return std::vector<Tensor>(fed); });
    HOIST_CHECK(outputs.ok(), outputs.errors()[0].text());
    return *outputs;
  };
  // With all rules off it equals the model, except for the rounding of differently fused kernels.
  const OutputKinds kinds = output_kinds(model->program);
  const RunOutputs off = under({});
  auto difference = compare_runs(kinds, *samples, found->reference, off);
  HOIST_CHECK(difference.ok(), difference.errors()[0].text());
  Findings out;
  out.all_off = difference->sqnr;
  std::vector<std::pair<double, double>> pairs;
  std::mt19937_64 random(5);
  for (int i = 0; i < assignments; ++i) {
    const Assignment assignment = random_assignment(*found, random);
    auto metrics = compare_runs(kinds, *samples, off, under(assignment));
    HOIST_CHECK(metrics.ok(), metrics.errors()[0].text());
    pairs.emplace_back(predicted_error(*found, assignment), metrics->mean_squared_error);
  }
  out.quality = prediction_quality(pairs);
  if (rivals == 0) return out;
  std::vector<UniformBaseline> uniform;
  auto all = add_uniform_baselines(uniform, *found, model->prepare, options);
  HOIST_CHECK(all.ok(), all.errors()[0].text());
  const CostModel costs = cost_model(*found, uniform, Objective::time);
  out.compared = compare_front(*found, costs, uniform, rivals, random);
  return out;
}

void expect_good(const Findings& findings) {
  // Its kernels sum in another order than the model's.
  EXPECT_GT(findings.all_off, 90);
  EXPECT_GT(findings.quality.median_ratio, 0.8);
  EXPECT_LT(findings.quality.median_ratio, 1.25);
  EXPECT_GE(findings.quality.share_within_two, 0.9);
}

TEST(Prediction, ErrorsAddUpOnTheDevice) {
  const std::filesystem::path models = std::filesystem::path(HOIST_SOURCE_DIR) / "models";
  expect_good(findings_of(models / "digits_fully_connected.onnx",
                          (models / "digits_fully_connected_calibration.npz").string(), 10, 0));
}

TEST(Prediction, OfAModelByHand) {
  const char* model = std::getenv("HOIST_PREDICT_MODEL");
  const char* data = std::getenv("HOIST_PREDICT_DATA");
  if (model == nullptr || data == nullptr) GTEST_SKIP() << "HOIST_PREDICT_MODEL and HOIST_PREDICT_DATA are not set";
  const Findings findings = findings_of(model, data, 100, 300);
  fmt::print(
      "measured over predicted: median {:.3f}, {:.0f} % within a factor of 2; all off {:.1f} dB; the front holds "
      "against {} assignments\n",
      findings.quality.median_ratio, 100 * findings.quality.share_within_two, findings.all_off, findings.compared);
  expect_good(findings);
}

}  // namespace hoist::prediction_test
