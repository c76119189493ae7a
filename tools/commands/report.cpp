// hoist report: accuracy against time, as a page in one file.
#include "tools/report/report.h"

#include <array>
#include <optional>

#include "tools/base/file_lock.h"
#include "tools/base/files.h"
#include "tools/base/json_answer.h"
#include "tools/base/terminal.h"
#include "tools/cli/command.h"
#include "tools/report/compare.h"
#include "tools/study/budgeted_compile.h"
#include "tools/study/certificate.h"
#include "tools/study/record_json.h"

namespace hoist {
namespace {

// Without a budget the page shows a nearly lossless choice.
constexpr char default_budget[] = "sqnr=30dB";

// The choice of a record that --budget and --objective name; nothing if the record has none.
Result<std::optional<RecordedChoice>> compared_choice(const Options& command, const Record& record,
                                                      const std::string& where) {
  const bool has_objective = command.is_given("--objective");
  if (record.choices.empty() && command.budget.budget.empty() && !has_objective) return std::optional<RecordedChoice>();
  std::string budget;
  if (!command.budget.budget.empty()) {
    HOIST_TRY(const Budget parsed, with_kind(ErrorKind::usage, parse_budget(command.budget.budget)));
    budget = parsed.text();
  }
  HOIST_TRY(RecordedChoice choice, find_choice(record, budget, has_objective ? command.budget.objective : "", where));
  return std::optional<RecordedChoice>(std::move(choice));
}

// Compares two records; nothing is measured.
Result<ExitCode> compare_records(const Options& command) {
  if (!command.subject.empty() || command.compared.size() != 2)
    return usage_error("--compare", "takes two records and no model", "hoist report --compare A.json B.json");
  const std::string output = !command.is_given("--output") ? "comparison.html" : command.output;
  HOIST_TRY_VOID(refuse_two_outputs(command.json, "--output", output));
  for (const std::string& file : {output, command.json}) HOIST_TRY_VOID(refuse_unwritable(file));
  std::array<Record, 2> records;
  std::array<std::optional<RecordedChoice>, 2> choices;
  for (size_t i = 0; i < records.size(); ++i) {
    HOIST_TRY(records[i], read_record(command.compared[i]));
    HOIST_TRY(choices[i], compared_choice(command, records[i], command.compared[i]));
  }
  const auto named = [&](size_t i) {
    return NamedRecord{command.compared[i], &records[i], choices[i] ? &*choices[i] : nullptr};
  };
  const NamedRecord first = named(0), second = named(1);
  HOIST_TRY_VOID(write_file(output, comparison_page(first, second)));
  if (output != "-") print_line("{}: open it in a browser", output);
  if (command.json.empty()) return ExitCode::done;
  return done(answer_json(command.json, to_json(first, second)));
}

}  // namespace

Result<ExitCode> commands::report(const Options& given) {
  Options command = given;
  if (!command.compared.empty()) return compare_records(command);
  if (command.subject.empty()) return usage_error("model", "is required", "hoist report MODEL");
  if (!command.is_given("--output")) command.output = output_named_after(command.subject, ".html");
  HOIST_TRY_VOID(refuse_two_outputs(command.json, "--output", command.output));
  for (const std::string& file : {command.output, command.json, command.budget.record})
    HOIST_TRY_VOID(refuse_unwritable(file));
  // The choice is made without tuning records: the gain of rules is printed next to the gain of tuning.
  ModelOptions tuning = command.model;
  HOIST_TRY_VOID(read_schedule_scripts(tuning));
  HOIST_TRY(const FileLock lock, FileLock::take(command.budget.record));
  BudgetOptions budget = command.budget_options();
  budget.closing_models = 2.5;  // the model unchanged and as chosen, with its times
  if (budget.budget.empty()) budget.budget = default_budget;
  HOIST_TRY(const ChosenModel chosen, choose_model(command.subject, command.model, budget));
  for (const std::string& note : chosen.study.notes) print_message("note", note);
  const ReferenceScore reference = reference_score(chosen.study);
  if (const std::string warning = reference.warning(); !warning.empty()) print_message("warning", warning);
  HOIST_TRY_VOID(write_report(chosen, command.output, command.json, tuning.records));
  if (chosen.record && !budget.record.empty()) HOIST_TRY_VOID(write_record(budget.record, *chosen.record));
  if (command.output != "-") {
    say(summary_text(chosen.study));
    if (reference.samples > 0) print_line("{}", reference.text());
    print_summary("{}: open it in a browser", command.output);
  }
  return ExitCode::done;
}

}  // namespace hoist
