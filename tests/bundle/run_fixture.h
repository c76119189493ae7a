// Bundles that are written to a temporary folder and run on the first OpenCL device.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "backends/bundle/bundle.h"
#include "backends/opencl/bundle_runner.h"
#include "ir/base/seeded.h"
#include "tests/bundle/small_plan.h"

#define ASSERT_OK(result) ASSERT_TRUE((result).ok()) << (result).errors().front().text()

namespace hoist {

class RunTest : public testing::Test {
 public:
  /// For small_plan().
  static Tensor input(uint64_t seed) { return seeded_tensor(Scalar::f32, {1, 14, 14}, seed, 0, -3, 3); }

 protected:
  std::filesystem::path written(const Plan& plan, const std::string& name = "a.hoist") {
    const auto result = write_bundle(plan, folder_ / name);
    EXPECT_TRUE(result.ok()) << result.errors().front().text();
    return folder_ / name;
  }
  RunOptions options() {
    RunOptions out;
    out.cache_folder = (folder_ / "cache").string();
    return out;
  }
  TestFolder folder_;
};

}  // namespace hoist
