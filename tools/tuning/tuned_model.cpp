#include "tools/tuning/tuned_model.h"

#include <fmt/format.h>

#include "ir/stopwatch.h"
#include "ir/text/counted.h"
#include "lowering/passes.h"
#include "tools/interruption.h"
#include "tools/terminal.h"
#include "tools/tuning/estimated.h"
#include "tools/tuning/records_text.h"

namespace hoist::tuning {
namespace {

constexpr char in_memory[] = ":memory:";  // SQLite's name for a database without a file

Attempt<TunedCompilation> choose_by_measuring(const Program& program, double seconds, ModelOptions& options) {
  HOIST_ATTEMPT([[maybe_unused]] ExitCode here, refuse_absent_device(options));
  const std::string file = options.tuning;
  if (is_shipped(file))
    return usage_failure("--tuning shipped", "is what comes with hoist, and --tune measures anew",
                         "leave one of them out, or name a file to keep what is measured");
  options.tuning.clear();
  HOIST_ATTEMPT(const TunedProgram tuned, tuned_program(program, options));
  HOIST_STEP(TuningDatabase database, ExitCode::bad_input, TuningDatabase::open(file.empty() ? in_memory : file));
  HOIST_ATTEMPT(TuneOutcome outcome, tune_with_progress(tuned, {}, seconds, database));
  const TunedCompilation out = {outcome.choices.size(), outcome.before, outcome.after};
  if (outcome.choices.empty())
    say_line("tuned: nothing makes whole runs faster than what an estimate chooses");
  else
    say_line("tuned: {}, whole runs by turns {:.3f} ms before, {:.3f} ms after ({:.2f})", counted(out.chosen, "kernel"),
             out.before * 1e3, out.after * 1e3, out.after / out.before);
  options.records = records_of(std::move(outcome.choices));
  return out;
}

Attempt<TunedCompilation> choose_by_model(const Program& program, ModelOptions& options) {
  HOIST_ATTEMPT(const TunedProgram tuned, tuned_program(program, options));
  Progress progress;
  progress.show("estimating kernels of " + program.name);
  HOIST_STEP(EstimateOutcome outcome, ExitCode::bad_input, estimate(tuned, CostModel::shipped(), {}));
  progress.show("");
  const TunedCompilation out = {outcome.choices.size(), 0, 0};
  say_line("the cost model chooses knobs of {} of {} kernels{}", out.chosen, outcome.kernels,
           outcome.outside == 0 ? "" : fmt::format(", and knows nothing of {}", outcome.outside));
  options.records = [known = options.records,
                     estimated = records_of(std::move(outcome.choices), 0)](const TuningTask& task) {
    KnobValues knobs = known ? known(task) : KnobValues();
    return knobs.empty() ? estimated(task) : knobs;
  };
  return out;
}

}  // namespace

Attempt<TunedProgram> tuned_program(Program program, ModelOptions& options) {
  HOIST_ATTEMPT([[maybe_unused]] ExitCode read, read_steering(options));
  TunedProgram out;
  out.program = std::move(program);
  PrepareOptions& how = out.options;
  HOIST_ATTEMPT(how.profile, choose_profile(options));
  how.lower = compile_options(options).lower;
  how.targets = options.targets;
  how.run.device = options.device;
  HOIST_STEP_VOID(ExitCode::bad_input, run_passes(out.program, Pass::calls, pass_options(how.lower, how.profile)));
  return out;
}

Attempt<> refuse_absent_device(const ModelOptions& options) {
  if (options.profile.empty()) return ExitCode::done;
  return usage_failure("--profile", "describes a device that is not here", "kernels are tuned by measuring: --device");
}

Attempt<TuneOutcome> tune_with_progress(const TunedProgram& tuned, TuneOptions options, double seconds,
                                        TuningDatabase& database) {
  Progress progress;
  Interruptible interruptible;
  interruptible.arm();
  const Stopwatch stopwatch;
  options.stop = [&] { return interruptible.interrupted() || (seconds > 0 && stopwatch.seconds() > seconds); };
  options.progress = [&](const std::string& text) {
    progress.show(fmt::format("{:.0f} s: {}", stopwatch.seconds(), text));
  };
  auto outcome = tune(tuned, options, database);
  progress.show("");
  if (outcome) return std::move(*outcome);
  Diagnostics problems = outcome.errors();
  problems.push_back({"", "the search ended there; what was measured before is kept",
                      "the same command goes on with it; hoist devices says whether the device is still there"});
  return Failure{ExitCode::device, std::move(problems)};
}

Attempt<TunedCompilation> choose_records(const Program& program, double seconds, ModelOptions& options) {
  if (seconds > 0) return choose_by_measuring(program, seconds, options);
  return choose_by_model(program, options);
}

}  // namespace hoist::tuning
