// hoist compile: a model becomes a bundle.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "backends/bundle/bundle.h"
#include "frontend/write_model.h"
#include "ir/base/stopwatch.h"
#include "ir/base/temporary_folder.h"
#include "ir/text/counted.h"
#include "lowering/fusion/statements.h"
#include "tools/cli/command.h"
#include "tools/cli/json_answer.h"
#include "tools/cli/show_passes.h"
#include "tools/cli/terminal.h"
#include "tools/data/file_lock.h"
#include "tools/data/files.h"
#include "tools/driver/model.h"
#include "tools/driver/native_files.h"
#include "tools/driver/opened_bundle.h"
#include "tools/driver/self_check.h"
#include "tools/driver/sizes.h"
#include "tools/inspection/layers.h"
#include "tools/inspection/model_summary.h"
#include "tools/inspection/translation.h"
#include "tools/report/report.h"
#include "tools/study/budgeted_compile.h"
#include "tools/study/certificate.h"
#include "tools/tuning/tuned_model.h"

namespace hoist {
namespace {

namespace fs = std::filesystem;
using CompileAnswer = nlohmann::ordered_json;

struct CompileCommand {
  std::string model, output, report, json;
  std::vector<std::string> budgets;
  const CLI::Option* output_option = nullptr;
  double tune_seconds = 0;
  const CLI::Option* tune_option = nullptr;
  bool force = false, best_effort = false, no_check = false, validate = false, programs = false;
  ModelOptions options;
  BudgetOptions budget;
  ShownPasses shown;
};

// Checked before the long work.
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
  const ReferenceScore reference = reference_score(chosen.study);
  if (reference.samples > 0) say_line("{}", reference.text());
  if (const std::string warning = reference.warning(); !warning.empty()) complain("warning", warning);
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

Attempt<CompiledModel> compile_program(const CompileCommand& command, Program program, CompileAnswer& answer) {
  ModelOptions options = command.options;
  if (command.tune_option->count() > 0) {
    HOIST_ATTEMPT(const auto tuned,
                  tuning::choose_records(program, command.tune_seconds, {command.budget.queue}, options));
    answer = {{"kernels", tuned.chosen}};
    if (tuned.before > 0) answer.update({{"before_ms", tuned.before * 1e3}, {"after_ms", tuned.after * 1e3}});
  }
  if (!command.validate) return compile_model(std::move(program), options);
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

// The layers of a differing kernel as a model, next to the bundle that is not written; returns the hint.
std::string write_reduced(const CompileCommand& command, const CompiledModel& compiled,
                          const std::vector<std::string>& layers) {
  fs::path path = command.output;
  if (!path.has_filename()) path = path.parent_path();
  path += ".mismatch.onnx";
  auto bytes = write_model(model_of_layers(compiled.program, layers), {.producer_version = HOIST_VERSION});
  if (!bytes) return "the layers alone do not form a model: " + bytes.errors().front().text();
  if (auto written = write_file(path, *bytes); !written) return written.errors().front().text();
  return "these layers alone are the model " + path.string();
}

Failure mismatch_failure(const CompileCommand& command, const CompiledModel& compiled, const SelfCheck& check) {
  if (!check.mismatch) {
    return Failure{ExitCode::differs,
                   {{check.launch_mismatch->subject,
                     fmt::format("leaves something else on {} than its kernels launched alone: {}", check.device,
                                 check.launch_mismatch->message),
                     "no bundle is written; --fuse none launches each kernel alone"}}};
  }
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
  const bool several = count_statements(compiled.groups[mismatch.step].low) > 0;
  out.problems.push_back(
      {kernel.name, mismatch.origin, several ? "--fuse none gives each layer a launch of its own" : ""});
  out.problems.push_back({kernel.name, write_reduced(command, compiled, step.layers),
                          "send it to the project: this is a bug of hoist or of the driver"});
  return out;
}

// The image options for every input of images.
Result<std::vector<PlanPreprocessing>> preprocessing_of(const std::vector<ValueInfo>& inputs,
                                                        const PictureOptions& options) {
  std::vector<PlanPreprocessing> out;
  if (!any_given(options)) return out;
  Diagnostics problems;
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto how = preprocessing_for(inputs[i], options);
    if (!how) {
      problems.insert(problems.end(), how.errors().begin(), how.errors().end());
      continue;
    }
    out.push_back(plan_preprocessing(static_cast<int>(i), *how));
  }
  if (out.empty()) return problems;
  return out;
}

// A model compiled for some sizes, none if there is one set of them, and the device's results for its kernels.
struct SizedModel {
  Sizes sizes;
  CompiledModel compiled;
  SelfCheck check = {};
  CompileAnswer tuned = {};  ///< the result of --tune
};

Result<Nothing> write_models(std::vector<SizedModel>& models, const std::string& output, const BundleOptions& options) {
  if (models.size() == 1) return write_bundle(models.front().compiled.plan, output, options);
  std::vector<SizedPlan> plans;
  for (SizedModel& model : models) plans.push_back({model.sizes, &model.compiled.plan});
  return write_bundle(plans, output, options);
}

// The bundle, after its kernels have agreed with the interpreter if there is a device to check. The record appears
// last, after its bundle.
Attempt<> write_results(const CompileCommand& command, std::vector<SizedModel>& models, const Record* record) {
  for (SizedModel& model : models) {
    HOIST_STEP(model.compiled.plan.preprocessing, ExitCode::bad_input,
               preprocessing_of(input_infos(model.compiled.program), command.budget.pictures));
  }
  const CompiledModel& first = models.front().compiled;
  std::string not_checked;
  Attempt<SelfCheck> attempt = SelfCheck();
  SizedModel* at_work = &models.front();
  BundleOptions options{command.force, {}};
  if (command.no_check)
    not_checked = "--no-check is given";
  else if (auto found = device_for(first.plan, first.profile, command.options.device); !found.ok())
    not_checked = found.errors()[0].text();
  bool any_checked = false;
  for (SizedModel& model : models) {
    model.check.not_checked = not_checked.empty() ? too_large_to_check(model.compiled.plan) : not_checked;
    any_checked |= model.check.not_checked.empty();
  }
  if (command.programs) {
    for (const SizedModel& model : models) {
      if (!model.check.not_checked.empty())
        return Failure{ExitCode::device, {{"--programs", "needs a run on the device: " + model.check.not_checked, ""}}};
    }
  }
  if (any_checked) {
    options.check = [&](const fs::path& folder) -> Result<Nothing> {
      for (SizedModel& model : models) {
        if (!model.check.not_checked.empty()) continue;
        const CompiledModel& compiled = model.compiled;
        at_work = &model;
        RunOptions run;
        run.device = command.options.device;
        run.sizes = model.sizes;
        if (command.programs) run.cache_folder = (folder / "programs").string();
        attempt = self_check(folder, compiled.plan, compiled.groups, 1,
                             compiled.rules != nullptr ? compiled.rules->table : lowering_rules(), run);
        if (!attempt.ok()) return attempt.failure().problems;
        model.check = *attempt;
        if (!model.check.agrees()) return Diagnostic{"self-check", "differs", ""};
        std::error_code none;
        if (command.programs && fs::is_empty(run.cache_folder, none))
          return Diagnostic{"--programs", "nothing was stored: cache: " + model.check.driver_cache, ""};
      }
      return Nothing{};
    };
  }
  auto written = write_models(models, command.output, options);
  if (!attempt.ok()) return attempt.failure();
  if (!at_work->check.agrees()) return mismatch_failure(command, at_work->compiled, at_work->check);
  if (!written) return Failure{ExitCode::bad_input, written.errors()};
  if (record != nullptr && !command.budget.record.empty())
    HOIST_STEP_VOID(ExitCode::bad_input, write_record(command.budget.record, *record));
  return ExitCode::done;
}

void report_check(const SelfCheck& check) {
  if (!check.not_checked.empty()) {
    say_line("not checked: {}", check.not_checked);
    return;
  }
  std::string how =
      check.kernels_whole == check.kernels
          ? "every element"
          : fmt::format(
                "{} elements{}", check.compared,
                check.kernels_whole == 0 ? "" : fmt::format(", all of {}", counted(check.kernels_whole, "kernel")));
  if (check.kernels_left > 0) how += fmt::format(", none of {} whose elements take too long", check.kernels_left);
  if (!check.ended.empty())
    complain("note", "seeded inputs do not get further than " + check.ended + " (hoist verify --data checks the rest)");
  say_line("checked on {}: {} {} with the interpreter ({}); {:.1f} s, and {:.1f} s in the driver (cache: {})",
           check.device, counted(check.kernels, "kernel"), check.kernels == 1 ? "agrees" : "agree", how, check.seconds,
           check.driver_seconds, check.driver_cache);
}

void report_size(const CompileCommand& command, const CompiledModel& compiled, double seconds) {
  const Plan& plan = compiled.plan;
  const ArrayBytes bytes = array_bytes(plan.arrays, plan.arena_bytes);
  const std::string steps = plan.steps.size() == plan.kernels.size() ? "" : counted(plan.steps.size(), "step") + " of ";
  const size_t launches = count_launches(plan.steps.size(), plan.launches);
  const std::string joined =
      plan.launches.empty() ? "" : fmt::format(" in {} launch{}", launches, launches == 1 ? "" : "es");
  say_line("{}: {} in {}{}{}, {} of weights, {} between layers, for {}; {:.1f} s", command.output,
           counted(compiled.program.layers.size(), "layer"), steps, counted(plan.kernels.size(), "kernel"), joined,
           bytes_text(bytes.weights), bytes_text(bytes.values), compiled.profile.name, seconds);
}

CompileAnswer answer_of(const CompileCommand& command, const CompiledModel& compiled, const SelfCheck& check,
                        double seconds) {
  CompileAnswer out = {{"bundle", command.output}};
  out.update(to_json(summary_of(compiled.plan)));
  out["profile"] = compiled.profile.name;
  out["targets"] = compiled.plan.targets;
  out["seconds"] = seconds;
  out["check"] = {{"done", check.not_checked.empty()}};
  if (!check.not_checked.empty()) {
    out["check"]["reason"] = check.not_checked;
    return out;
  }
  out["check"]["device"] = check.device;
  out["check"]["kernels"] = check.kernels;
  out["check"]["elements"] = check.compared;
  out["check"]["seconds"] = check.seconds;
  out["check"]["driver_seconds"] = check.driver_seconds;
  out["check"]["cache"] = check.driver_cache;
  return out;
}

CompileAnswer answer_of(const ChosenModel& chosen) {
  CompileAnswer out = {{"text", chosen.study.budget},
                       {"met", chosen.budget_met},
                       {"best", best_point(chosen)},
                       {"confidence", chosen.study.confidence}};
  if (const ReferenceScore reference = reference_score(chosen.study); reference.samples > 0)
    out["reference"] = {{"right", reference.right},
                        {"samples", reference.samples},
                        {"no_better_than_chance", !reference.warning().empty()}};
  return out;
}

// Comes after the names of kernels, so that kernels of all sizes have different names: programs link them together.
std::string kernel_suffix(const std::vector<SizedModel>& before, const Sizes& sizes) {
  if (before.empty()) return "";
  std::string out = sizes_suffix(sizes);
  const auto is_taken = [&] {
    return std::any_of(before.begin(), before.end(), [&](const SizedModel& model) {
      const std::vector<PlanKernel>& kernels = model.compiled.plan.kernels;
      return std::any_of(kernels.begin(), kernels.end(),
                         [&](const PlanKernel& kernel) { return kernel.name.ends_with(out); });
    });
  };
  while (is_taken()) out += '_';
  return out;
}

// One bundle for every combination of the sizes that --dim lists.
Attempt<> compile_for_sizes(const CompileCommand& command, const std::vector<SizeChoice>& choices) {
  if (!command.shown.print_after.empty() || !command.shown.stop_after.empty())
    return usage_failure("--print-after and --stop-after", "show one program, and --dim lists several sizes",
                         "give --dim one size");
  const Stopwatch stopwatch;
  std::vector<SizedModel> models;
  for (const SizeChoice& choice : choices) {
    CompileCommand one = command;
    one.options.dimensions = choice.dimensions;
    one.options.with_notes = models.empty();
    one.options.kernel_suffix = kernel_suffix(models, choice.sizes);
    HOIST_ATTEMPT(Program program, read_program(one.model, one.options));
    CompileAnswer tuned;
    HOIST_ATTEMPT(CompiledModel compiled, compile_program(one, std::move(program), tuned));
    models.push_back({choice.sizes, std::move(compiled), {}, std::move(tuned)});
  }
  std::vector<Plan*> plans;
  for (SizedModel& model : models) plans.push_back(&model.compiled.plan);
  HOIST_STEP_VOID(ExitCode::bad_input, join_tables(plans));
  HOIST_ATTEMPT([[maybe_unused]] ExitCode written, write_results(command, models, nullptr));
  const double seconds = stopwatch.seconds();
  CompileAnswer answer = answer_of(command, models.front().compiled, models.front().check, seconds);
  for (SizedModel& model : models) {
    say_line("for {}:", sizes_text(model.sizes));
    report_size(command, model.compiled, seconds);
    report_check(model.check);
    CompileAnswer own = {{"sizes", sizes_json(model.sizes)}};
    own.update(to_json(summary_of(model.compiled.plan)));
    if (!model.tuned.is_null()) own["tuned"] = std::move(model.tuned);
    answer["specialisations"].push_back(std::move(own));
  }
  return answer_json(command.json, answer);
}

Attempt<> compile_alone(const CompileCommand& command) {
  const Stopwatch stopwatch;
  if (command.best_effort) return usage_failure("--best-effort", "requires --budget");
  if (!command.report.empty())
    return usage_failure("--report", "requires --budget", "hoist report writes the page of a model alone");
  BudgetOptions unused = command.budget;
  if (command.tune_option->count() > 0) unused.queue = {};  // whose workers measure
  HOIST_ATTEMPT([[maybe_unused]] ExitCode none, refuse_budget_options(unused));
  HOIST_ATTEMPT(const std::vector<SizeChoice> choices, size_choices(command.options.dimensions));
  if (choices.size() > 1) return compile_for_sizes(command, choices);
  HOIST_ATTEMPT(Program program, read_program_and_prepare(command.model, command.options));
  HOIST_ATTEMPT(const bool goes_on, show_passes(program, command.options, command.shown));
  if (!goes_on) return ExitCode::done;
  std::vector<SizedModel> models;
  CompileAnswer tuned;
  HOIST_ATTEMPT(CompiledModel compiled, compile_program(command, std::move(program), tuned));
  models.push_back({{}, std::move(compiled)});
  HOIST_ATTEMPT([[maybe_unused]] ExitCode written, write_results(command, models, nullptr));
  const double seconds = stopwatch.seconds();
  report_size(command, models.front().compiled, seconds);
  report_check(models.front().check);
  // The bundle is written: optional work must not run out of memory.
  if (command.json.empty()) return ExitCode::done;
  CompileAnswer answer = answer_of(command, models.front().compiled, models.front().check, seconds);
  if (!tuned.is_null()) answer["tuned"] = std::move(tuned);
  return answer_json(command.json, answer);
}

// Compiles for one budget; fills in the command's answer. Returns whether the budget is met.
Attempt<> compile_within(const CompileCommand& command, CompileAnswer& answer) {
  const Stopwatch stopwatch;
  HOIST_ATTEMPT(ChosenModel chosen, choose_model(command.model, command.options, command.budget));
  describe(chosen);
  const bool is_met = chosen.budget_met;
  answer = {{"budget", answer_of(chosen)}};
  if (!is_met) complain("error", "budget not met; best point is " + best_point(chosen));
  if (!is_met && !command.best_effort) {
    complain("note", "no bundle is written; --best-effort writes the best point's");
    return ExitCode::no;
  }
  if (reference_score(chosen.study).is_chance() && !command.best_effort) {
    complain("error", "the model itself is no better than guessing on these data, so a budget proves nothing");
    complain("note", "no bundle is written; --best-effort writes it anyway");
    return ExitCode::no;
  }
  HOIST_ATTEMPT([[maybe_unused]] ExitCode reported, write_report(chosen, command.report, ""));
  const Record record = chosen.record;
  HOIST_ATTEMPT(CompiledModel compiled, compile_chosen(command, std::move(chosen)));
  std::vector<SizedModel> models;
  models.push_back({{}, std::move(compiled)});
  HOIST_ATTEMPT([[maybe_unused]] ExitCode written, write_results(command, models, &record));
  const double seconds = stopwatch.seconds();
  report_size(command, models.front().compiled, seconds);
  report_check(models.front().check);
  if (!command.json.empty()) {
    const CompileAnswer budget = std::move(answer);
    answer = answer_of(command, models.front().compiled, models.front().check, seconds);
    answer.update(budget);
  }
  return is_met ? ExitCode::done : ExitCode::no;
}

// A page shows the model as it is and as chosen, compiled and timed.
constexpr double models_of_report = 2.5;

// "top1=0.5%" in the name of a file: "top1-0.5".
std::string name_of_budget(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (std::isalnum(code) != 0 || c == '.' || c == '_')
      out += c;
    else if (!out.empty() && out.back() != '-')
      out += '-';
  }
  while (!out.empty() && (out.back() == '-' || out.back() == '.')) out.pop_back();
  return out;
}

// With "-top1-0.5" before the ending.
std::string named_for(const fs::path& path, const std::string& budget) {
  if (path.empty()) return "";
  fs::path file = path.has_filename() ? path : path.parent_path();
  const fs::path ending = file.extension();
  file.replace_extension();
  return file.string() + "-" + name_of_budget(budget) + ending.string();
}

// The command for each budget, with an output of its own where there are several.
Attempt<std::vector<CompileCommand>> commands_by_budget(const CompileCommand& command) {
  std::vector<CompileCommand> out;
  std::set<std::string> names;
  for (const std::string& budget : command.budgets) {
    CompileCommand one = command;
    one.budget.budget = budget;
    if (!command.report.empty()) one.budget.closing_models += models_of_report;
    if (command.budgets.size() > 1) {
      one.output = named_for(command.output, budget);
      if (!command.report.empty()) one.report = named_for(command.report, budget);
      if (!names.insert(one.output).second)
        return usage_failure("--budget " + budget, "has the same name as another target: " + one.output,
                             "compile for them one after the other, with --record");
      HOIST_STEP([[maybe_unused]] const Budget known, ExitCode::usage, parse_budget(budget));
    }
    HOIST_ATTEMPT([[maybe_unused]] ExitCode free, check_output(one));
    for (const std::string& file : {one.report, one.json, one.budget.record})
      HOIST_STEP_VOID(ExitCode::bad_input, refuse_unwritable(file));
    out.push_back(std::move(one));
  }
  return out;
}

// Before the minutes that a compilation may take.
Attempt<> check_pictures(const CompileCommand& command) {
  if (!any_given(command.budget.pictures)) return ExitCode::done;
  HOIST_ATTEMPT(const std::vector<SizeChoice> choices, size_choices(command.options.dimensions));
  ModelOptions options = command.options;
  options.dimensions = choices.front().dimensions;
  options.with_notes = false;
  HOIST_ATTEMPT(const Program program, read_program(command.model, options));
  HOIST_STEP_VOID(ExitCode::bad_input, preprocessing_of(input_infos(program), command.budget.pictures));
  return ExitCode::done;
}

Attempt<> compile(const CompileCommand& given) {
  CompileCommand command = given;
  if (command.programs && !command.options.targets.empty())
    return usage_failure("--programs", "applies to OpenCL, and native code is compiled already", "leave it out");
  if (command.output_option->count() == 0) command.output = output_named_after(command.model, ".hoist");
  HOIST_ATTEMPT([[maybe_unused]] ExitCode fits, check_pictures(command));
  if (command.budgets.empty()) {
    HOIST_ATTEMPT([[maybe_unused]] ExitCode free, check_output(command));
    HOIST_STEP(const FileLock lock, ExitCode::bad_input, FileLock::take(command.output));
    return compile_alone(command);
  }
  HOIST_ATTEMPT(std::vector<CompileCommand> commands, commands_by_budget(command));
  HOIST_STEP(const FileLock record_lock, ExitCode::bad_input, FileLock::take(command.budget.record));
  std::vector<FileLock> output_locks;
  for (const CompileCommand& one : commands) {
    HOIST_STEP(FileLock lock, ExitCode::bad_input, FileLock::take(one.output));
    output_locks.push_back(std::move(lock));
  }
  HOIST_ATTEMPT(const std::vector<SizeChoice> choices, size_choices(command.options.dimensions));
  if (choices.size() > 1)
    return usage_failure("--dim", "lists several sizes, and a budget is measured for one",
                         "compile a bundle for each, with --record, or leave the budget out");
  if (!command.options.rules.empty() || !command.options.steps.empty() || !command.options.tuning.empty() ||
      command.tune_option->count() > 0)
    return usage_failure("--steps, --rules, --tuning and --tune",
                         "exclude a budget, which measures kernels with estimated choices", "leave them out");
  CompileAnswer answer;
  if (commands.size() == 1) {
    HOIST_ATTEMPT(const ExitCode code, compile_within(commands.front(), answer));
    HOIST_ATTEMPT([[maybe_unused]] ExitCode written, answer_json(command.json, answer));
    return code;
  }
  // Measurements of one target reach the others through the record.
  HOIST_STEP(const TemporaryFolder folder, ExitCode::bad_input, TemporaryFolder::make());
  CompileAnswer answers = {{"budgets", CompileAnswer::array()}};
  ExitCode worst = ExitCode::done;
  size_t left = commands.size();
  for (CompileCommand& one : commands) {
    // Time that one budget leaves is for the next ones.
    const double begin = command.budget.since.seconds();
    if (one.budget.seconds > 0)
      one.budget.seconds = begin + std::max(one.budget.seconds - begin, 0.1) / static_cast<double>(left);
    --left;
    if (one.budget.record.empty()) one.budget.record = (folder.path() / "record.json").string();
    say_line("budget {}", one.budget.budget);
    HOIST_ATTEMPT(const ExitCode code, compile_within(one, answer));
    if (code != ExitCode::done) worst = code;
    answers["budgets"].push_back(std::move(answer));
  }
  HOIST_ATTEMPT([[maybe_unused]] ExitCode written, answer_json(command.json, answers));
  return worst;
}

}  // namespace

