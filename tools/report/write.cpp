// Writes the page of a study's choice: the texts of every layer before and after, the drawing of the network, the
// kernels of a run, and the study.
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "ir/text/text.h"
#include "tools/base/files.h"
#include "tools/base/json_answer.h"
#include "tools/base/terminal.h"
#include "tools/driver/opened_bundle.h"
#include "tools/inspection/device_rates.h"
#include "tools/inspection/roofline.h"
#include "tools/report/report.h"
#include "tools/study/budgeted_compile.h"

namespace hoist {
namespace {

std::string derivation_text(const ProgramDerivation& derivation, const std::set<std::string>& layers) {
  std::string out;
  for (const ProgramStep& step : derivation.steps) {
    if (layers.count(step.layer) == 0) continue;
    out += fmt::format("{}{} ({}) at {}{}\n", step.rule, parameters_text(step), name_of(step.rule_class),
                       step.place.empty() ? step.layer : text(step.place), step.note.empty() ? "" : ": " + step.note);
  }
  return out;
}

void append(std::string& text, const std::string& more) { text += (text.empty() ? "" : "\n\n") + more; }

// The texts of every layer. Each kernel is emitted once, also if several layers share it, and appears once in a layer
// that launches it several times.
Result<std::map<std::string, LayerForms>> forms_of(const LoweredModel& lowered, const Profile& profile) {
  std::map<std::string, LayerForms> out;
  std::map<int, EmittedKernel> emitted;
  std::set<std::pair<std::string, int>> told;
  std::map<std::string, std::set<std::string>> together;  // layers that share kernels with the key
  for (size_t step = 0; step < lowered.groups.size(); ++step) {
    const LoweredGroup& group = lowered.groups[step];
    if (emitted.count(group.kernel) == 0) {
      HOIST_TRY(emitted[group.kernel], emit_kernel(lowered.kernels[static_cast<size_t>(group.kernel)], profile));
    }
    for (const std::string& layer : group.layers) {
      LayerForms& forms = out[layer];
      forms.operations += lowered.kernels[static_cast<size_t>(group.kernel)].operations;
      together[layer].insert(group.layers.begin(), group.layers.end());
      if (!told.emplace(layer, group.kernel).second) continue;
      append(forms.high, print(group.high));
      append(forms.low, print(group.low));
      append(forms.schedule, emitted[group.kernel].schedule);
      append(forms.source, emitted[group.kernel].source);
    }
  }
  for (const auto& [layer, layers] : together) out[layer].derivation = derivation_text(lowered.derivation, layers);
  return out;
}

// "conv1 [1][16][8][8]f32" for each name that is not a constant.
std::vector<std::string> typed(const std::vector<std::string>& names, const std::map<std::string, Type>& types) {
  std::vector<std::string> out;
  for (const std::string& name : names) {
    if (const auto found = types.find(name); found != types.end()) out.push_back(name + " " + text(found->second));
  }
  return out;
}

// The inputs are nodes of the drawing too, since rules apply to their values.
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

struct Forms {
  LoweredModel reference, chosen;
  std::optional<LoweredModel> tuned;  // the chosen model with records, if there are any
};

Result<Forms> lower_forms(const ChosenModel& chosen, const TuningRecords& records) {
  RewrittenModel unchanged;
  unchanged.program = chosen.model.program;
  const LowerOptions& options = chosen.compile.lower;
  HOIST_TRY(LoweredModel reference, lower_rewritten(unchanged, options, chosen.model.profile));
  HOIST_TRY(LoweredModel rewritten, lower_rewritten(chosen.rewritten, options, chosen.model.profile));
  Forms out{std::move(reference), std::move(rewritten), {}};
  if (records) {
    LowerOptions with_records = options;
    with_records.records = records;
    HOIST_TRY(out.tuned, lower_rewritten(chosen.rewritten, with_records, chosen.model.profile));
  }
  return out;
}

Result<std::vector<ReportLayer>> report_layers(const ChosenModel& chosen, const Forms& forms) {
  HOIST_TRY(auto reference, forms_of(forms.reference, chosen.model.profile));
  HOIST_TRY(auto rewritten, forms_of(forms.chosen, chosen.model.profile));
  std::vector<ReportLayer> out;
  std::map<std::string, Type> types(chosen.model.program.inputs.begin(), chosen.model.program.inputs.end());
  for (const Definition& definition : chosen.model.program.definitions)
    types[definition.value] = definition.expression->type;
  for (const NamedCall& layer : named_calls(chosen.model.program)) {
    out.push_back({layer.name, layer.operation, reference[layer.name], rewritten[layer.name],
                   typed(layer.inputs, types), typed(layer.outputs, types)});
  }
  return out;
}

// `profile` has the rates of the device.
Result<std::vector<TimedKernel>> time_kernels(const ChosenModel& chosen, const Profile& profile, LoweredModel lowered) {
  constexpr double seconds = 0.5;
  HOIST_TRY(ModelOnDevice opened, with_kind(ErrorKind::device, open_on_device(std::move(lowered), chosen.model.options,
                                                                              chosen.model.profile)));
  const std::vector<Tensor> inputs = seeded_inputs(opened.runner, opened.plan, 1);
  for (size_t i = 0; i < inputs.size(); ++i)
    HOIST_TRY_VOID(with_kind(ErrorKind::device, opened.runner.set_input(i, inputs[i])));
  HOIST_TRY(const auto steps, time_steps(opened.runner, seconds));
  return timed_kernels(opened.runner, opened.plan, steps, prediction_of(opened.plan, profile));
}

Result<ReportKernels> time_forms(const ChosenModel& chosen, Forms forms) {
  Progress progress;
  progress.show("timing kernels");
  ReportKernels out;
  const PrepareOptions& options = chosen.model.options;
  HOIST_TRY(const Peaks peaks, measure_peaks(options.run, options.profile, options.targets));
  Profile profile = options.profile;
  HOIST_TRY(profile.rates, measure_rates(peaks, options.run, profile, options.targets));
  HOIST_TRY(out.reference, time_kernels(chosen, profile, std::move(forms.reference)));
  HOIST_TRY(out.chosen, time_kernels(chosen, profile, std::move(forms.chosen)));
  if (forms.tuned) {
    HOIST_TRY(out.tuned, time_kernels(chosen, profile, std::move(*forms.tuned)));
  }
  out.peaks = peaks_along_with(peaks_along_with(peaks_along_with(peaks, out.reference), out.chosen), out.tuned);
  return out;
}

Result<Nothing> write_page(const ChosenModel& chosen, const std::vector<ReportLayer>& layers,
                           const ReportKernels& kernels, const std::string& page) {
  NetworkPicture picture;
  if (auto drawn = lay_out(with_inputs(chosen.model.program)))
    picture = std::move(*drawn);
  else
    print_message("warning", drawn.errors());
  return write_file(page, report_page(chosen.study, layers, picture, kernels));
}

}  // namespace

Result<Nothing> write_report(const ChosenModel& chosen, const std::string& page, const std::string& json,
                             const TuningRecords& records) {
  if (page.empty() && json.empty()) return Nothing{};
  HOIST_TRY(Forms forms, lower_forms(chosen, records));
  std::vector<ReportLayer> layers;
  if (!page.empty()) {
    HOIST_TRY(layers, report_layers(chosen, forms));
  }
  HOIST_TRY(const ReportKernels kernels, time_forms(chosen, std::move(forms)));
  if (!page.empty()) HOIST_TRY_VOID(write_page(chosen, layers, kernels, page));
  if (!json.empty()) {
    nlohmann::ordered_json answer = to_json(chosen.study);
    answer["kernels"] = to_json(kernels);
    HOIST_TRY_VOID(write_json(json, answer));
  }
  return Nothing{};
}

}  // namespace hoist
