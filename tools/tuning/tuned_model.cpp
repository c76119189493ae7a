#include "tools/tuning/tuned_model.h"

#include <fmt/format.h>

#include "backends/opencl/device.h"
#include "ir/base/stopwatch.h"
#include "ir/text/counted.h"
#include "lowering/pipeline/passes.h"
#include "tools/base/interruption.h"
#include "tools/base/terminal.h"
#include "tools/records/records_text.h"
#include "tools/tuning/estimated.h"
#include "tools/tuning/timing_jobs.h"

namespace hoist::tuning {
namespace {

constexpr char in_memory[] = ":memory:";  // SQLite's name for a database without a file

// The number of groups of kernels per round that workers may time in parallel. It is fixed, so the number of workers
// does not change the result.
constexpr size_t groups_on_queue = 4;

Result<TunedCompilation> choose_by_measuring(const Program& program, double seconds, const MeasuringPlace& place,
                                             ModelOptions& options) {
  HOIST_TRY_VOID(refuse_absent_device(options, place));
  const std::string file = options.tuning;
  if (is_shipped(file))
    return usage_error("--tuning shipped", "comes with hoist, and --tune measures anew",
                       "leave one of them out, or name a file for the measurements");
  options.tuning.clear();
  HOIST_TRY(TunedProgram tuned, tuned_program(program, options));
  HOIST_TRY(tuned.time_bundles, times_at(place, tuned.options));
  HOIST_TRY(TuningDatabase database, TuningDatabase::open(file.empty() ? in_memory : file));
  HOIST_TRY(TuneOutcome outcome, tune_with_progress(tuned, place, {}, seconds, database));
  const TunedCompilation out = {outcome.choices.size(), outcome.before, outcome.after};
  if (outcome.choices.empty())
    print_line("tuned: no point makes whole runs faster than the estimate's choice");
  else
    print_line("tuned: {}, whole runs interleaved: {:.3f} ms before, {:.3f} ms after ({:.2f})",
               counted(out.chosen, "kernel"), out.before * 1e3, out.after * 1e3, out.after / out.before);
  options.records = records_of(std::move(outcome.choices));
  HOIST_TRY(options.times, database.times(tuned_device(tuned.options.profile, tuned.options.targets)));
  return out;
}

Result<TunedCompilation> choose_by_model(const Program& program, ModelOptions& options) {
  HOIST_TRY(const TunedProgram tuned, tuned_program(program, options));
  Progress progress;
  progress.show("estimating kernels of " + program.name);
  HOIST_TRY(EstimateOutcome outcome, estimate(tuned, CostModel::shipped(), {}));
  progress.show("");
  const TunedCompilation out = {outcome.choices.size(), 0, 0};
  print_line("the cost model differs from the estimate in {} of {}{}", out.chosen, counted(outcome.places, "place"),
             outcome.outside == 0 ? "" : fmt::format(", and does not cover {}", counted(outcome.outside, "kernel")));
  options.records = [known = options.records,
                     estimated = records_of(std::move(outcome.choices), 0)](const TuningTask& task) {
    KnobValues knobs = known ? known(task) : KnobValues();
    return knobs.empty() ? estimated(task) : knobs;
  };
  return out;
}

}  // namespace

Result<TunedProgram> tuned_program(Program program, ModelOptions& options) {
  HOIST_TRY_VOID(read_schedule_scripts(options));
  TunedProgram out;
  out.program = std::move(program);
  PrepareOptions& how = out.options;
  HOIST_TRY(how.profile, choose_profile(options));
  how.lower = compile_options(options).lower;
  how.targets = options.targets;
  how.run.device = options.device;
  HOIST_TRY_VOID(run_passes(out.program, Pass::calls, pass_options(how.lower, how.profile)));
  return out;
}

Result<Nothing> refuse_absent_device(const ModelOptions& options, const MeasuringPlace& place) {
  if (options.profile.empty() || !options.targets.empty() || !place.queue.url.empty()) return Nothing{};
  return usage_error(
      "--profile", "describes a device that this machine does not have",
      "tuning needs measurements: name a device with --device, or give --queue with workers that have the device");
}

Result<TimeBundles> times_at(const MeasuringPlace& place, const PrepareOptions& how) {
  const bool queued = !place.queue.url.empty();
  queue::TimingPlace where{how.profile.name};
  where.seconds = place.seconds;
  if (queued && how.targets.size() == 1) {
    where.device = "native " + how.targets.front();
  } else if (!how.targets.empty()) {
    HOIST_TRY(const Device device, with_kind(ErrorKind::device, native_device(how.targets)));
    where.device = device.name;
  } else if (!queued) {
    HOIST_TRY(const Device device, with_kind(ErrorKind::device, find_device(how.run.device)));
    where.device = device.name;
    where.index = std::to_string(device.index);
  }
  if (!queued) return queue::times_in_processes(where);
  HOIST_TRY(queue::Queue queue, with_kind(ErrorKind::device, queue::Queue::connect(place.queue)));
  return queue::times_on_queue(std::make_shared<queue::Queue>(std::move(queue)), where);
}

Result<TuneOutcome> tune_with_progress(const TunedProgram& tuned, const MeasuringPlace& place, TuneOptions options,
                                       double seconds, TuningDatabase& database) {
  if (!place.queue.url.empty()) options.groups = groups_on_queue;
  Progress progress;
  Interruptible interruptible;
  interruptible.arm();
  const Stopwatch stopwatch;
  options.stop = [&] { return interruptible.interrupted() || (seconds > 0 && stopwatch.seconds() > seconds); };
  options.interrupted = [&] { return interruptible.interrupted(); };
  options.progress = [&](const std::string& text) {
    progress.show(fmt::format("{:.0f} s: {}", stopwatch.seconds(), text));
  };
  auto outcome = tune(tuned, options, database);
  progress.show("");
  if (outcome) return std::move(*outcome);
  Diagnostics problems = outcome.errors();
  problems.push_back({"", "the search ended there; earlier measurements are stored",
                      "the same command continues it; hoist devices lists the device if it is still there"});
  return with_kind(ErrorKind::device, std::move(problems));
}

Result<TunedCompilation> choose_records(const Program& program, double seconds, const MeasuringPlace& place,
                                        ModelOptions& options) {
  if (seconds > 0) return choose_by_measuring(program, seconds, place, options);
  if (!place.queue.url.empty())
    return usage_error("--queue", "has nothing to measure with --tune=0", "give --tune=SECONDS, or leave it out");
  return choose_by_model(program, options);
}

}  // namespace hoist::tuning
