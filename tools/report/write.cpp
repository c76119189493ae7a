// The page of a choice: the texts of every layer before and after, the picture of the network, and the study.
#include <map>
#include <nlohmann/json.hpp>

#include "ir/text/text.h"
#include "tools/budgeted_compile.h"
#include "tools/files.h"
#include "tools/json_answer.h"
#include "tools/layers.h"
#include "tools/report/report.h"
#include "tools/terminal.h"

namespace hoist {
namespace {

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
      forms.operations += lowered.kernels[static_cast<size_t>(group.kernel)].operations;
    }
  }
  return out;
}

// "conv1 [1][16][8][8]f32" of those that are no constants.
std::vector<std::string> typed(const std::vector<std::string>& names, const std::map<std::string, Type>& types) {
  std::vector<std::string> out;
  for (const std::string& name : names) {
    if (const auto found = types.find(name); found != types.end()) out.push_back(name + " " + text(found->second));
  }
  return out;
}

// The inputs are nodes of the picture as well: rules store values of them.
std::vector<NamedCall> with_inputs(const Program& program) {
  std::vector<NamedCall> out;
  for (const auto& [name, type] : program.inputs) {
    out.emplace_back();
    out.back().name = name;
    out.back().outputs = {name};
  }
  const std::vector<NamedCall> calls = named_calls(program);
  out.insert(out.end(), calls.begin(), calls.end());
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
  std::map<std::string, Type> types(chosen.model.program.inputs.begin(), chosen.model.program.inputs.end());
  for (const Definition& definition : chosen.model.program.definitions)
    types[definition.value] = definition.expression->type;
  for (const NamedCall& layer : named_calls(chosen.model.program)) {
    out.push_back({layer.name, layer.operation, forms[0][layer.name], forms[1][layer.name], typed(layer.inputs, types),
                   typed(layer.outputs, types)});
  }
  return out;
}

Attempt<> write_page(const ChosenModel& chosen, const std::string& page) {
  HOIST_STEP(std::vector<ReportLayer> layers, ExitCode::bad_input, report_layers(chosen, chosen.compile.lower));
  NetworkPicture picture;
  if (auto drawn = lay_out(with_inputs(chosen.model.program)))
    picture = std::move(*drawn);
  else
    complain("warning", drawn.errors());
  HOIST_STEP_VOID(ExitCode::bad_input, write_file(page, report_page(chosen.study, layers, picture)));
  return ExitCode::done;
}

}  // namespace

Attempt<> write_report(const ChosenModel& chosen, const std::string& page, const std::string& json) {
  if (!page.empty()) {
    HOIST_ATTEMPT([[maybe_unused]] ExitCode written, write_page(chosen, page));
  }
  if (!json.empty()) HOIST_STEP_VOID(ExitCode::bad_input, write_json(json, to_json(chosen.study)));
  return ExitCode::done;
}

}  // namespace hoist
