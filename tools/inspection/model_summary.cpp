#include "tools/inspection/model_summary.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ir/text/counted.h"
#include "ir/text/text.h"
#include "lowering/terms/saturated.h"
#include "tools/base/json_answer.h"
#include "tools/base/terminal.h"
#include "tools/data/data.h"

namespace hoist {
namespace {

template <class Model, class TermOf>
ModelSummary summarised(const Model& model, const TermOf& term_of) {
  ModelSummary out;
  const auto info = [&](int index) {
    const PlanArray& array = model.arrays[static_cast<size_t>(index)];
    return ValueInfo{array.name, array.scalar, array.shape};
  };
  // States and the actual lengths of dynamic dimensions come after the inputs and the outputs of the model.
  const size_t inputs = model.inputs.size() - model.states.size();
  for (size_t i = 0; i < inputs; ++i) out.inputs.push_back(info(model.inputs[i]));
  size_t outputs = model.outputs.size();
  for (const PlanExtent& extent : model.extents) outputs = std::min(outputs, static_cast<size_t>(extent.count));
  for (const PlanState& state : model.states) {
    out.states.push_back(info(state.read));
    outputs -= state.initial < 0 ? 1 : 2;
  }
  for (size_t i = 0; i < outputs; ++i) out.outputs.push_back(info(model.outputs[i]));
  for (const PlanExtent& extent : model.extents)
    out.counted[out.outputs[static_cast<size_t>(extent.output)].name].insert(extent.dimension);
  out.layers = model.layers.size();
  for (const auto& kernel : model.kernels) out.kernels += kernel.host.empty() ? 1 : 0;
  out.steps = model.steps.size();
  std::vector<Work> works;
  for (const auto& kernel : model.kernels) {
    const Expr term = term_of(kernel);
    works.push_back(term == nullptr ? Work{} : executed_work(term));
  }
  const std::vector<int64_t> runs = counted_runs(model.items, model.controls, model.steps.size());
  for (size_t i = 0; i < model.steps.size(); ++i) {
    const auto kernel = static_cast<size_t>(model.steps[i].kernel);
    if (!model.kernels[kernel].host.empty()) out.on_host[model.kernels[kernel].host] += 1;
    out.work = out.work + runs[i] * works[kernel];
  }
  for (const PlanControl& control : model.controls)
    (control.is_counted() ? out.loops : out.controls)[control.layers.empty() ? control.name : control.layers.front()] =
        control.is_loop ? control.most : 0;
  out.bytes = array_bytes(model.arrays, model.arena_bytes);
  return out;
}

struct Unit {
  double factor;
  const char* name;
};

std::string three_digits(int64_t number, std::initializer_list<Unit> units, const std::string& small) {
  for (const auto& [factor, name] : units) {
    const double value = static_cast<double>(number) / factor;
    // A number that rounds to 1000 is written in the next unit.
    if (value >= 0.9995) return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, name);
  }
  return std::to_string(number) + small;
}

// "[up to 4][3]i64" for a dynamic dimension.
std::string type_of(const ModelSummary& summary, const ValueInfo& value) {
  const auto counted = summary.counted.find(value.name);
  if (counted == summary.counted.end()) return type_text(value.scalar, value.shape);
  std::string out;
  for (size_t i = 0; i < value.shape.size(); ++i)
    out += fmt::format("[{}{}]", counted->second.count(static_cast<int64_t>(i)) != 0 ? "up to " : "", value.shape[i]);
  return out + std::string(row(value.scalar).name);
}

std::string listed_values(const ModelSummary& summary, const std::vector<ValueInfo>& values, const char* kind) {
  constexpr size_t most = 2;  // the table below lists them all
  if (values.size() > most || values.empty()) return counted(values.size(), kind);
  std::string out;
  for (const ValueInfo& value : values)
    out += (out.empty() ? "" : " and ") + value.name + " " + type_of(summary, value);
  return out;
}

}  // namespace

ModelSummary summary_of(const LoweredModel& model) {
  ModelSummary out = summarised(model, [](const LoweredKernel& kernel) { return kernel.expression; });
  out.name = model.program.name;
  return out;
}

