// Golden texts: one file a case under tests/golden, input and whole expected text. HOIST_UPDATE_GOLDEN=1 rewrites them;
// a missing file fails, so that a case is never silently empty.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace hoist {

/// Compares `output` with what tests/golden/NAME holds below the input. NAME has an ending that says what the text is.
inline void expect_golden(const std::string& name, const std::string& input, const std::string& output) {
  std::filesystem::path path = std::filesystem::path(HOIST_SOURCE_DIR) / "tests" / "golden" / name;
  std::string actual =
      input + "\n-- ================================================================ gives\n" + output + "\n";
  const char* update = std::getenv("HOIST_UPDATE_GOLDEN");
  if (update != nullptr && std::string(update) == "1") {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << actual;
    return;
  }
  std::ifstream file(path, std::ios::binary);
  ASSERT_TRUE(file) << path << " is missing; HOIST_UPDATE_GOLDEN=1 writes it";
  std::ostringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(expected.str(), actual) << name << " differs; HOIST_UPDATE_GOLDEN=1 rewrites it";
}

}  // namespace hoist
