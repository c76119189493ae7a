// Compares f16 contractions on a device with the interpreter, bit for bit, with and without native f16 arithmetic.
#include <gtest/gtest.h>

#include "backends/bundle/bundle.h"
#include "ir/base/temporary_folder.h"
#include "neural_rules/functions/sums.h"
#include "tests/tools/driver/rewritten_plan.h"
#include "tests/tools/program.h"
#include "tools/study/device_models.h"

namespace hoist::half_sums_test {

TEST(HalfSums, HaveTheInterpretersBitsOnADevice) {
  auto model = open_for_study(std::filesystem::path(HOIST_SOURCE_DIR) / "models" / "digits_residual.onnx", {});
  ASSERT_TRUE(model.ok());
  const NeuralRule& rule = *find_neural_rule(half_rule);
  Assignment assignment;
  Statistics statistics;
  for (const Site& site : find_sites(model->program)) {
    if (site.kind != SiteKind::product || why_not(rule, site, model->program)) continue;
    assignment[site.key()] = rule.name;
    statistics[site.input].low = -16;
    statistics[site.input].high = 16;
  }
  ASSERT_FALSE(assignment.empty());
  auto plan = rewritten_plan(*model, assignment, statistics, {});
  ASSERT_TRUE(plan.ok()) << plan.errors()[0].text();
  auto folder = TemporaryFolder::make();
  ASSERT_TRUE(folder.ok());
  const std::string bundle = (folder->path() / "bundle").string();
  ASSERT_TRUE(write_bundle(*plan, bundle).ok());
  const Ran verified = run_hoist({"verify", bundle});
  EXPECT_EQ(verified.code, 0) << verified.out << verified.err;
  const Ran explained =
      run_hoist({"explain", bundle, assignment.begin()->first.substr(std::string("product ").size())});
  EXPECT_NE(explained.out.find("f16-arithmetic at layer"), std::string::npos) << explained.out;
}

}  // namespace hoist::half_sums_test
