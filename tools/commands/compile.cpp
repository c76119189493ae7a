// hoist compile: a model becomes a bundle.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "backends/bundle/bundle.h"
#include "ir/base/stopwatch.h"
#include "ir/base/temporary_folder.h"
#include "tools/base/file_lock.h"
#include "tools/base/files.h"
#include "tools/base/json_answer.h"
#include "tools/base/terminal.h"
#include "tools/cli/command.h"
#include "tools/commands/compiled_bundle.h"
#include "tools/driver/model.h"
#include "tools/driver/native_files.h"
#include "tools/driver/sizes.h"
#include "tools/inspection/model_summary.h"
#include "tools/inspection/show_passes.h"
#include "tools/inspection/translation.h"
#include "tools/report/report.h"
#include "tools/study/budgeted_compile.h"
#include "tools/study/certificate.h"
#include "tools/tuning/tuned_model.h"

namespace hoist {
namespace {

namespace fs = std::filesystem;

void describe(const ChosenModel& chosen) {
  for (const std::string& note : chosen.study.notes) print_message("note", note);
  say(summary_text(chosen.study));
  const ReferenceScore reference = reference_score(chosen.study);
  if (reference.samples > 0) print_line("{}", reference.text());
  if (const std::string warning = reference.warning(); !warning.empty()) print_message("warning", warning);
}

// --validate: refuses a derivation with a step that wrongly changes a value.
Result<Nothing> check_steps(const Options& command, const ProgramDerivation& derivation, const Profile& profile) {
  if (!command.validate) return Nothing{};
  HOIST_TRY(const Validation validation, validate_derivation(derivation, profile, false));
  print_line("{}", summary_of(validation));
  if (validation.differences.empty()) return Nothing{};
  Diagnostics out;
  for (const StepDifference& difference : validation.differences) out.push_back(described(difference));
  return with_kind(ErrorKind::difference, std::move(out));
}

Result<CompiledModel> compile_program(const Options& command, Program program, CompileAnswer& answer) {
  ModelOptions options = command.model;
  if (command.is_given("--tune")) {
    HOIST_TRY(const auto tuned, tuning::choose_records(program, command.tune_seconds, {command.queue}, options));
    answer = {{"kernels", tuned.chosen}};
    if (tuned.before > 0) answer.update({{"before_ms", tuned.before * 1e3}, {"after_ms", tuned.after * 1e3}});
  }
  if (!command.validate) return compile_model(std::move(program), options);
  HOIST_TRY_VOID(read_schedule_scripts(options));
  HOIST_TRY(OpenedModel model, open_model(std::move(program), options));
  HOIST_TRY_VOID(check_steps(command, model.lowered.derivation, model.profile));
  return compile_model(std::move(model), options);
}

Result<CompiledModel> compile_chosen(const Options& command, ChosenModel chosen) {
  Progress progress;
  progress.show("compiling the chosen model");
  HOIST_TRY(LoweredModel lowered, lower_rewritten(chosen.rewritten, chosen.compile.lower, chosen.model.profile));
  HOIST_TRY_VOID(check_steps(command, lowered.derivation, chosen.model.profile));
  std::vector<LoweredGroup> groups = lowered.groups;
  chosen.compile.progress = kernel_progress(progress, chosen.rewritten.program.name);
  HOIST_TRY(Plan plan, make_plan(std::move(lowered), chosen.compile, chosen.model.profile));
  plan.certificate = chosen.certificate;
  return CompiledModel{std::move(chosen.rewritten.program), std::move(chosen.model.profile), std::move(plan),
                       std::move(groups)};
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

// One bundle for every combination of the sizes that --dim lists.
Result<ExitCode> compile_for_sizes(const Options& command, const std::vector<SizeChoice>& choices) {
  if (!command.shown.print_after.empty() || !command.shown.stop_after.empty())
    return usage_error("--print-after and --stop-after", "show one program, and --dim lists several sizes",
                       "give --dim one size");
  return write_for_sizes(command, choices, [](const Options& one, CompileAnswer& tuned) -> Result<CompiledModel> {
    HOIST_TRY(Program program, read_program(one.subject, one.model));
    return compile_program(one, std::move(program), tuned);
  });
}

Result<ExitCode> write_alone(const Options& command, CompiledModel compiled, const CompileAnswer& tuned,
                             const Stopwatch& stopwatch) {
  std::vector<SizedModel> models;
  models.push_back({{}, std::move(compiled)});
  HOIST_TRY_VOID(write_results(command, models, nullptr));
  const double seconds = stopwatch.seconds();
  report_size(command, models.front().compiled, seconds);
  report_check(models.front().check);
  // The bundle is written: optional work must not run out of memory.
  if (command.json.empty()) return ExitCode::done;
  CompileAnswer answer = answer_of(command, models.front().compiled, models.front().check, seconds);
  if (!tuned.is_null()) answer["tuned"] = tuned;
  return done(answer_json(command.json, answer));
}

// One bundle for all sizes of the range that --dim gives.
Result<ExitCode> compile_open(const Options& command, const OpenSize& open, const Stopwatch& stopwatch) {
  if (!command.shown.print_after.empty() || !command.shown.stop_after.empty() || command.is_given("--tune") ||
      command.validate || any_given(command.images))
    return usage_error("--dim " + open.size.name,
                       "leaves a size open, which excludes --print-after, --stop-after, --tune, "
                       "--validate and the options of images",
                       "give the size a number");
  ModelOptions options = command.model;
  options.dimensions = open.dimensions;
  HOIST_TRY(CompiledModel compiled, compile_model(command.subject, options, open.size));
  return write_alone(command, std::move(compiled), {}, stopwatch);
}

Result<ExitCode> compile_alone(const Options& command) {
  const Stopwatch stopwatch;
  HOIST_TRY_VOID(refuse_given("compile", command, OptionNeeds::budget));
  if (command.is_given("--queue") && !command.is_given("--tune"))
    return usage_error("--queue", "requires --budget or --tune", "leave it out");
  HOIST_TRY(const std::optional<OpenSize> open, open_size(command.model.dimensions));
  if (open) return compile_open(command, *open, stopwatch);
  HOIST_TRY(const std::vector<SizeChoice> choices, size_choices(command.model.dimensions));
  if (choices.size() > 1) return compile_for_sizes(command, choices);
  HOIST_TRY(Program program, read_program_and_prepare(command.subject, command.model));
  HOIST_TRY(const bool goes_on, show_passes(program, command.model, command.shown));
  if (!goes_on) return ExitCode::done;
  CompileAnswer tuned;
  HOIST_TRY(CompiledModel compiled, compile_program(command, std::move(program), tuned));
  return write_alone(command, std::move(compiled), tuned, stopwatch);
}

// Compiles for one budget; fills in the command's answer. Returns whether the budget is met.
Result<ExitCode> compile_within(const Options& command, CompileAnswer& answer) {
  const Stopwatch stopwatch;
  HOIST_TRY(ChosenModel chosen, choose_model(command.subject, command.model, command.budget_options()));
  describe(chosen);
  const bool is_met = chosen.budget_met;
  answer = {{"budget", answer_of(chosen)}};
  if (!is_met) print_message("error", "the budget is not met; the best point is " + best_point(chosen));
  if (!is_met && !command.best_effort) {
    print_message("note", "no bundle is written; --best-effort writes a bundle of the best point");
    return ExitCode::no;
  }
  if (reference_score(chosen.study).is_chance() && !command.best_effort) {
    print_message("error", "the model itself is no better than guessing on these data, so a budget proves nothing");
    print_message("note", "no bundle is written; --best-effort writes it anyway");
    return ExitCode::no;
  }
  HOIST_TRY_VOID(write_report(chosen, command.report, ""));
  const std::optional<Record> record = chosen.record;
  HOIST_TRY(CompiledModel compiled, compile_chosen(command, std::move(chosen)));
  std::vector<SizedModel> models;
  models.push_back({{}, std::move(compiled)});
  HOIST_TRY_VOID(write_results(command, models, record ? &*record : nullptr));
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

// A page shows the unchanged and the chosen model, compiled and timed.
constexpr double models_of_report = 2.5;

// The form of a budget in file names: "top1-0.5" for "top1=0.5%".
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

// The path with "-top1-0.5" before its ending.
std::string named_for(const fs::path& path, const std::string& budget) {
  if (path.empty()) return "";
  fs::path file = path.has_filename() ? path : path.parent_path();
  const fs::path ending = file.extension();
  file.replace_extension();
  return file.string() + "-" + name_of_budget(budget) + ending.string();
}

// The command for each budget, with a separate output if there are several.
Result<std::vector<Options>> commands_by_budget(const Options& command) {
  std::vector<Options> out;
  std::set<std::string> names;
  for (const std::string& budget : command.budgets) {
    Options one = command;
    one.budget.budget = budget;
    if (!command.report.empty()) one.budget.closing_models += models_of_report;
    if (command.budgets.size() > 1) {
      one.output = named_for(command.output, budget);
      if (!command.report.empty()) one.report = named_for(command.report, budget);
      if (!names.insert(one.output).second)
        return usage_error("--budget " + budget, "has the same name as another bundle: " + one.output,
                           "compile for them one after the other, with --record");
      HOIST_TRY([[maybe_unused]] const Budget known, with_kind(ErrorKind::usage, parse_budget(budget)));
    }
    HOIST_TRY_VOID(check_output(one));
    for (const std::string& file : {one.report, one.json, one.budget.record}) HOIST_TRY_VOID(refuse_unwritable(file));
    out.push_back(std::move(one));
  }
  return out;
}

// Checked before a compilation, which may take minutes.
Result<Nothing> check_images(const Options& command) {
  if (!any_given(command.images)) return Nothing{};
  HOIST_TRY(const std::vector<SizeChoice> choices, size_choices(command.model.dimensions));
  ModelOptions options = command.model;
  options.dimensions = choices.front().dimensions;
  options.with_notes = false;
  HOIST_TRY(const Program program, read_program(command.subject, options));
  HOIST_TRY_VOID(preprocessing_of(input_infos(program), command.images));
  return Nothing{};
}

}  // namespace

Result<ExitCode> commands::compile(const Options& given) {
  Options command = given;
  if (command.programs && !command.model.targets.empty())
    return usage_error("--programs", "applies to OpenCL, and native code is compiled already", "leave it out");
  if (!command.is_given("--output")) command.output = output_named_after(command.subject, ".hoist");
  HOIST_TRY_VOID(check_images(command));
  if (command.budgets.empty() && !command.shown.stop_after.empty()) return compile_alone(command);  // writes nothing
  if (command.budgets.empty()) {
    HOIST_TRY_VOID(check_output(command));
    HOIST_TRY(const FileLock lock, FileLock::take(command.output));
    return compile_alone(command);
  }
  HOIST_TRY(std::vector<Options> commands, commands_by_budget(command));
  HOIST_TRY(const FileLock record_lock, FileLock::take(command.budget.record));
  std::vector<FileLock> output_locks;
  for (const Options& one : commands) {
    HOIST_TRY(FileLock lock, FileLock::take(one.output));
    output_locks.push_back(std::move(lock));
  }
  HOIST_TRY(const std::vector<SizeChoice> choices, size_choices(command.model.dimensions));
  if (choices.size() > 1)
    return usage_error("--dim", "lists several sizes, and a budget is measured for one",
                       "compile a bundle for each, with --record, or leave the budget out");
  if (!command.model.rules.empty() || !command.model.steps.empty() || !command.model.tuning.empty() ||
      command.is_given("--tune"))
    return usage_error("--steps, --rules, --tuning and --tune",
                       "exclude a budget, which measures kernels with estimated choices", "leave them out");
  CompileAnswer answer;
  if (commands.size() == 1) {
    HOIST_TRY(const ExitCode code, compile_within(commands.front(), answer));
    HOIST_TRY_VOID(answer_json(command.json, answer));
    return code;
  }
  // The record passes the measurements of one budget to the others.
  HOIST_TRY(const TemporaryFolder folder, TemporaryFolder::make());
  CompileAnswer answers = {{"budgets", CompileAnswer::array()}};
  ExitCode worst = ExitCode::done;
  size_t left = commands.size();
  for (Options& one : commands) {
    // Time that one budget leaves is for the next ones.
    const double begin = command.budget.since.seconds();
    if (one.budget.seconds > 0)
      one.budget.seconds = begin + std::max(one.budget.seconds - begin, 0.1) / static_cast<double>(left);
    --left;
    if (one.budget.record.empty()) one.budget.record = (folder.path() / "record.json").string();
    print_line("budget {}", one.budget.budget);
    HOIST_TRY(const ExitCode code, compile_within(one, answer));
    if (code != ExitCode::done) worst = code;
    answers["budgets"].push_back(std::move(answer));
  }
  HOIST_TRY_VOID(answer_json(command.json, answers));
  return worst;
}

}  // namespace hoist
