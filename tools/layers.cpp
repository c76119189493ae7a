#include "tools/layers.h"

#include <algorithm>

#include "ir/near_miss.h"

namespace hoist {

bool holds(const std::vector<std::string>& layers, const std::string& layer) {
  return std::find(layers.begin(), layers.end(), layer) != layers.end();
}

std::vector<std::string> layer_names(const CompiledModel& model) {
  std::vector<std::string> out;
  for (const Layer& layer : model.graph.layers) out.push_back(layer.name);
  for (const LoweredGroup& group : model.compilation.lowered.groups) {
    for (const std::string& layer : group.layers) {
      if (!holds(out, layer)) out.push_back(layer);
    }
  }
  return out;
}

std::vector<std::string> layer_names(const Plan& plan) {
  std::vector<std::string> out;
  for (const PlanStep& step : plan.steps) out.insert(out.end(), step.layers.begin(), step.layers.end());
  return out;
}

Attempt<> check_layer(const std::string& layer, const std::vector<std::string>& names) {
  if (holds(names, layer)) return ExitCode::done;
  const std::string near = near_miss(layer, names);
  return input_failure("layer " + layer, "there is no such layer",
                       near.empty() ? "hoist inspect without a layer lists them" : "did you mean " + near + "?");
}

std::optional<size_t> step_of(const std::vector<PlanStep>& steps, const std::string& layer) {
  for (size_t i = 0; i < steps.size(); ++i) {
    if (holds(steps[i].layers, layer)) return i;
  }
  return std::nullopt;
}

std::optional<size_t> group_of(const LoweredModel& model, const std::string& layer) {
  for (size_t i = 0; i < model.groups.size(); ++i) {
    if (holds(model.groups[i].layers, layer)) return i;
  }
  return std::nullopt;
}

std::string fate(const std::vector<PlanRuleUse>& rules, const std::string& layer) {
  for (const PlanRuleUse& use : rules) {
    // The note of a step on the graph begins with the layer that went.
    if (use.place == "graph" && use.parameters.starts_with(layer + " "))
      return use.parameters + " (rule " + use.rule + ", " + use.rule_class + ")";
  }
  return layer + " has no kernel: it is evaluated at compile time, or read as a view by those that use it";
}

std::string joined_names(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

}  // namespace hoist
