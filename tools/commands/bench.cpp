// hoist bench: the run time of a bundle and of each of its kernels.
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "ir/base/stopwatch.h"
#include "neural_rules/choice/solver/interval.h"
#include "tools/base/files.h"
#include "tools/base/json_answer.h"
#include "tools/base/terminal.h"
#include "tools/cli/command.h"
#include "tools/driver/opened_bundle.h"
#include "tools/inspection/device_rates.h"
#include "tools/inspection/prediction.h"
#include "tools/inspection/roofline.h"
#include "tools/queue/evaluation_jobs.h"
#include "tools/queue/gather.h"
#include "tools/queue/packed_folder.h"
#include "tools/records/tuning_database.h"
#include "tools/report/kernels.h"

namespace hoist {
namespace {

// From inputs in the program's memory to outputs in the program's memory.
Result<double> one_run(BundleRunner& bundle) {
  const Stopwatch stopwatch;
  HOIST_TRY_VOID(with_kind(ErrorKind::device, bundle.run()));
  return stopwatch.seconds() * 1e3;
}

struct Timed {
  BundleInfo info;
  BundleRunner runner;
  double load_ms = 0;
  std::vector<double> runs = {};  // milliseconds
};

Result<Timed> open_timed(const std::string& folder, const RunOptions& options) {
  HOIST_TRY(BundleInfo info, bundle_info(folder, options.sizes));
  const Stopwatch loading;
  HOIST_TRY(BundleRunner runner, open_checked(folder, options));
  const double load = loading.seconds() * 1e3;
  HOIST_TRY_VOID(with_kind(ErrorKind::device, runner.share_memory()));
  const std::vector<Tensor> inputs = seeded_inputs(runner, info.plan, 1);
  for (size_t i = 0; i < inputs.size(); ++i)
    HOIST_TRY_VOID(with_kind(ErrorKind::device, runner.set_input(i, inputs[i])));
  return Timed{std::move(info), std::move(runner), load};
}

// Interleaved runs, so that a machine that slows down slows all of them; each bundle runs for `seconds` in total.
Result<Nothing> time_runs(const std::vector<Timed*>& bundles, double seconds) {
  constexpr int turns = 10;
  for (int turn = 0; turn < turns; ++turn) {
    for (Timed* timed : bundles) {
      for (const Stopwatch warm_up; warm_up.seconds() < seconds * 0.2 / turns;) {
        HOIST_TRY([[maybe_unused]] double time, one_run(timed->runner));
      }
      const Stopwatch timing;
      do {
        HOIST_TRY(double time, one_run(timed->runner));
        timed->runs.push_back(time);
      } while (timing.seconds() < seconds / turns);
    }
  }
  return Nothing{};
}

double gigas(double amount, double milliseconds) { return milliseconds > 0 ? amount / milliseconds / 1e6 : 0; }

// The kernels' times in seconds, and the bound of each kernel if peaks are given.
void describe_steps(const Timed& timed, const std::vector<std::vector<double>>& steps,
                    const std::optional<Peaks>& peaks, const Prediction& predicted, nlohmann::ordered_json& out,
                    std::vector<std::vector<std::string>>& rows) {
  std::vector<TimeSummary> times;
  double total = 0, at_least = 0;
  for (std::vector<double> samples : steps) {
    for (double& sample : samples) sample *= 1e3;
    times.push_back(summarise_times(samples));
    total += times.back().lower_quartile.value;
  }
  rows.push_back({"kernel", "ms", "GFLOP/s"});
  if (peaks) rows.back().insert(rows.back().end(), {"predicted", "share", "GB/s", "bound", "of it"});
  rows.back().push_back("layers");
  for (size_t i = 0; i < steps.size(); ++i) {
    const StepInfo& step = timed.runner.steps()[i];
    const double time = times[i].lower_quartile.value;
    const uint64_t runs = timed.runner.step_runs(i);
    const int64_t operations = step.operations * static_cast<int64_t>(runs);
    nlohmann::ordered_json entry = {{"name", step.kernel},
                                    {"layers", step.layers},
                                    {"lower_quartile_ms", time},
                                    {"median_ms", times[i].median.value},
                                    {"minimum_ms", times[i].minimum},
                                    {"operations", operations}};
    rows.push_back({step.kernel, fmt::format("{:.4f}", time),
                    fmt::format("{:.1f}", gigas(static_cast<double>(operations), time))});
    if (peaks) {
      const KernelWork work = work_of(timed.info.plan.kernels[static_cast<size_t>(step.kernel_index)], runs);
      const Roof roof = roof_of(*peaks, work);
      const double share = time > 0 ? roof.seconds * 1e3 / time : 0;
      at_least += roof.seconds * 1e3;
      entry["bytes"] = work.bytes;
      entry["bound"] = name_of(roof.bound);
      entry["bound_ms"] = roof.seconds * 1e3;
      entry["predicted_ms"] = predicted.steps[i].seconds * 1e3;
      rows.back().insert(rows.back().end(), {fmt::format("{:.4f}", predicted.steps[i].seconds * 1e3),
                                             fmt::format("{:.0f} %", total > 0 ? 100 * time / total : 0),
                                             fmt::format("{:.1f}", gigas(static_cast<double>(work.bytes), time)),
                                             std::string(name_of(roof.bound)), fmt::format("{:.0f} %", 100 * share)});
    }
    rows.back().push_back(fmt::format("{}", fmt::join(step.layers, ", ")));
    out["kernels"].push_back(std::move(entry));
  }
  if (!peaks) return;
  rows.push_back({"all kernels", fmt::format("{:.4f}", total), "", fmt::format("{:.4f}", predicted.seconds * 1e3),
                  "100 %", "", "", fmt::format("{:.0f} %", total > 0 ? 100 * at_least / total : 0), ""});
  out["kernels_ms"] = total;
  out["bound_ms"] = at_least;
  if (predicted.is_known) out["predicted"] = to_json(predicted);
}

// Stores the times of the kernels, from which bundles that contain them predict their time.
Result<Nothing> store_times(const std::string& file, const Timed& timed, const std::vector<std::vector<double>>& steps,
                            double run) {
  const Plan& plan = timed.info.plan;
  HOIST_TRY(const Profile profile, parse_profile(plan.profile, timed.info.plan.model_name));
  std::vector<double> seconds;
  for (const std::vector<double>& samples : steps) seconds.push_back(summarise_times(samples).lower_quartile.value);
  HOIST_TRY(tuning::TuningDatabase database, tuning::TuningDatabase::open(file));
  return database.add_times(tuning::tuned_device(profile, plan.targets), kernel_times(plan, seconds, run));
}

std::string peaks_text(const Peaks& peaks) {
  std::string copies;
  for (const Peaks::Copy& copy : peaks.copies)
    copies +=
        fmt::format(", {:.1f} GB/s where {:.1f} MB are copied", copy.rate / 1e9, static_cast<double>(copy.bytes) / 1e6);
  return fmt::format("measured peak: {:.0f} GFLOP/s in f32, {:.0f} with products of bytes{}, a launch in {:.1f} us",
                     peaks.operations / 1e9, peaks.byte_operations / 1e9, copies, peaks.launch * 1e6);
}

// The same by a worker that has exclusive use of the device.
Result<ExitCode> bench_there(const Options& command) {
  if (!command.page.empty() || !command.against.empty() || command.run.threads > 0 || !command.run.sizes.empty())
    return usage_error("--queue", "cannot be combined with --page, --against, --threads or --dim", "leave those out");
  HOIST_TRY(const BundleInfo info, bundle_info(command.subject));
  HOIST_TRY(const std::string device, queue::device_on_queue(info.plan, command.run.device));
  HOIST_TRY(queue::Queue queue, with_kind(ErrorKind::device, queue::Queue::connect(command.queue)));
  HOIST_TRY(const std::string packed, queue::pack_bundle(command.subject));
  // Answers of earlier jobs are not reused: each run has to measure again.
  const int64_t asked = std::chrono::system_clock::now().time_since_epoch().count();
  nlohmann::json found;
  queue::Gathering gathering;
  gathering.count = 1;
  gathering.make = [&](size_t) -> Result<queue::Job> {
    queue::Job job = queue::new_job("measure", device);
    HOIST_TRY(job.content["bundle"], queue.put(packed));
    job.options = {{"specialisation", 0},
                   {"milliseconds", static_cast<int64_t>(command.seconds * 1e3)},
                   {"roofline", command.roofline},
                   {"asked", asked}};
    return job;
  };
  gathering.take = [&](size_t, const nlohmann::json& result) -> Result<Nothing> {
    if (!result.is_object() || !result.contains("json") || !result["json"].is_object() || !result.contains("text") ||
        !result["text"].is_string())
      return Diagnostic{"answer", "does not belong to the job", ""};
    found = result;
    return Nothing{};
  };
  Progress progress;
  progress.show("a worker measures");
  HOIST_TRY_VOID(queue::gather(queue, gathering));
  progress.show("");
  HOIST_TRY_VOID(answer_json(command.json, found["json"]));
  say(found["text"].get_ref<const std::string&>());
  return ExitCode::done;
}

}  // namespace

Result<ExitCode> commands::bench(const Options& command) {
  HOIST_TRY_VOID(refuse_two_outputs(command.json, "--page", command.page));
  for (const std::string& file : {command.page, command.json}) HOIST_TRY_VOID(refuse_unwritable(file));
  if (!command.queue.url.empty()) return bench_there(command);
  HOIST_TRY(Timed timed, open_timed(command.subject, command.run));
  std::optional<Timed> other;
  std::vector<Timed*> all = {&timed};
  if (!command.against.empty()) {
    HOIST_TRY(other, open_timed(command.against, command.run));
    all.push_back(&*other);
  }
  const BundleRunner& bundle = timed.runner;
  Progress progress;
  progress.show("timing whole runs");
  HOIST_TRY_VOID(time_runs(all, command.seconds));
  progress.show("timing kernels");
  HOIST_TRY(const auto steps, time_steps(timed.runner, command.seconds * 0.5));
  std::optional<Peaks> peaks;
  Prediction predicted;
  if (command.roofline || !command.page.empty()) {
    progress.show("measuring the device");
    const std::vector<std::string>& targets = timed.info.plan.targets;
    HOIST_TRY(Profile profile, with_kind(ErrorKind::device, profile_of(bundle, timed.info.plan)));
    HOIST_TRY(peaks, measure_peaks(command.run, profile, targets));
    HOIST_TRY(profile.rates, measure_rates(*peaks, command.run, profile, targets));
    predicted = prediction_of(timed.info.plan, profile);
    const std::vector<TimedKernel> kernels = timed_kernels(bundle, timed.info.plan, steps, predicted);
    peaks = peaks_along_with(*peaks, kernels);
    if (!command.page.empty())
      HOIST_TRY_VOID(
          write_file(command.page, kernels_page(bundle.model_name(), bundle.device_name(), kernels, *peaks)));
  }
  const TimeSummary whole = summarise_times(timed.runs);
  nlohmann::ordered_json out = {{"lower_quartile_ms", whole.lower_quartile.value},
                                {"median_ms", whole.median.value},
                                {"minimum_ms", whole.minimum},
                                {"load_ms", timed.load_ms},
                                {"device", bundle.device_name()},
                                {"engine", bundle.engine_name()},
                                {"threads", bundle.threads()},
                                {"runs", timed.runs.size()},
                                {"cache", bundle.cache_outcome()},
                                {"kernels", nlohmann::ordered_json::array()}};
  std::vector<std::vector<std::string>> rows;
  describe_steps(timed, steps, peaks, predicted, out, rows);
  if (peaks) out["peaks"] = to_json(*peaks);
  std::string compared;
  if (other) {
    const TimeSummary theirs = summarise_times(other->runs);
    const double ratio = whole.lower_quartile.value / theirs.lower_quartile.value;
    out["against"] = {
        {"bundle", command.against}, {"lower_quartile_ms", theirs.lower_quartile.value}, {"ratio", ratio}};
    compared = fmt::format("{}: lower quartile {:.4f} ms of {} interleaved runs; relative time of this bundle: {:.2f}",
                           command.against, theirs.lower_quartile.value, other->runs.size(), ratio);
  }
  if (!command.model.tuning.empty())
    HOIST_TRY_VOID(store_times(command.model.tuning, timed, steps, whole.lower_quartile.value * 1e-3));
  if (!command.json.empty()) {
    HOIST_TRY_VOID(write_json(command.json, out));
  }
  print_line(
      "{}: lower quartile {:.4f} ms, median {:.4f} ms, minimum {:.4f} ms of {} runs; loaded in {:.1f} ms (cache: {})",
      bundle.model_name(), whole.lower_quartile.value, whole.median.value, whole.minimum, timed.runs.size(),
      timed.load_ms, bundle.cache_outcome());
  if (other) print_line("{}", compared);
  print_line(
      "on {} ({}), {} compute units; runs go from inputs to outputs in host memory, kernels are timed by the device",
      bundle.device_name(), bundle.engine_name(), bundle.threads());
  if (peaks) print_line("{}", peaks_text(*peaks));
  if (predicted.is_known) print_line("{}", text_of(predicted));
  say(table(rows));
  return ExitCode::done;
}

}  // namespace hoist
