// Golden texts: one file per case under tests/golden, input and whole expected text. HOIST_UPDATE_GOLDEN=1 rewrites
// them; a missing file fails, so that a case is never silently empty. The input is in the test (expect_golden), or in
// the file alone (golden_cases): a new case of that kind is a file that ends before its output.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace hoist {

inline constexpr char golden_separator[] =
    "\n-- ================================================================ gives\n";

inline bool updates_golden() {
  const char* update = std::getenv("HOIST_UPDATE_GOLDEN");
  return update != nullptr && std::string(update) == "1";
}

inline std::filesystem::path golden_path(const std::string& name) {
  return std::filesystem::path(HOIST_SOURCE_DIR) / "tests" / "golden" / name;
}

/// Compares `output` with the text that tests/golden/NAME has below the input. NAME has an ending for the kind of the
/// text.
inline void expect_golden(const std::string& name, const std::string& input, const std::string& output) {
  std::filesystem::path path = golden_path(name);
  std::string actual = input + golden_separator + output + "\n";
  if (updates_golden()) {
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

/// A file that has its own input.
struct GoldenCase {
  std::string name;   ///< for expect_golden: "passes/merge-producers.lift"
  std::string stem;   ///< "merge-producers"
  std::string input;  ///< the text above the separator
};

/// All files of tests/golden/FOLDER, by name.
inline std::vector<GoldenCase> golden_cases(const std::string& folder) {
  std::vector<GoldenCase> out;
  for (const auto& entry : std::filesystem::directory_iterator(golden_path(folder))) {
    std::ifstream file(entry.path(), std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    std::string input = text.str();
    input.resize(std::min(input.size(), input.find(golden_separator)));
    while (!input.empty() && input.back() == '\n') input.pop_back();
    out.push_back({folder + "/" + entry.path().filename().string(), entry.path().stem().string(), input});
  }
  std::sort(out.begin(), out.end(), [](const GoldenCase& a, const GoldenCase& b) { return a.name < b.name; });
  return out;
}

}  // namespace hoist
