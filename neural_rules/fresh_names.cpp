#include "neural_rules/fresh_names.h"

namespace hoist {

FreshNames::FreshNames(const Graph& graph) {
  for (const ValueInfo& input : graph.inputs) names_.insert(input.name);
  for (const auto& [name, tensor] : graph.constants) names_.insert(name);
  for (const Layer& layer : graph.layers) {
    names_.insert(layer.name);
    names_.insert(layer.outputs.begin(), layer.outputs.end());
  }
}

std::string FreshNames::fresh(const std::string& name) {
  std::string unique = name;
  for (int i = 2; !names_.insert(unique).second; ++i) unique = name + "_" + std::to_string(i);
  return unique;
}

}  // namespace hoist
