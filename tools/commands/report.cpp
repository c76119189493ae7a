// hoist report: accuracy against time, one page that needs nothing beside itself.
#include "tools/report/report.h"

#include "tools/budgeted_compile.h"
#include "tools/command.h"
#include "tools/json_answer.h"
#include "tools/terminal.h"

namespace hoist {
namespace {

struct ReportCommand {
  std::string model, output, json;
  const CLI::Option* output_option = nullptr;
  ModelOptions options;
  BudgetOptions budget;
};

// Without a budget the page shows what is nearly without loss.
constexpr char default_budget[] = "sqnr=30dB";

Attempt<> report(const ReportCommand& given) {
  ReportCommand command = given;
  if (command.output_option->count() == 0) command.output = output_named_after(command.model, ".html");
  HOIST_ATTEMPT([[maybe_unused]] ExitCode differ, refuse_two_outputs(command.json, "--output", command.output));
  BudgetOptions budget = command.budget;
  if (budget.budget.empty()) budget.budget = default_budget;
  HOIST_ATTEMPT(const ChosenModel chosen, choose_model(command.model, command.options, budget));
  for (const std::string& note : chosen.study.notes) complain("note", note);
  HOIST_ATTEMPT([[maybe_unused]] ExitCode written, write_report(chosen, command.output, command.json));
  if (!budget.record.empty()) HOIST_STEP_VOID(ExitCode::bad_input, write_record(budget.record, chosen.record));
  if (command.output != "-") {
    say(summary_text(chosen.study));
    say_line("{}: open it in a browser", command.output);
  }
  return ExitCode::done;
}

}  // namespace

void add_report(CLI::App& program, Action& action) {
  auto options = std::make_shared<ReportCommand>();
  CLI::App& command = add_command(program, action, "report",
                                  "accuracy against speed on one page: the front, every layer, and what was chosen",
                                  "  hoist report models/digits_residual.onnx --calibrate "
                                  "models/digits_residual_calibration.npz -o report.html\n"
                                  "  hoist report models/digits_residual.onnx --record digits.json --budget top1=1% "
                                  "-o report.html",
                                  options, report);
  command.add_option("model", options->model, "an ONNX file")->required()->type_name("MODEL");
  options->output_option =
      command.add_option("-o,--output", options->output, "the page (default: the model's name with .html, here)")
          ->type_name("FILE");
  add_model_options(command, options->options);
  command
      .add_option("--budget", options->budget.budget,
                  std::string("how much accuracy the choice may give up (default: ") + default_budget + ")")
      ->type_name("BUDGET");
  add_budget_options(command, options->budget);
  add_json_option(command, options->json, "the numbers of the page");
}

}  // namespace hoist
