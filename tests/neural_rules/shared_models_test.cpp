// Tests real models from the folder in HOIST_SHARED: sites are found, and integers everywhere change the output only by
// the noise of 8 bits.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "frontend/frontend.h"
#include "ir/operators/operators.h"
#include "lowering/graph/program.h"
#include "neural_rules/model/constants.h"
#include "neural_rules/rewrite/rewrite_model.h"
#include "tests/neural_rules/calibrated_model.h"
#include "tests/support/lower_model.h"

namespace hoist::shared_models_test {

Program read(const std::string& name) {
  ReadOptions options;
  options.has_operator = [](const std::string& domain, const std::string& operation) {
    return find_operator(domain, operation, INT32_MAX) != nullptr;
  };
  auto program = read_model(std::filesystem::path(std::getenv("HOIST_SHARED")) / "models" / name, options);
  HOIST_CHECK(program.ok(), program.errors()[0].text());
  auto folded = find_pass("fold-batch-norm")->run(*program, {});
  HOIST_CHECK(folded.ok(), folded.errors()[0].text());
  fold_constant_shapes(*program);
  return *program;
}

// Every contraction in integers whose input can be stored as a value, and every value in u8.
Assignment integers_everywhere(const Program& program) {
  Assignment assignment;
  for (const Site& site : find_sites(program)) {
    if (site.kind == SiteKind::value) assignment[site.key()] = "u8";
  }
  for (const Site& site : find_sites(program)) {
    if (site.kind == SiteKind::product && !why_not(*find_neural_rule("w8a8"), site, program))
      assignment[site.key()] = "w8a8";
  }
  return assignment;
}

struct SharedCase {
  const char* file;
  double least_sqnr;  ///< dB, on random data
};

class SharedModel : public testing::TestWithParam<SharedCase> {};

TEST_P(SharedModel, InIntegersEverywhere) {
  if (std::getenv("HOIST_SHARED") == nullptr) GTEST_SKIP() << "HOIST_SHARED is not set";
  const CalibratedModel model = calibrated(read(GetParam().file), 3, 1);
  const Assignment assignment = integers_everywhere(model.program);
  auto changed = rewrite(model.program, assignment, model.statistics);
  ASSERT_TRUE(changed.ok()) << changed.errors()[0].text();
  EXPECT_EQ(changed->uses.size(), assignment.size());
  const std::string output = model.program.outputs[0];
  const double error = measured_error(model, changed->program, output);
  const double sqnr = 10 * std::log10(model.statistics.at(output).mean_square / error);
  EXPECT_GT(sqnr, GetParam().least_sqnr);
  RecordProperty("sqnr", fmt::format("{:.1f}", sqnr));
  fmt::print("{}: {} sites in integers, {:.1f} dB\n", GetParam().file, assignment.size(), sqnr);
}

INSTANTIATE_TEST_SUITE_P(Files, SharedModel,
                         testing::Values(SharedCase{"mlperftiny_ic_resnet8_fp32.onnx", 15},
                                         SharedCase{"mlperftiny_kws_dscnn_fp32.onnx", 15},
                                         SharedCase{"mlperftiny_ad_autoencoder_fp32.onnx", 15},
                                         SharedCase{"mnist-8.onnx", 15}),
                         [](const auto& info) {
                           std::string name(info.param.file);
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

}  // namespace hoist::shared_models_test
