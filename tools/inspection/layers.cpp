#include "tools/inspection/layers.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ir/text/parse/near_miss.h"
#include "tools/base/terminal.h"

namespace hoist {
namespace {

// The model's layers, followed by the layers that lowering adds.
std::vector<PlanLayer> with_added(std::vector<PlanLayer> layers, const std::vector<PlanStep>& steps) {
  for (const PlanStep& step : steps) {
    for (const std::string& name : step.layers) {
      const bool known = std::any_of(layers.begin(), layers.end(), [&](const PlanLayer& l) { return l.name == name; });
      if (!known) layers.push_back({name, "(added)", ""});
    }
  }
  return layers;
}

std::vector<size_t> computing(const std::string& layer, const std::vector<PlanStep>& steps) {
  std::vector<size_t> out;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (holds(steps[i].layers, layer)) out.push_back(i);
  }
  return out;
}

// The names of the kernels that compute the layer, without repetition.
std::vector<std::string> kernels_of(const std::string& layer, const std::vector<PlanStep>& steps,
                                    const std::vector<std::string>& kernels) {
  std::vector<std::string> out;
  for (size_t step : computing(layer, steps)) {
    const std::string& name = kernels[static_cast<size_t>(steps[step].kernel)];
    if (!holds(out, name)) out.push_back(name);
  }
  return out;
}

}  // namespace

bool holds(const std::vector<std::string>& layers, const std::string& layer) {
  return std::find(layers.begin(), layers.end(), layer) != layers.end();
}

Result<std::vector<size_t>> steps_of(const std::string& layer, const std::vector<PlanLayer>& layers,
                                     const std::vector<PlanStep>& steps) {
  const std::vector<std::string> names = names_of(with_added(layers, steps));
  if (!holds(names, layer)) {
    return Diagnostic{"layer " + layer, "there is no such layer",
                      did_you_mean(layer, names, "hoist inspect without a layer lists them")};
  }
  return computing(layer, steps);
}

std::string absence_of(const std::string& layer, const std::vector<PlanLayer>& layers) {
  const auto found = std::find_if(layers.begin(), layers.end(), [&](const PlanLayer& l) { return l.name == layer; });
  return layer + ": " + (found == layers.end() ? "" : found->absence);
}

std::string layer_table(const std::vector<PlanLayer>& layers, const std::vector<PlanStep>& steps,
                        const std::vector<std::string>& kernels) {
  std::vector<std::vector<std::string>> rows = {{"layer", "operator", "kernel"}};
  for (const PlanLayer& layer : with_added(layers, steps)) {
    const std::vector<std::string> names = kernels_of(layer.name, steps, kernels);
    rows.push_back({layer.name, layer.operation, names.empty() ? "none: " + layer.absence : joined_names(names)});
  }
  return table(rows);
}

nlohmann::ordered_json layers_json(const std::vector<PlanLayer>& layers, const std::vector<PlanStep>& steps,
                                   const std::vector<std::string>& kernels) {
  nlohmann::ordered_json out = nlohmann::json::array();
  for (const PlanLayer& layer : with_added(layers, steps)) {
    out.push_back({{"name", layer.name},
                   {"operator", layer.operation},
                   {"kernels", kernels_of(layer.name, steps, kernels)},
                   {"absence", layer.absence}});
  }
  return out;
}

std::string joined_names(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

}  // namespace hoist
