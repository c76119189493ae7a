// tools/pages/contributing.md quotes examples that the tests of this folder compile and run.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace {

namespace fs = std::filesystem;
const fs::path root = HOIST_SOURCE_DIR;

// Without white space, so that line breaks may differ.
std::string squeezed(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (std::isspace(static_cast<unsigned char>(c)) == 0) out += c;
  }
  return out;
}

std::string content_of(const fs::path& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// A block of code belongs to the file of this folder that the text before it names.
TEST(Contributing, QuotesTheExamples) {
  std::set<std::string> quoted;
  std::istringstream lines(content_of(root / "tools/pages/contributing.md"));
  std::string named, block;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("```", 0) != 0) {
      if (inside) block += line + "\n";
      const std::string prefix = "tests/examples/";
      if (const size_t at = line.find(prefix); !inside && at != std::string::npos)
        named = line.substr(at, line.find('`', at) - at);
      continue;
    }
    inside = !inside;
    if (inside) {
      block.clear();
      continue;
    }
    if (named.empty()) continue;
    EXPECT_NE(squeezed(content_of(root / named)).find(squeezed(block)), std::string::npos)
        << "contributing.md quotes text that is not in " << named << ":\n"
        << block;
    quoted.insert(named);
    named.clear();
  }
  for (const char* example : {"operator", "rule", "neural_rule", "strategy"})
    EXPECT_EQ(quoted.count(std::string("tests/examples/") + example + "_test.cpp"), 1U) << example;
}

}  // namespace
