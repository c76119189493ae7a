// Runs the kernels of the ONNX project's own cases on Oclgrind, with the mappings for CPUs and for GPUs: no access
// outside an array, no race between work-items, no wrong call, and the same outputs for any initial content of arrays.
// Inputs are seeded: kernels must stay inside their arrays for any input. The cases form a hundred parts;
// HOIST_SIMULATOR_CASES=all runs every part, any other text selects one, always the same for the same text;
// HOIST_CASES=PART runs the cases whose names contain PART, from all parts.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <fstream>
#include <sstream>
#include <tuple>

#include "backends/bundle/bundle.h"
#include "ir/base/stopwatch.h"
#include "tests/conformance/archive.h"
#include "tests/conformance/device_batch.h"
#include "tests/conformance/runner.h"

namespace hoist::conformance {
namespace {

constexpr size_t simulated_parts = 100, cases_in_a_simulation = 24;

int run_command(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string content_of(const fs::path& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

// FNV-1a, which is the same on every machine.
size_t simulated_part(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3;
  return (hash >> 32) % simulated_parts;
}

class OnnxCasesSimulated : public OnnxCases, public testing::WithParamInterface<std::tuple<bool, size_t>> {
 protected:
  bool gpu() const { return std::get<0>(GetParam()); }

  // The cases of this test: a tenth of all, restricted to the selected part.
  static std::string chosen() {
    const char* text = std::getenv("HOIST_SIMULATOR_CASES");
    return text == nullptr ? "" : text;
  }
  bool is_mine(const std::string& name) const {
    const size_t part = simulated_part(name);
    if (part % 10 != std::get<1>(GetParam())) return false;
    if (const char* words = std::getenv("HOIST_CASES")) return name.find(words) != std::string::npos;
    return chosen() == "all" || part == simulated_part(chosen());
  }
  void SetUp() override {
    const bool any = std::getenv("HOIST_CASES") != nullptr || chosen() == "all" ||
                     simulated_part(chosen()) % 10 == std::get<1>(GetParam());
    if (!any) GTEST_SKIP() << "another part is chosen";
    if (run_command("command -v oclgrind >/dev/null") != 0) GTEST_SKIP() << "oclgrind is not installed";
    OnnxCases::SetUp();
  }

  // The output of Oclgrind and the program for a bundle, "" if there is none.
  std::string run_simulator(const fs::path& bundle, const std::string& options) {
    const fs::path log = folder_ / "log", said = folder_ / "said";
    fs::remove(log);
    const int code =
        run_command("timeout 300 oclgrind " + options + " --check-api --data-races --log '" + log.string() + "' '" +
                    HOIST_VERIFY_BUNDLE "' model '" + bundle.string() + "' >'" + said.string() + "' 2>&1");
    const std::string found = content_of(log);
    if (code == 0 && found.empty()) return "";
    return fmt::format("exit code {}\n{}\n{}", code, content_of(said), found.substr(0, 2000));
  }

  // The findings for the cases. Oclgrind 21.10 computes the negation of a vector's true as 254, and compilers transform
  // min(x, 1) into such negations; so a finding counts only if unoptimised kernels, which take four times as long, have
  // it too.
  std::string simulate(const std::vector<fs::path>& cases, std::vector<std::string>& names) {
    Profile profile;
    profile.gpu = gpu();
    profile.vector_width = gpu() ? 4 : 16;
    const Plan plan = plan_for_simulator(cases, profile, names);
    if (plan.steps.empty()) return "";
    const fs::path bundle = folder_ / "simulated.hoist";
    auto written = write_bundle(plan, bundle, {true, {}});
    if (!written.ok()) return written.errors()[0].text();
    return run_simulator(bundle, "").empty() ? "" : run_simulator(bundle, "--build-options -cl-opt-disable");
  }

  // Bisects the cases with findings, down to single cases.
  void check(const std::vector<fs::path>& cases, size_t& run) {
    std::vector<std::string> names;
    const std::string found = simulate(cases, names);
    if (found.empty() || cases.size() == 1) {
      run += names.size();
      EXPECT_EQ(found, "") << (cases.empty() ? "" : cases[0].filename().string());
      return;
    }
    const auto middle = cases.begin() + static_cast<std::ptrdiff_t>(cases.size() / 2);
    check({cases.begin(), middle}, run);
    check({middle, cases.end()}, run);
  }
};

TEST_P(OnnxCasesSimulated, NothingToReport) {
  std::vector<fs::path> cases;
  for (const char* group : {"node", "simple", "pytorch-converted", "pytorch-operator"}) {
    for (const fs::path& path : cases_in(folder_ / "data" / group)) {
      if (is_mine(path.filename().string())) cases.push_back(path);
    }
  }
  const Stopwatch stopwatch;
  size_t run = 0;
  for (size_t i = 0; i < cases.size(); i += cases_in_a_simulation) {
    const auto end = cases.begin() + static_cast<std::ptrdiff_t>(std::min(i + cases_in_a_simulation, cases.size()));
    check({cases.begin() + static_cast<std::ptrdiff_t>(i), end}, run);
  }
  std::printf("%zu of %zu cases on Oclgrind; %.0f s\n", run, cases.size(), stopwatch.seconds());
}

INSTANTIATE_TEST_SUITE_P(Mappings, OnnxCasesSimulated,
                         testing::Combine(testing::Bool(), testing::Range(size_t{0}, size_t{10})), [](const auto& one) {
                           return fmt::format("{}_{}", std::get<0>(one.param) ? "gpu" : "cpu", std::get<1>(one.param));
                         });

}  // namespace
}  // namespace hoist::conformance
