// Programs with control flow, compiled and run on a device and as native code, for tests that compare them with the
// interpreter.
#pragma once

#include <gmock/gmock.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "backends/bundle/bundle.h"
#include "backends/halide/native/native_target.h"
#include "backends/opencl/bundle_runner.h"
#include "backends/runtime/hoist_runtime.h"
#include "ir/base/seeded.h"
#include "ir/base/temporary_folder.h"
#include "ir/program/program_values.h"
#include "ir/text/program_text.h"
#include "tests/support/lower_model.h"
#include "tools/driver/compile.h"
#include "tools/driver/self_check.h"
#include "tools/inspection/derivation.h"

namespace hoist {

inline Program parsed(const std::string& text) {
  auto program = parse_program(text);
  HOIST_CHECK(program.ok(), text + program.errors()[0].text());
  for (Definition& definition : program->definitions) {
    if (definition.layers.empty()) definition.layers = {definition.value};  // as in a model
  }
  return *program;
}

inline std::vector<Tensor> interpreted(const Program& program, const std::vector<Tensor>& inputs) {
  auto outputs = program_outputs(program, inputs);
  HOIST_CHECK(outputs.ok(), outputs.errors()[0].text());
  return std::move(*outputs);
}

inline Tensor drawn(const std::vector<int64_t>& shape, uint64_t seed, double low = -1, double high = 1) {
  return seeded_tensor(Scalar::f32, shape, seed, 0, low, high);
}

inline void expect_close(const std::vector<Tensor>& found, const std::vector<Tensor>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    SCOPED_TRACE(i);
    ASSERT_EQ(found[i].shape(), expected[i].shape());
    for (int64_t k = 0; k < found[i].size(); ++k) {
      const double a = found[i].float_at(k), b = expected[i].float_at(k);
      ASSERT_LE(std::abs(a - b), 1e-5 + 1e-4 * std::abs(b)) << "position " << k;
    }
  }
}

/// On a device and, if this processor has a target, as native code.
class ControlTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!GetParam()) return;
    for (const NativeTarget& target : native_targets()) {
      if (hoist_runs_target(target.name) == 0) continue;
      options_.targets = {target.name};
      profile_ = profile_of(target);
    }
    if (options_.targets.empty()) GTEST_SKIP() << "no native target is for this processor";
  }

  void compile(const Program& program) {
    auto lowered = lower_model(program, options_.lower, profile_);
    ASSERT_TRUE(lowered.ok()) << lowered.errors()[0].text();
    groups_ = lowered->groups;
    auto plan = make_plan(std::move(*lowered), options_, profile_);
    ASSERT_TRUE(plan.ok()) << plan.errors()[0].text();
    plan_ = std::move(*plan);
    auto folder = TemporaryFolder::make();
    ASSERT_TRUE(folder.ok());
    folder_.emplace(std::move(*folder));
    auto written = write_bundle(plan_, bundle(), {.force = true});
    ASSERT_TRUE(written.ok()) << written.errors()[0].text();
  }

  std::filesystem::path bundle() const { return folder_->path() / "a.hoist"; }

  Result<BundleRunner> open() const {
    RunOptions how;
    how.separate_buffers = separate_;
    return BundleRunner::open(bundle(), how);
  }

  std::vector<Tensor> run(const std::vector<Tensor>& inputs) {
    auto runner = open();
    HOIST_CHECK(runner.ok(), runner.ok() ? "" : runner.errors()[0].text());
    auto out = runner->run(inputs);
    HOIST_CHECK(out.ok(), out.ok() ? "" : out.errors()[0].text());
    return std::move(*out);
  }

  // Checks every kernel that runs, on its real inputs, and that the derivation leads to these kernels in this order.
  void check_kernels() {
    auto check = self_check(bundle(), plan_, groups_);
    ASSERT_TRUE(check.ok()) << check.errors()[0].text();
    EXPECT_FALSE(check->mismatch) << check->mismatch->comparison.message;
    EXPECT_GT(check->kernels, 0u);
    auto info = read_bundle(bundle(), true);
    ASSERT_TRUE(info.ok());
    auto findings = check_derivation(*info, nullptr);
    ASSERT_TRUE(findings.ok());
    for (const Finding& finding : *findings) EXPECT_TRUE(finding.passed) << finding.subject << ": " << finding.message;
  }

  CompileOptions options_;
  Profile profile_;
  Plan plan_;
  std::vector<LoweredGroup> groups_;
  std::optional<TemporaryFolder> folder_;
  bool separate_ = false;
};

}  // namespace hoist
