// hoist compile: a model becomes a bundle.

#include "backends/bundle/bundle.h"
#include "frontend/write_model.h"
#include "ir/stopwatch.h"
#include "ir/text/counted.h"
#include "tools/budgeted_compile.h"
#include "tools/command.h"
#include "tools/files.h"
#include "tools/layers.h"
#include "tools/model.h"
#include "tools/opened_bundle.h"
#include "tools/report/report.h"
#include "tools/self_check.h"
#include "tools/show_passes.h"
#include "tools/terminal.h"
#include "tools/translation.h"

namespace hoist {
namespace {

namespace fs = std::filesystem;

struct CompileCommand {
  std::string model, output, report;
  const CLI::Option* output_option = nullptr;
  bool force = false, best_effort = false, no_check = false, validate = false;
  ModelOptions options;
  BudgetOptions budget;
  ShownPasses shown;
};

// Known before the work: nobody wants to wait for this message.
Attempt<> check_output(const CompileCommand& command) {
  const std::filesystem::path folder = command.output;
  std::error_code ignored;
  if (std::filesystem::exists(folder, ignored)) {
    if (!is_bundle(folder)) return input_failure(command.output, "exists and is not a bundle", "name another folder");
    if (!command.force) return input_failure(command.output, "exists", "use --force to replace the bundle");
  }
  const std::filesystem::path parent = folder.parent_path();
  if (folder.empty()) return usage_failure("--output", "is empty", "name the folder that the bundle becomes");
  if (!parent.empty() && !std::filesystem::is_directory(parent, ignored))
    return input_failure(command.output, parent.string() + " is not a folder", "make it first, or name another");
  return ExitCode::done;
}

void describe(const ChosenModel& chosen) {
  for (const std::string& note : chosen.study.notes) complain("note", note);
  say(summary_text(chosen.study));
}

// --validate: no bundle of a derivation with a step that changes a number which it must not.
Attempt<> check_steps(const CompileCommand& command, const ProgramDerivation& derivation, const Profile& profile) {
  if (!command.validate) return ExitCode::done;
  HOIST_ATTEMPT(const Validation validation, validate_derivation(derivation, profile, false));
  say_line("{}", summary_of(validation));
  if (validation.differences.empty()) return ExitCode::done;
  Failure out{ExitCode::differs, {}};
  for (const StepDifference& difference : validation.differences) out.problems.push_back(described(difference));
  return out;
}

Attempt<CompiledModel> compile_program(const CompileCommand& command, Program program) {
  if (!command.validate) return compile_model(std::move(program), command.options);
  ModelOptions options = command.options;
  HOIST_ATTEMPT([[maybe_unused]] ExitCode read, read_steering(options));
  HOIST_ATTEMPT(OpenedModel model, open_model(std::move(program), options));
  HOIST_ATTEMPT([[maybe_unused]] ExitCode valid, check_steps(command, model.lowered.derivation, model.profile));
  return compile_model(std::move(model), options);
}

Attempt<CompiledModel> compile_chosen(const CompileCommand& command, ChosenModel chosen) {
  HOIST_STEP(LoweredModel lowered, ExitCode::bad_input,
             lower_rewritten(chosen.rewritten, chosen.compile.lower, chosen.model.profile));
  HOIST_ATTEMPT([[maybe_unused]] ExitCode valid, check_steps(command, lowered.derivation, chosen.model.profile));
  std::vector<LoweredGroup> groups = lowered.groups;
  HOIST_STEP(Plan plan, ExitCode::bad_input, make_plan(std::move(lowered), chosen.compile, chosen.model.profile));
  plan.certificate = chosen.certificate;
  return CompiledModel{std::move(chosen.rewritten.program), std::move(chosen.model.profile), std::move(plan),
                       std::move(groups)};
}

// The layers of the kernel that differs as a model beside the bundle that does not come to be; what to say of it.
std::string write_reduced(const CompileCommand& command, const CompiledModel& compiled,
                          const std::vector<std::string>& layers) {
  fs::path path = command.output;
  if (!path.has_filename()) path = path.parent_path();
  path += ".mismatch.onnx";
  auto bytes = write_model(model_of_layers(compiled.program, layers), {.producer_version = HOIST_VERSION});
  if (!bytes) return "the layers alone are no model: " + bytes.errors().front().text();
  if (auto written = write_file(path, *bytes); !written) return written.errors().front().text();
  return "these layers alone are the model " + path.string();
}

Failure mismatch_failure(const CompileCommand& command, const CompiledModel& compiled, const SelfCheck& check) {
  const KernelMismatch& mismatch = *check.mismatch;
  const PlanStep& step = compiled.plan.steps[mismatch.step];
  const PlanKernel& kernel = compiled.plan.kernels[static_cast<size_t>(step.kernel)];
  Failure out;
  out.code = ExitCode::differs;
  out.problems.push_back(
      {fmt::format("kernel {}, which computes {}", kernel.name, joined_names(step.layers)),
       fmt::format("differs from the interpreter on {} at {} of {} elements, first at {}", check.device,
                   mismatch.comparison.different, mismatch.comparison.compared, mismatch.comparison.message),
       "no bundle is written"});
  out.problems.push_back({kernel.name, mismatch.origin, ""});
  out.problems.push_back({kernel.name, write_reduced(command, compiled, step.layers),
                          "send it to the project: this is a fault of hoist or of the driver"});
  return out;
}

// The bundle, once its kernels agree with the interpreter where there is a device that can be asked. The record appears
// last, after a bundle that it stands for.
Attempt<SelfCheck> write_results(const CompileCommand& command, const CompiledModel& compiled, const Record* record) {
  SelfCheck check;
  Attempt<SelfCheck> attempt = check;
  BundleOptions options{command.force, {}};
  std::optional<Device> device;
  if (command.no_check)
    check.not_checked = "--no-check is given";
  else if (auto found = device_for(compiled.plan, compiled.profile, command.options.device))
    device = *found;
  else
    check.not_checked = found.errors()[0].text();
  if (device) check.not_checked = too_large_to_check(compiled.plan);
  if (device && check.not_checked.empty()) {
    options.check = [&](const fs::path& folder) -> Result<Nothing> {
      const RemovedOnSignal guard(folder);
      Progress progress;
      progress.show("comparing kernels with the interpreter");
      attempt = self_check(folder, compiled.plan, compiled.groups, *device, 1,
                           compiled.rules != nullptr ? compiled.rules->table : lowering_rules());
      if (!attempt.ok()) return attempt.failure().problems;
      check = *attempt;
      if (check.mismatch) return Diagnostic{"self-check", "differs", ""};
      return Nothing{};
    };
  }
  auto written = write_bundle(compiled.plan, command.output, options);
  if (!attempt.ok()) return attempt.failure();
  if (check.mismatch) return mismatch_failure(command, compiled, check);
  if (!written) return Failure{ExitCode::bad_input, written.errors()};
  if (record != nullptr && !command.budget.record.empty())
    HOIST_STEP_VOID(ExitCode::bad_input, write_record(command.budget.record, *record));
  return check;
}

void report_check(const SelfCheck& check) {
  if (!check.not_checked.empty()) {
    say_line("not checked: {}", check.not_checked);
    return;
  }
  std::string how = check.kernels_whole == check.kernels
                        ? "every element"
                        : fmt::format("{} elements, all of {}", check.compared, counted(check.kernels_whole, "kernel"));
  if (check.kernels_left > 0) how += fmt::format(", none of {} whose elements take too long", check.kernels_left);
  say_line("checked on {}: {} {} with the interpreter ({}); {:.1f} s, and {:.1f} s in the driver (cache: {})",
           check.device, counted(check.kernels, "kernel"), check.kernels == 1 ? "agrees" : "agree", how, check.seconds,
           check.driver_seconds, check.driver_cache);
}

void report_size(const CompileCommand& command, const CompiledModel& compiled, double seconds) {
  const Plan& plan = compiled.plan;
  size_t weights = 0;
  for (const PlanArray& array : plan.arrays) {
    if (array.place == Place::weights) weights += array.constant.bytes().size();
  }
  say_line("{}: {} in {} of {}, {:.1f} MB of weights, {:.1f} MB between layers, for {}; {:.1f} s", command.output,
           counted(compiled.program.layers.size(), "layer"), counted(plan.steps.size(), "step"),
           counted(plan.kernels.size(), "kernel"), static_cast<double>(weights) / 1e6,
           static_cast<double>(plan.arena_bytes) / 1e6, compiled.profile.name, seconds);
}

Attempt<> compile(const CompileCommand& given) {
  CompileCommand command = given;
  if (command.output_option->count() == 0) command.output = output_named_after(command.model, ".hoist");
  HOIST_ATTEMPT([[maybe_unused]] ExitCode free, check_output(command));
  const Stopwatch stopwatch;
  if (command.budget.budget.empty()) {
    if (command.best_effort) return usage_failure("--best-effort", "requires --budget");
    if (!command.report.empty())
      return usage_failure("--report", "requires --budget", "hoist report writes the page of a model alone");
    HOIST_ATTEMPT([[maybe_unused]] ExitCode unused, refuse_budget_options(command.budget));
    HOIST_ATTEMPT(Program program, read_program(command.model, command.options));
    HOIST_ATTEMPT(const bool goes_on, show_passes(program, command.options, command.shown));
    if (!goes_on) return ExitCode::done;
    HOIST_ATTEMPT(CompiledModel compiled, compile_program(command, std::move(program)));
    HOIST_ATTEMPT(SelfCheck check, write_results(command, compiled, nullptr));
    report_size(command, compiled, stopwatch.seconds());
    report_check(check);
    return ExitCode::done;
  }
  if (!command.options.targets.empty())
    return usage_failure("--target", "does not go with a budget, which measures kernels on an OpenCL device",
                         "leave one of them out");
  if (!command.options.rules.empty() || !command.options.steps.empty())
    return usage_failure("--steps and --rules", "do not go with a budget, which measures the strategy's kernels",
                         "leave them out");
  HOIST_ATTEMPT(ChosenModel chosen, choose_model(command.model, command.options, command.budget));
  describe(chosen);
  const bool is_met = chosen.budget_met;
  if (!is_met) complain("error", "budget not met; best point is " + best_point(chosen));
  if (!is_met && !command.best_effort) {
    complain("note", "no bundle is written; --best-effort writes that of the best point");
    return ExitCode::no;
  }
  HOIST_ATTEMPT([[maybe_unused]] ExitCode reported, write_report(chosen, command.report, ""));
  const Record record = chosen.record;
  HOIST_ATTEMPT(CompiledModel compiled, compile_chosen(command, std::move(chosen)));
  HOIST_ATTEMPT(SelfCheck check, write_results(command, compiled, &record));
  report_size(command, compiled, stopwatch.seconds());
  report_check(check);
  return is_met ? ExitCode::done : ExitCode::no;
}

}  // namespace

void add_compile(CLI::App& program, Action& action) {
  auto options = std::make_shared<CompileCommand>();
  CLI::App& command = add_command(program, action, "compile",
                                  "compile a model to a bundle: a folder that any C program can load and run",
                                  "  hoist compile models/digits_residual.onnx -o digits.hoist\n"
                                  "  hoist compile model.onnx -o model.hoist --dim batch=8 --device 0\n"
                                  "  hoist compile models/digits_residual.onnx -o small.hoist --budget top1=0.5% "
                                  "--calibrate models/digits_residual_calibration.npz --record digits.json\n"
                                  "  hoist compile models/digits_residual.onnx -o smaller.hoist --budget top1=2% "
                                  "--record digits.json",
                                  options, compile);
  command.add_option("model", options->model, "an ONNX file")->required()->type_name("MODEL");
  options->output_option = command
                               .add_option("-o,--output", options->output,
                                           "the bundle's folder (default: the model's name with .hoist, here)")
                               ->type_name("DIR");
  command.add_flag("--force", options->force, "replace the folder if it is a bundle");
  command.add_flag("--no-check", options->no_check,
                   "do not compare the kernels with the interpreter on the device before the bundle is written");
  command.add_flag("--validate", options->validate,
                   "compare both sides of every step of the derivation with the interpreter, on random and extreme "
                   "inputs, before anything is written");
  add_model_options(command, options->options);
  add_target_option(command, options->options);
  add_steering_options(command, options->options);
  add_shown_passes(command, options->shown);
  command
      .add_option("--budget", options->budget.budget,
                  "how much accuracy may be given up: top1=0.5%, sqnr=30dB, agreement=99%, metric=CMD")
      ->type_name("BUDGET");
  add_budget_options(command, options->budget);
  command.add_option("--report", options->report, "the page of the study that the choice was made from")
      ->type_name("FILE");
  command.add_flag("--best-effort", options->best_effort, "write the best point's bundle when the budget is not met");
}

}  // namespace hoist
