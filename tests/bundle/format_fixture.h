// The files of a bundle of small_plan(), and the messages of the runtime for changed files.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <initializer_list>
#include <string>

#include "backends/bundle/bundle.h"
#include "backends/bundle/plan_format.h"
#include "backends/runtime/hoist_runtime.h"
#include "tests/bundle/small_plan.h"

namespace hoist {

class FormatTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto result = write_bundle(small_plan(), bundle_);
    ASSERT_TRUE(result.ok()) << result.errors().front().text();
  }
  /// The runtime's error message, or "" if it accepts the files.
  std::string complaint() {
    char message[1024] = "";
    const hoist_status status = hoist_verify_files(bundle_.c_str(), nullptr, nullptr, message, sizeof message);
    EXPECT_EQ(status == HOIST_OK, message[0] == 0);
    EXPECT_TRUE(status == HOIST_OK || status == HOIST_BAD_BUNDLE) << hoist_status_name(status);
    return message;
  }
  // The message for the changed plan.
  std::string complaint_of(Plan plan, const std::function<void(Plan&)>& change) {
    change(plan);
    write_text(bundle_ / "plan.bin", encode_plan(plan, {}));
    return complaint();
  }
  void reseal(const std::string& name, const std::string& content) { write_sealed(bundle_ / name, content); }
  /// The number of plans that the runtime refuses, among those with one byte of `plan` replaced by one of `values`.
  size_t refused_of(const std::string& plan, std::initializer_list<int> values) {
    size_t refused = 0;
    for (size_t i = 24; i + 8 < plan.size(); ++i) {
      for (const int value : values) {
        std::string changed = plan;
        if (changed[i] == static_cast<char>(value)) continue;
        changed[i] = static_cast<char>(value);
        reseal("plan.bin", changed);
        refused += complaint().empty() ? 0 : 1;
      }
    }
    return refused;
  }
  TestFolder folder_;
  std::filesystem::path bundle_ = folder_ / "a.hoist";
};

}  // namespace hoist