void add_compile(CLI::App& program, Action& action) {
  auto options = std::make_shared<CompileCommand>();
  CLI::App& command = add_command(program, action, "compile",
                                  "compile a model to a bundle: a folder that any C program can load and run",
                                  "  hoist compile models/digits_residual.onnx -o digits.hoist\n"
                                  "  hoist compile model.onnx -o model.hoist --dim batch=8 --device 0\n"
                                  "  hoist compile model.onnx -o model.hoist --dim batch=1,8,32\n"
                                  "  hoist compile resnet.onnx --resize 256 --crop 224 --mean 0.485,0.456,0.406 --std "
                                  "0.229,0.224,0.225\n"
                                  "  hoist compile model.onnx --target native --tune=30\n"
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
  auto* no_check =
      command.add_flag("--no-check", options->no_check,
                       "do not compare the kernels with the interpreter on the device before the bundle is written");
  command
      .add_flag("--programs", options->programs,
                "store the driver's compiled kernels in the bundle (programs/), which then opens without compiling on "
                "the same device and driver")
      ->excludes(no_check);
  command.add_flag("--validate", options->validate,
                   "compare both sides of every step of the derivation with the interpreter, on random and extreme "
                   "inputs, before anything is written");
  add_model_options(command, options->options);
  add_target_option(command, options->options);
  add_steering_options(command, options->options);
  options->tune_option =
      command
          .add_flag("--tune{60}", options->tune_seconds,
                    "--tune=SECONDS: measure other forms and tiles of the kernels first for about so long, as hoist "
                    "tune does, and take what makes whole runs faster; what is measured is kept in the file of "
                    "--tuning, else nowhere; --tune=0 measures nothing and takes the tiles that a learned cost model "
                    "expects to be clearly faster; with --queue its workers measure")
          ->check(CLI::Range(0.0, 1e7));
  add_shown_passes(command, options->shown);
  exclude_shown_passes(command, add_json_option(command, options->json));
  command
      .add_option("--budget", options->budgets,
                  "the accuracy that may be given up: top1=0.5%, sqnr=30dB, agreement=99%, metric=CMD; with several, "
                  "each has a bundle (and a report) with its name before the ending, from one study")
      ->type_name("BUDGET")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_budget_options(command, options->budget);
  command.add_option("--report", options->report, "the page of the study that the choice was made from")
      ->type_name("FILE");
  command.add_flag("--best-effort", options->best_effort,
                   "write the best point's bundle even if the budget is not met");
}

}  // namespace hoist
