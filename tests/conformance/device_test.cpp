// Runs the ONNX project's own backend cases as bundles on the first device and compares with gaps_on_device.txt, which
// lists exactly the failing ones, each with a reason. The cases form ten parts. HOIST_DEVICE_CASES=all runs every part;
// any other text selects one part, always the same for the same text. HOIST_UPDATE_GOLDEN=1 writes the lines of the
// selected parts anew; HOIST_CASES=PART runs only the cases whose names contain PART, from all parts, and prints why
// each fails.
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <fstream>

#include "ir/base/stopwatch.h"
#include "tests/conformance/archive.h"
#include "tests/conformance/device_batch.h"
#include "tests/conformance/runner.h"

namespace hoist::conformance {
namespace {

constexpr char device_heading[] =
    "# Cases of the ONNX backend tests that hoist does not pass as bundles on PoCL, and why.\n"
    "# Exact in both directions: a case that passes must not stand here, one that does not must.\n"
    "# Written by conformance_test with HOIST_UPDATE_GOLDEN=1 and HOIST_DEVICE_CASES=all.\n";

constexpr size_t part_count = 10;

// FNV-1a, which is the same on every machine.
size_t part_of(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3;
  return (hash >> 32) % part_count;
}

class OnnxCasesOnDevice : public OnnxCases, public testing::WithParamInterface<size_t> {
 protected:
  void SetUp() override {
    const char* text = std::getenv("HOIST_DEVICE_CASES");
    const std::string chosen = text == nullptr ? "" : text;
    if (std::getenv("HOIST_CASES") == nullptr && chosen != "all" && part_of(chosen) != GetParam())
      GTEST_SKIP() << "another part is chosen";
    OnnxCases::SetUp();
  }
};

// Other parts may be written in parallel.
void update_gaps(const fs::path& file, const std::map<std::string, std::string>& results) {
  const int lock = open(file.c_str(), O_RDWR | O_CREAT, 0644);
  flock(lock, LOCK_EX);
  auto gaps = read_gaps(file);
  for (const auto& [name, message] : results) {
    gaps->erase(name);
    if (!message.empty()) (*gaps)[name] = message;
  }
  std::ofstream(file) << write_gaps(device_heading, *gaps);
  close(lock);
}

TEST_P(OnnxCasesOnDevice, PassExceptTheGaps) {
  const char* part = std::getenv("HOIST_CASES");
  std::vector<fs::path> cases;
  for (const char* group : {"node", "simple", "pytorch-converted", "pytorch-operator"}) {
    for (const fs::path& path : cases_in(folder_ / "data" / group)) {
      const std::string name = path.filename().string();
      if (part_of(name) != GetParam()) continue;
      if (part == nullptr || name.find(part) != std::string::npos) cases.push_back(path);
    }
  }
  const Stopwatch stopwatch;
  std::map<std::string, std::string> results = run_on_device(cases, folder_);
  ASSERT_EQ(results.size(), cases.size());
  size_t failed = 0;
  for (auto& [name, message] : results) {
    message = plain(message);
    if (message.empty()) continue;
    ++failed;
    if (part != nullptr) std::printf("%s: %s\n", name.c_str(), message.c_str());
  }
  std::printf("%zu cases pass, %zu do not; %.0f s\n", results.size() - failed, failed, stopwatch.seconds());
  if (part != nullptr) return;
  const fs::path file = fs::path(HOIST_SOURCE_DIR) / "tests/conformance/gaps_on_device.txt";
  if (std::getenv("HOIST_UPDATE_GOLDEN") != nullptr) return update_gaps(file, results);
  auto gaps = read_gaps(file);
  ASSERT_TRUE(gaps.ok()) << gaps.errors()[0].text();
  for (const auto& [name, message] : results) {
    EXPECT_EQ(gaps->count(name), message.empty() ? 0u : 1u)
        << name << (message.empty() ? " is listed as a gap, but passes" : " fails: " + message);
  }
  for (const auto& [name, reason] : *gaps) {
    if (part_of(name) == GetParam()) {
      EXPECT_EQ(results.count(name), 1u) << name << " is listed as a gap, but is not a case";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, OnnxCasesOnDevice, testing::Range(size_t{0}, part_count));

}  // namespace
}  // namespace hoist::conformance
