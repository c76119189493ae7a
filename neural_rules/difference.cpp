#include "neural_rules/difference.h"

namespace hoist {
namespace {

// A rewrite may keep a value's name for what readers see and give the layer's own output a new one; only the place
// (layer and output) says which value is which.
void match_values(const Graph& before, const Graph& after, const std::map<std::string, const Layer*>& layers,
                  std::map<std::string, std::string>& same) {
  for (const ValueInfo& input : before.inputs) same[input.name] = input.name;
  for (const auto& [name, tensor] : after.constants) {
    const auto place = before.constants.find(name);
    if (place != before.constants.end() && place->second == tensor) same[name] = name;
  }
  for (const Layer& layer : before.layers) {
    const auto place = layers.find(layer.name);
    if (place == layers.end()) continue;
    const std::vector<std::string>& now = place->second->outputs;
    for (size_t i = 0; i < layer.outputs.size() && i < now.size(); ++i) {
      if (!layer.outputs[i].empty()) same[now[i]] = layer.outputs[i];
    }
  }
}

bool same_operator(const Layer& a, const Layer& b) {
  return a.operation == b.operation && a.domain == b.domain && a.attributes == b.attributes &&
         a.inputs.size() == b.inputs.size();
}

}  // namespace

GraphDifference difference(const Graph& before, const Graph& after) {
  GraphDifference out;
  std::map<std::string, const Layer*> now;
  for (const Layer& layer : after.layers) now[layer.name] = &layer;
  match_values(before, after, now, out.same);
  for (const auto& [name, tensor] : after.constants) {
    if (out.same.count(name) == 0) out.constants[name] = tensor;
  }
  std::map<std::string, const Layer*> then;
  for (const Layer& layer : before.layers) then[layer.name] = &layer;
  for (const Layer& layer : after.layers) {
    if (then.count(layer.name) == 0) out.added.push_back(layer);
  }
  for (const Layer& layer : before.layers) {
    const auto place = now.find(layer.name);
    if (place == now.end()) continue;
    const Layer& changed = *place->second;
    if (!same_operator(layer, changed)) {
      out.replaced.push_back(changed);
      continue;
    }
    for (size_t slot = 0; slot < layer.inputs.size(); ++slot) {
      const auto known = out.same.find(changed.inputs[slot]);
      const bool kept = changed.inputs[slot].empty() ? layer.inputs[slot].empty()
                                                     : known != out.same.end() && known->second == layer.inputs[slot];
      if (!kept) out.inputs.push_back({layer.name, slot, layer.inputs[slot], changed.inputs[slot]});
    }
  }
  return out;
}

}  // namespace hoist
