// hoist bench: how long a bundle takes, and each of its kernels.
#include <nlohmann/json.hpp>

#include "ir/stopwatch.h"
#include "neural_rules/choice/interval.h"
#include "tools/command.h"
#include "tools/json_answer.h"
#include "tools/opened_bundle.h"
#include "tools/terminal.h"

namespace hoist {
namespace {

struct BenchCommand {
  std::string bundle, json;
  double seconds = 2;
  RunOptions options;
};

// From inputs in the program's memory to outputs in the program's memory.
Attempt<double> one_run(BundleRunner& bundle) {
  const Stopwatch stopwatch;
  HOIST_STEP_VOID(ExitCode::device, bundle.run());
  return stopwatch.seconds() * 1e3;
}

Attempt<> bench(const BenchCommand& command) {
  HOIST_ATTEMPT(BundleInfo info, bundle_info(command.bundle));
  const Stopwatch loading;
  HOIST_ATTEMPT(BundleRunner bundle, open_checked(command.bundle, command.options));
  const double load = loading.seconds() * 1e3;
  HOIST_STEP_VOID(ExitCode::device, bundle.share_memory());
  const std::vector<Tensor> inputs = seeded_inputs(bundle, info.plan, 1);
  for (size_t i = 0; i < inputs.size(); ++i) HOIST_STEP_VOID(ExitCode::device, bundle.set_input(i, inputs[i]));
  Progress progress;
  progress.show("timing whole runs");
  std::vector<double> runs;
  for (const Stopwatch warm_up; warm_up.seconds() < command.seconds * 0.2;) {
    HOIST_ATTEMPT([[maybe_unused]] double time, one_run(bundle));
  }
  for (const Stopwatch timing; runs.size() < 10 || timing.seconds() < command.seconds;) {
    HOIST_ATTEMPT(double time, one_run(bundle));
    runs.push_back(time);
  }
  progress.show("timing kernels");
  std::vector<std::vector<double>> steps(bundle.steps().size());
  size_t profiles = 0;
  for (const Stopwatch timing; profiles < 10 || (timing.seconds() < command.seconds * 0.5 && profiles < 10000);
       ++profiles) {
    HOIST_STEP(std::vector<double> seconds, ExitCode::device, bundle.profile());
    for (size_t i = 0; i < seconds.size(); ++i) steps[i].push_back(seconds[i] * 1e3);
  }
  const TimeSummary whole = summarise_times(runs);
  nlohmann::ordered_json out = {{"lower_quartile_ms", whole.lower_quartile.value},
                                {"median_ms", whole.median.value},
                                {"minimum_ms", whole.minimum},
                                {"load_ms", load},
                                {"device", bundle.device_name()},
                                {"threads", bundle.threads()},
                                {"runs", runs.size()},
                                {"cache", bundle.cache_outcome()},
                                {"kernels", nlohmann::ordered_json::array()}};
  std::vector<std::vector<std::string>> rows = {{"kernel", "ms", "GFLOP/s", "layers"}};
  for (size_t i = 0; i < steps.size(); ++i) {
    const StepInfo& step = bundle.steps()[i];
    const TimeSummary times = summarise_times(steps[i]);
    const double rate =
        times.lower_quartile.value > 0 ? static_cast<double>(step.operations) / times.lower_quartile.value / 1e6 : 0;
    out["kernels"].push_back({{"name", step.kernel},
                              {"layers", step.layers},
                              {"lower_quartile_ms", times.lower_quartile.value},
                              {"median_ms", times.median.value},
                              {"minimum_ms", times.minimum},
                              {"operations", step.operations}});
    std::string layers;
    for (const std::string& layer : step.layers) layers += (layers.empty() ? "" : ", ") + layer;
    rows.push_back(
        {step.kernel, fmt::format("{:.4f}", times.lower_quartile.value), fmt::format("{:.1f}", rate), layers});
  }
  if (!command.json.empty()) {
    HOIST_STEP_VOID(ExitCode::bad_input, write_json(command.json, out));
  }
  if (command.json != "-") {
    say_line(
        "{}: lower quartile {:.4f} ms, median {:.4f} ms, minimum {:.4f} ms of {} runs; loaded in {:.1f} ms (cache: {})",
        bundle.model_name(), whole.lower_quartile.value, whole.median.value, whole.minimum, runs.size(), load,
        bundle.cache_outcome());
    say_line("on {}, {} compute units; runs go from inputs to outputs in host memory, kernels are timed by the device",
             bundle.device_name(), bundle.threads());
    say(table(rows));
  }
  return ExitCode::done;
}

}  // namespace

void add_bench(CLI::App& program, Action& action) {
  auto options = std::make_shared<BenchCommand>();
  CLI::App& command = add_command(program, action, "bench", "time a bundle and each of its kernels on seeded inputs",
                                  "  hoist bench digits.hoist --json digits.json", options, bench);
  add_bundle_options(command, options->bundle, options->options);
  add_json_option(command, options->json, "the times");
  command.add_option("--seconds", options->seconds, "how long to measure")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();
}

}  // namespace hoist
