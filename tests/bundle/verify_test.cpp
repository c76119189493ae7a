// Tests the check of a bundle against its own expected values: right bundles pass, and wrong kernels are found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/bundle/run_fixture.h"

namespace hoist {
namespace {

using testing::HasSubstr;

std::vector<std::string> failed_subjects(const std::vector<Finding>& findings) {
  std::vector<std::string> out;
  for (const Finding& finding : findings) {
    if (!finding.passed) out.push_back(finding.subject);
  }
  return out;
}

TEST_F(RunTest, ALaunchThatDoesLessThanItsStepsIsFound) {
  Plan plan = joined_plan();
  plan.kernels[0].source +=
      "#define hoist_group_increment(...) if (end - begin == 1) hoist_group_increment(__VA_ARGS__)\n";
  auto runner = BundleRunner::open(written(plan), options());
  ASSERT_OK(runner);
  auto findings = runner->verify();
  ASSERT_OK(findings);
  EXPECT_THAT(failed_subjects(*findings), testing::ElementsAre("launch three"));
}

TEST_F(RunTest, VerifyComparesLaunchesWithTheirSteps) {
  auto runner = BundleRunner::open(written(joined_plan()), options());
  ASSERT_OK(runner);
  auto findings = runner->verify();
  ASSERT_OK(findings);
  const auto found = std::find_if(findings->begin(), findings->end(),
                                  [](const Finding& finding) { return finding.subject == "launch three"; });
  ASSERT_NE(found, findings->end());
  EXPECT_TRUE(found->passed) << found->message;
  EXPECT_EQ(found->compared, 2 * 64u) << "the first and the third step write to the same array";
}

TEST_F(RunTest, VerifyComparesEveryKernelAndTheModel) {
  auto runner = BundleRunner::open(written(small_plan()), options());
  ASSERT_OK(runner);
  auto findings = runner->verify();
  ASSERT_OK(findings);
  std::map<std::string, Finding> by_subject;
  for (const Finding& finding : *findings) {
    EXPECT_TRUE(finding.passed) << finding.subject << ": " << finding.message;
    by_subject[finding.subject] = finding;
  }
  for (const char* file :
       {"file plan.bin", "file weights.bin", "file kernels.cl", "file expressions.lift", "file check.bin",
        "file derivation.lift", "file manifest.json", "file runtime/hoist_runtime.c", "file runtime/hoist_runtime.h"}) {
    EXPECT_TRUE(by_subject.count(file)) << file;
  }
  EXPECT_EQ(by_subject["kernel shift_x"].compared, 80u) << "once more on extreme numbers";
  EXPECT_EQ(by_subject["kernel border"].compared, 52u);
  EXPECT_EQ(by_subject["kernel blur"].compared, 40u);
  EXPECT_EQ(by_subject["output y"].compared, 66u);
}

TEST_F(RunTest, VerifyFindsAKernelThatIsWrong) {
  Plan plan = small_plan();
  plan.kernels[2].source.replace(plan.kernels[2].source.find("k < 9"), 5, "k < 8");
  auto runner = BundleRunner::open(written(plan), options());
  ASSERT_OK(runner);
  auto findings = runner->verify();
  ASSERT_OK(findings);
  EXPECT_THAT(failed_subjects(*findings), testing::ElementsAre("kernel blur", "output y"));
}

// Every value is right, but one element too many is written, on either side.
TEST_F(RunTest, VerifyFindsAKernelThatWritesOutsideItsArrays) {
  const std::string last = "plus(2.0f * p0[row * 14 + j], p1[j]);\n";
  for (const std::string place : {"-1", "196", "-1024", "1219"}) {
    Plan plan = small_plan();
    std::string& source = plan.kernels[0].source;
    source.insert(source.find(last) + last.size(), "  if (row == 3) result[" + place + "] = 1.0f;\n");
    auto runner = BundleRunner::open(written(plan, "at" + place + ".hoist"), options());
    ASSERT_OK(runner);
    const auto findings = runner->verify();
    ASSERT_OK(findings);
    for (const Finding& finding : *findings) {
      EXPECT_EQ(finding.passed, finding.subject != "kernel shift_x") << place << ": " << finding.message;
      if (!finding.passed) {
        EXPECT_EQ(finding.message, "writes outside its arrays: 4 bytes before or after result changed");
      }
    }
  }
}

// The out-of-bounds element that it reads is NaN.
TEST_F(RunTest, VerifyFindsAKernelThatReadsOutsideItsArrays) {
  Plan plan = small_plan();
  std::string& source = plan.kernels[0].source;
  source.replace(source.find("p1[j]"), 5, "p1[j] + 0.0f * p1[j - 1]");
  auto runner = BundleRunner::open(written(plan), options());
  ASSERT_OK(runner);
  const auto findings = runner->verify();
  ASSERT_OK(findings);
  for (const Finding& finding : *findings) {
    if (finding.subject == "kernel shift_x") {
      EXPECT_THAT(finding.message, HasSubstr("nan, expected")) << finding.message;
    }
  }
}

TEST_F(RunTest, VerifyFindsAKernelThatIsWrongOnExtremeNumbersAlone) {
  const std::string wrong[] = {"(p1[j] == p1[j] ? p1[j] : 0.0f)", "min(p1[j], 1e20f)"};
  for (size_t i = 0; i < std::size(wrong); ++i) {
    Plan plan = small_plan();
    std::string& source = plan.kernels[0].source;
    source.replace(source.find("p1[j]"), 5, wrong[i]);
    auto runner = BundleRunner::open(written(plan, "extremes" + std::to_string(i) + ".hoist"), options());
    ASSERT_OK(runner);
    const auto findings = runner->verify();
    ASSERT_OK(findings);
    for (const Finding& finding : *findings)
      EXPECT_EQ(finding.passed, finding.subject != "kernel shift_x") << finding.subject << ": " << finding.message;
  }
}

TEST_F(RunTest, VerifyDemandsTheLastBit) {
  Plan plan = small_plan();
  plan.model_check.clear();
  float& value = *reinterpret_cast<float*>(plan.kernels[0].check_values.data() + 8);
  value = std::nextafter(value, 1e9f);
  auto runner = BundleRunner::open(written(plan), options());
  ASSERT_OK(runner);
  const auto shift_passes = [&] {
    const auto findings = runner->verify();
    if (!findings.ok()) return false;
    for (const Finding& finding : *findings) {
      if (finding.subject == "kernel shift_x") return finding.passed;
    }
    return false;
  };
  EXPECT_FALSE(shift_passes());
  plan.kernels[0].tolerance = {false, false, 1e-6, 1e-6};
  runner = BundleRunner::open(written(plan, "b.hoist"), options());
  ASSERT_OK(runner);
  EXPECT_TRUE(shift_passes());
}

}  // namespace
}  // namespace hoist
