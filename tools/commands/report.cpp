// hoist report: accuracy against time, as a page in one file.
#include "tools/report/report.h"

#include <array>
#include <optional>

#include "tools/cli/command.h"
#include "tools/cli/json_answer.h"
#include "tools/cli/terminal.h"
#include "tools/data/file_lock.h"
#include "tools/data/files.h"
#include "tools/report/compare.h"
#include "tools/study/budgeted_compile.h"
#include "tools/study/certificate.h"
#include "tools/study/record_json.h"

namespace hoist {
namespace {

struct ReportCommand {
  std::string model, output, json;
  std::vector<std::string> compared;
  const CLI::Option *output_option = nullptr, *objective_option = nullptr;
  ModelOptions options;
  BudgetOptions budget;
};

// Without a budget the page shows a nearly lossless choice.
constexpr char default_budget[] = "sqnr=30dB";

// The choice of a record that --budget and --objective name; nothing of a record that has none.
Attempt<std::optional<RecordedChoice>> compared_choice(const ReportCommand& command, const Record& record,
                                                       const std::string& where) {
  const bool has_objective = command.objective_option->count() > 0;
  if (record.choices.empty() && command.budget.budget.empty() && !has_objective) return std::optional<RecordedChoice>();
  std::string budget;
  if (!command.budget.budget.empty()) {
    HOIST_STEP(const Budget parsed, ExitCode::usage, parse_budget(command.budget.budget));
    budget = parsed.text();
  }
  HOIST_STEP(RecordedChoice choice, ExitCode::bad_input,
             find_choice(record, budget, has_objective ? command.budget.objective : "", where));
  return std::optional<RecordedChoice>(std::move(choice));
}

// Compares two records; nothing is measured.
Attempt<> compare(const ReportCommand& command) {
  if (!command.model.empty() || command.compared.size() != 2)
    return usage_failure("--compare", "takes two records and no model", "hoist report --compare A.json B.json");
  const std::string output = command.output_option->count() == 0 ? "comparison.html" : command.output;
  HOIST_ATTEMPT([[maybe_unused]] ExitCode differ, refuse_two_outputs(command.json, "--output", output));
  for (const std::string& file : {output, command.json}) HOIST_STEP_VOID(ExitCode::bad_input, refuse_unwritable(file));
  std::array<Record, 2> records;
  std::array<std::optional<RecordedChoice>, 2> choices;
  for (size_t i = 0; i < records.size(); ++i) {
    HOIST_STEP(records[i], ExitCode::bad_input, read_record(command.compared[i]));
    HOIST_ATTEMPT(choices[i], compared_choice(command, records[i], command.compared[i]));
  }
  const auto named = [&](size_t i) {
    return NamedRecord{command.compared[i], &records[i], choices[i] ? &*choices[i] : nullptr};
  };
  const NamedRecord first = named(0), second = named(1);
  HOIST_STEP_VOID(ExitCode::bad_input, write_file(output, comparison_page(first, second)));
  if (output != "-") say_line("{}: open it in a browser", output);
  if (command.json.empty()) return ExitCode::done;
  return answer_json(command.json, to_json(first, second));
}

Attempt<> report(const ReportCommand& given) {
  ReportCommand command = given;
  if (!command.compared.empty()) return compare(command);
  if (command.model.empty()) return usage_failure("model", "is required", "hoist report MODEL");
  if (command.output_option->count() == 0) command.output = output_named_after(command.model, ".html");
  HOIST_ATTEMPT([[maybe_unused]] ExitCode differ, refuse_two_outputs(command.json, "--output", command.output));
  for (const std::string& file : {command.output, command.json, command.budget.record})
    HOIST_STEP_VOID(ExitCode::bad_input, refuse_unwritable(file));
  // The choice is made without them: the gain of rules is printed next to the gain of tuning.
  ModelOptions tuning = command.options;
  HOIST_ATTEMPT([[maybe_unused]] ExitCode read, read_steering(tuning));
  HOIST_STEP(const FileLock lock, ExitCode::bad_input, FileLock::take(command.budget.record));
  BudgetOptions budget = command.budget;
  budget.closing_models = 2.5;  // the model unchanged and as chosen, with its times
  if (budget.budget.empty()) budget.budget = default_budget;
  HOIST_ATTEMPT(const ChosenModel chosen, choose_model(command.model, command.options, budget));
  for (const std::string& note : chosen.study.notes) complain("note", note);
  const ReferenceScore reference = reference_score(chosen.study);
  if (const std::string warning = reference.warning(); !warning.empty()) complain("warning", warning);
  HOIST_ATTEMPT([[maybe_unused]] ExitCode written, write_report(chosen, command.output, command.json, tuning.records));
  if (!budget.record.empty()) HOIST_STEP_VOID(ExitCode::bad_input, write_record(budget.record, chosen.record));
  if (command.output != "-") {
    say(summary_text(chosen.study));
    if (reference.samples > 0) say_line("{}", reference.text());
    say_line("{}: open it in a browser", command.output);
  }
  return ExitCode::done;
}

}  // namespace

void add_report(CLI::App& program, Action& action) {
  auto options = std::make_shared<ReportCommand>();
  CLI::App& command = add_command(program, action, "report",
                                  "write a page on accuracy against speed: the front, every layer, and the choice",
                                  "  hoist report models/digits_residual.onnx --calibrate "
                                  "models/digits_residual_calibration.npz -o report.html\n"
                                  "  hoist report models/digits_residual.onnx --record digits.json --budget top1=1% "
                                  "-o report.html\n"
                                  "  hoist report --compare cpu.json gpu.json -o comparison.html",
                                  options, report);
  command.add_option("model", options->model, "an ONNX file")->type_name("MODEL");
  options->output_option =
      command.add_option("-o,--output", options->output, "the page (default: the model's name with .html, here)")
          ->type_name("FILE");
  add_model_options(command, options->options);
  add_target_option(command, options->options);
  command
      .add_option("--tuning", options->options.tuning,
                  "print the gain of hoist tune's choices, kernel by kernel, next to the gain of rules")
      ->type_name("FILE|shipped");
  command
      .add_option("--budget", options->budget.budget,
                  std::string("the accuracy that the choice may give up (default: ") + default_budget + ")")
      ->type_name("BUDGET");
  add_budget_options(command, options->budget);
  options->objective_option = command.get_option("--objective");
  command
      .add_option("--compare", options->compared,
                  "compare two studies instead: the records of compile --record or report --record; --budget and "
                  "--objective select among several choices")
      ->type_name("RECORD RECORD")
      ->expected(2);
  add_json_option(command, options->json, "the figures of the page");
}

}  // namespace hoist
