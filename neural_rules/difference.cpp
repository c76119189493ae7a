#include "neural_rules/difference.h"

namespace hoist {
namespace {

// A name may pass to another layer: what a quantised pooling made is read under the old name after it was dequantised.
// So a value is the same where the same layer makes it under the same name.
void match_values(const Graph& before, const Graph& after, const std::map<std::string, const Layer*>& layers,
                  std::set<std::string>& same) {
  for (const ValueInfo& input : before.inputs) same.insert(input.name);
  for (const auto& [name, tensor] : after.constants) {
    const auto place = before.constants.find(name);
    if (place != before.constants.end() && place->second == tensor) same.insert(name);
  }
  for (const Layer& layer : before.layers) {
    const auto place = layers.find(layer.name);
    if (place == layers.end() || place->second->outputs != layer.outputs) continue;
    for (const std::string& output : layer.outputs) {
      if (!output.empty()) same.insert(output);
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
    const auto known = then.find(layer.name);
    if (known == then.end() || known->second->outputs != layer.outputs) out.added.push_back(layer);
  }
  for (const Layer& layer : before.layers) {
    const auto place = now.find(layer.name);
    if (place == now.end() || place->second->outputs != layer.outputs) continue;
    const Layer& changed = *place->second;
    if (!same_operator(layer, changed)) {
      out.replaced.push_back(changed);
      continue;
    }
    for (size_t slot = 0; slot < layer.inputs.size(); ++slot) {
      const bool is_same = changed.inputs[slot].empty() || out.same.count(changed.inputs[slot]) != 0;
      const bool kept = is_same && changed.inputs[slot] == layer.inputs[slot];
      if (!kept) out.inputs.push_back({layer.name, slot, layer.inputs[slot], changed.inputs[slot]});
    }
  }
  return out;
}

}  // namespace hoist
