// Compares the ONNX project's own backend cases with gaps.txt, which lists exactly the failing ones, each with a
// reason. HOIST_UPDATE_GOLDEN=1 writes the file anew; HOIST_CASES=PART runs only the cases whose names contain PART and
// prints why each fails.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "frontend/frontend.h"
#include "tests/conformance/archive.h"
#include "tests/conformance/runner.h"

namespace hoist::conformance {
namespace {

constexpr char heading[] =
    "# Cases of the ONNX backend tests that hoist does not pass at the level of expressions, and why.\n"
    "# Exact in both directions: a case that passes must not stand here, one that does not must.\n"
    "# Written by conformance_test with HOIST_UPDATE_GOLDEN=1.\n";

// The counts as rows of C++, for hoist operators.
std::string counts_text(const std::map<std::pair<std::string, std::string>, std::pair<int, int>>& counts) {
  std::string out =
      "// Operator, cases with a layer of it, and how many pass; written by conformance_test with "
      "HOIST_UPDATE_GOLDEN=1.\n";
  for (const auto& [name, numbers] : counts) {
    out += "{\"" + name.first + "\", \"" + name.second + "\", " + std::to_string(numbers.first) + ", " +
           std::to_string(numbers.second) + "},\n";
  }
  return out;
}

class RecordedModels : public Archive {
 protected:
  RecordedModels() : Archive("models/golden.tar.gz") {}
};

// Evaluates whole models without kernels: failures here come from the frontend or the passes.
TEST_F(RecordedModels, AgreeWithTheirRecordedOutputs) {
  for (const char* name :
       {"mnist-8", "mlperftiny_ic_resnet8_fp32", "mlperftiny_ic_large_fp32", "mlperftiny_kws_dscnn_fp32",
        "mlperftiny_vww_mobilenet_fp32", "mlperftiny_ad_autoencoder_fp32", "micro_kws_m_static_fp32",
        "squeezenet1.1_fp32", "ultraface_version-RFB-320", "yolox_nano", "mlperftiny_kws_dscnn_int8_qdq",
        "micro_kws_m_static_qdq", "micro_kws_m_static_qoperator", "mnist-cnn_convinteger_quant"}) {
    fs::create_symlink(shared_ / "models" / (std::string(name) + ".onnx"), folder_ / name / "model.onnx");
    auto result = run_case(folder_ / name, {1e-3, 1e-4});
    EXPECT_TRUE(result.ok()) << name << ": " << plain(result.errors()[0].text());
  }
}

// Layers of all versions, in forms in which exporters write them.
TEST_F(VersionCases, MeanWhatTheirVersionSays) {
  const std::vector<fs::path> cases = cases_in(folder_);
  EXPECT_GE(cases.size(), 400u);
  for (const fs::path& path : cases) {
    const auto result = run_case(path, {2e-3, 2e-3});
    EXPECT_TRUE(result.ok()) << path.filename() << ": " << plain(result.errors()[0].text());
  }
}

TEST_F(OnnxCases, PassExceptTheGaps) {
  const char* part = std::getenv("HOIST_CASES");
  const fs::path file = fs::path(HOIST_SOURCE_DIR) / "tests/conformance/gaps.txt";
  std::map<std::string, std::string> failures;
  const fs::path counts_file = fs::path(HOIST_SOURCE_DIR) / "tools/driver/operator_cases.inc";
  auto on_device = read_gaps(fs::path(HOIST_SOURCE_DIR) / "tests/conformance/gaps_on_device.txt");
  ASSERT_TRUE(on_device.ok()) << on_device.errors()[0].text();
  std::map<std::pair<std::string, std::string>, std::pair<int, int>> counts;  // all and passing cases by operator
  int passed = 0, without_kernel = 0;
  for (const char* group : {"node", "simple", "pytorch-converted", "pytorch-operator"}) {
    for (const fs::path& path : cases_in(folder_ / "data" / group)) {
      std::string name = path.filename().string();
      if (part != nullptr && name.find(part) == std::string::npos) continue;
      auto result = run_case(path, agreement_of(name));
      auto used = list_operators(path / "model.onnx");
      for (const OperatorUse& use : used ? *used : std::vector<OperatorUse>{}) {
        auto& [cases, passing] = counts[{use.domain, use.operation}];
        ++cases;
        passing += result.ok() && on_device->count(name) == 0 ? 1 : 0;
      }
      if (result.ok()) {
        ++passed;
        continue;
      }
      EXPECT_TRUE(failures.emplace(name, plain(result.errors()[0].text())).second)
          << name << " is the name of two cases";
      // A case that only lacks a kernel must pass in the interpreter.
      if (failures[name].find("no kernel exists for") != std::string::npos) {
        auto interpreted = run_case(path, agreement_of(name), false);
        EXPECT_TRUE(interpreted.ok()) << name << ": " << plain(interpreted.errors()[0].text());
        ++without_kernel;
      }
      if (part != nullptr) std::printf("%s: %s\n", name.c_str(), failures[name].c_str());
    }
  }
  RecordProperty("passed", passed);
  RecordProperty("gaps", static_cast<int>(failures.size()));
  std::printf("%d cases pass, %zu do not, of which %d are right without kernels\n", passed, failures.size(),
              without_kernel);
  if (part != nullptr) return;
  if (std::getenv("HOIST_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(file) << write_gaps(heading, failures);
    std::ofstream(counts_file) << counts_text(counts);
    return;
  }
  auto gaps = read_gaps(file);
  ASSERT_TRUE(gaps.ok()) << gaps.errors()[0].text();
  for (const auto& [name, reason] : failures) EXPECT_EQ(gaps->count(name), 1u) << name << " fails: " << reason;
  for (const auto& [name, reason] : *gaps)
    EXPECT_EQ(failures.count(name), 1u) << name << " is listed as a gap, but passes";
  EXPECT_GT(passed, 0);
  std::ostringstream counted;
  counted << std::ifstream(counts_file).rdbuf();
  EXPECT_EQ(counted.str(), counts_text(counts)) << "HOIST_UPDATE_GOLDEN=1 writes tools/driver/operator_cases.inc anew";
}

}  // namespace
}  // namespace hoist::conformance
