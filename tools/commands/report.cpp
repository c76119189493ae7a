// hoist report: accuracy against time, one page that needs nothing beside itself.
#include "tools/report/report.h"

#include <nlohmann/json.hpp>

#include "ir/text/text.h"
#include "tools/budgeted_compile.h"
#include "tools/command.h"
#include "tools/files.h"
#include "tools/json_answer.h"
#include "tools/layers.h"
#include "tools/terminal.h"

namespace hoist {
namespace {

struct ReportCommand {
  std::string model, output, json;
  ModelOptions options;
  BudgetOptions budget;
};

// Without a budget the page shows what is nearly without loss.
constexpr char default_budget[] = "sqnr=30dB";

std::string derivation_text(const ProgramDerivation& derivation, const LoweredGroup& group) {
  std::string out;
  for (const ProgramStep& step : derivation.steps) {
    if (!holds(group.layers, step.layer)) continue;
    out += fmt::format("{}{} ({}) at {}{}\n", step.rule, parameters_text(step), name_of(step.rule_class),
                       step.place.empty() ? step.layer : text(step.place), step.note.empty() ? "" : ": " + step.note);
  }
  return out;
}

void append(std::string& text, const std::string& more) { text += (text.empty() ? "" : "\n\n") + more; }

// The texts of every layer; kernels are emitted once for all layers that they compute.
Result<std::map<std::string, LayerForms>> forms_of(const LoweredModel& lowered, const Profile& profile) {
  std::map<std::string, LayerForms> out;
  std::map<int, EmittedKernel> emitted;
  for (size_t step = 0; step < lowered.groups.size(); ++step) {
    const LoweredGroup& group = lowered.groups[step];
    if (emitted.count(group.kernel) == 0) {
      HOIST_TRY(emitted[group.kernel], emit_kernel(lowered.kernels[static_cast<size_t>(group.kernel)], profile));
    }
    for (const std::string& layer : group.layers) {
      LayerForms& forms = out[layer];
      append(forms.high, print(group.high));
      append(forms.derivation, derivation_text(lowered.derivation, group));
      append(forms.low, print(group.low));
      append(forms.schedule, emitted[group.kernel].schedule);
      append(forms.source, emitted[group.kernel].source);
    }
  }
  return out;
}

Result<std::vector<ReportLayer>> report_layers(const ChosenModel& chosen, const LowerOptions& options) {
  RewrittenModel reference;
  reference.program = chosen.model.program;
  std::vector<std::map<std::string, LayerForms>> forms;
  for (const RewrittenModel* model : {&static_cast<const RewrittenModel&>(reference), &chosen.rewritten}) {
    HOIST_TRY(LoweredModel lowered, lower_rewritten(*model, options, chosen.model.profile));
    HOIST_TRY(auto texts, forms_of(lowered, chosen.model.profile));
    forms.push_back(std::move(texts));
  }
  std::vector<ReportLayer> out;
  for (const NamedCall& layer : named_calls(chosen.model.program))
    out.push_back({layer.name, layer.operation, forms[0][layer.name], forms[1][layer.name]});
  return out;
}

Attempt<> report(const ReportCommand& command) {
  BudgetOptions budget = command.budget;
  if (budget.budget.empty()) budget.budget = default_budget;
  HOIST_ATTEMPT(ChosenModel chosen, choose_model(command.model, command.options, budget));
  const Study& study = *chosen.study;
  HOIST_STEP(std::vector<ReportLayer> layers, ExitCode::bad_input, report_layers(chosen, chosen.compile.lower));
  NetworkPicture picture;
  if (auto drawn = lay_out(named_calls(chosen.model.program)))
    picture = std::move(*drawn);
  else
    complain("warning", drawn.errors());
  for (const std::string& note : study.notes) complain("note", note);
  HOIST_STEP_VOID(ExitCode::bad_input, write_file(command.output, report_page(study, layers, picture)));
  if (!command.json.empty()) HOIST_STEP_VOID(ExitCode::bad_input, write_json(command.json, to_json(study)));
  if (command.json != "-" && command.output != "-") {
    say(summary_text(study));
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
                                  "models/digits_residual_calibration.npz -o report.html",
                                  options, report);
  command.add_option("model", options->model, "an ONNX file")->required()->type_name("MODEL");
  command.add_option("-o,--output", options->output, "the page")->required()->type_name("FILE");
  add_model_options(command, options->options);
  command
      .add_option("--budget", options->budget.budget,
                  std::string("how much accuracy the choice may give up (default: ") + default_budget + ")")
      ->type_name("BUDGET");
  add_budget_options(command, options->budget);
  command.get_option("--calibrate")->required();
  add_json_option(command, options->json, "the numbers of the page");
}

}  // namespace hoist
