#include "tools/bundle.h"

#include <CLI/CLI.hpp>

#include "backends/bundle/bundle.h"
#include "ir/near_miss.h"

namespace hoist {

void add_run_options(CLI::App& command, RunOptions& options) {
  command
      .add_option("--device", options.device,
                  "run on this device: an index, a name or a part of one (default: the first)")
      ->type_name("DEVICE");
  command.add_option("--threads", options.threads, "use at most so many threads of a CPU device")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
}

Attempt<BundleRunner> open_bundle(const std::filesystem::path& folder, const RunOptions& options) {
  HOIST_STEP_VOID(ExitCode::bad_input, read_bundle(folder));
  HOIST_STEP(BundleRunner runner, ExitCode::device, BundleRunner::open(folder, options));
  return runner;
}

Attempt<size_t> input_called(const BundleRunner& bundle, const std::string& name) {
  std::vector<std::string> names;
  for (const ArrayInfo& input : bundle.inputs()) names.push_back(input.name);
  const auto place = std::find(names.begin(), names.end(), name);
  if (place != names.end()) return static_cast<size_t>(place - names.begin());
  std::string all;
  for (const std::string& n : names) all += (all.empty() ? "" : ", ") + n;
  const std::string near = near_miss(name, names);
  return input_failure("input " + name, "the model has no such input",
                       near.empty() ? (all.empty() ? "it has none" : "it has " + all) : "did you mean " + near + "?");
}

std::string file_name(const std::string& value) {
  std::string out = value;
  for (char& c : out) {
    const bool kept =
        (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
    if (!kept) c = '_';
  }
  return out;
}

}  // namespace hoist