ArrayBytes array_bytes(const std::vector<PlanArray>& arrays, int64_t arena_bytes) {
  ArrayBytes out;
  for (const PlanArray& array : arrays) {
    const int64_t bytes = byte_size(array.scalar, array.shape);
    if (array.place == Place::weights) out.weights = saturated_sum(out.weights, bytes);
    if (array.place == Place::cleared) out.values = saturated_sum(out.values, bytes);
  }
  out.values = saturated_sum(out.values, arena_bytes);
  return out;
}

ModelSummary summary_of(const Plan& plan) {
  ModelSummary out = summarised(plan, [](const PlanKernel& kernel) -> Expr {
    auto term = parse(kernel.expression);
    return term.ok() ? *term : nullptr;
  });
  out.name = plan.model_name;
  return out;
}

std::string number_text(int64_t number) {
  return three_digits(number, {{1e12, "trillion"}, {1e9, "billion"}, {1e6, "million"}, {1e3, "thousand"}}, "");
}

std::string bytes_text(int64_t bytes) {
  return three_digits(bytes, {{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}}, bytes == 1 ? " byte" : " bytes");
}

std::string sentence_of(const ModelSummary& summary) {
  std::string on_host;
  for (const auto& [function, steps] : summary.on_host) {
    on_host += on_host.empty() ? " and on the host " : ", ";
    on_host += steps == 1 ? function : fmt::format("{} ({} times)", function, steps);
  }
  std::string decided;
  for (const auto& [layer, most] : summary.controls) {
    decided += decided.empty() ? "; data decide " : ", ";
    decided += most > 0 ? fmt::format("how often {} runs, at most {}", layer,
                                      hoist::counted(static_cast<uint64_t>(most), "time"))
                        : fmt::format("the branch of {} that runs", layer);
  }
  for (const auto& [layer, iterations] : summary.loops)
    decided += fmt::format("{} {} begins a loop of {}", decided.empty() ? ";" : ",", layer,
                           hoist::counted(static_cast<uint64_t>(iterations), "iteration"));
  const std::string states =
      summary.states.empty() ? "" : ", " + hoist::counted(summary.states.size(), "state") + " between runs";
  return fmt::format("{}: {} from {}{}; {} in {}{}, {} multiplications a run, {} of weights, {} between layers{}",
                     summary.name, listed_values(summary, summary.outputs, "output"),
                     listed_values(summary, summary.inputs, "input"), states, counted(summary.layers, "layer"),
                     counted(summary.kernels, "kernel"), on_host, number_text(summary.work.products),
                     bytes_text(summary.bytes.weights), bytes_text(summary.bytes.values), decided);
}

std::string arrays_table(const ModelSummary& summary) {
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const std::vector<ValueInfo>& values, const char* kind) {
    for (const ValueInfo& value : values)
      rows.push_back({kind, value.name, type_of(summary, value), bytes_text(byte_size(value.scalar, value.shape))});
  };
  add(summary.inputs, "input");
  add(summary.outputs, "output");
  add(summary.states, "state");
  return table(rows);
}

nlohmann::ordered_json to_json(const ModelSummary& summary) {
  nlohmann::ordered_json out = {{"model", summary.name}};
  for (const auto& [key, values] : {std::pair{"inputs", &summary.inputs}, std::pair{"outputs", &summary.outputs},
                                    std::pair{"states", &summary.states}}) {
    if (values == &summary.states && values->empty()) continue;
    out[key] = nlohmann::json::array();
    for (const ValueInfo& value : *values) {
      out[key].push_back(array_json(value.name, value.scalar, value.shape));
      if (auto counted = summary.counted.find(value.name); counted != summary.counted.end())
        out[key].back()["up_to"] = counted->second;
    }
  }
  out["layer_count"] = summary.layers;
  out["kernel_count"] = summary.kernels;
  out["step_count"] = summary.steps;
  if (!summary.on_host.empty()) out["on_host"] = summary.on_host;
  if (!summary.controls.empty()) out["controls"] = summary.controls;
  if (!summary.loops.empty()) out["loops"] = summary.loops;
  out["operations"] = summary.work.arithmetic();
  out["multiplications"] = summary.work.products;
  for (size_t i = 0; i < operation_classes; ++i) {
    const auto kind = static_cast<OperationClass>(i);
    out["operations_by_class"][std::string(name_of(kind))] = summary.work.of(kind);
  }
  out["weight_bytes"] = summary.bytes.weights;
  out["value_bytes"] = summary.bytes.values;
  return out;
}

}  // namespace hoist
