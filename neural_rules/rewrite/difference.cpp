#include "neural_rules/rewrite/difference.h"

namespace hoist {
namespace {

// A name may move to another layer: the dequantised result of a quantised pooling has the name of the original result.
// So a value is unchanged if the same layer computes it under the same name.
void match_values(const Program& before, const Program& after, const std::vector<NamedCall>& calls,
                  const std::map<std::string, const NamedCall*>& layers, std::set<std::string>& same) {
  for (const auto& [name, type] : before.inputs) same.insert(name);
  for (const auto& [name, tensor] : after.constants) {
    const auto found = before.constants.find(name);
    if (found != before.constants.end() && found->second == tensor) same.insert(name);
  }
  for (const NamedCall& layer : calls) {
    const auto place = layers.find(layer.name);
    if (place == layers.end() || place->second->outputs != layer.outputs) continue;
    for (const std::string& output : layer.outputs) {
      if (!output.empty()) same.insert(output);
    }
  }
}

bool same_operator(const NamedCall& a, const NamedCall& b) {
  return a.operation == b.operation && a.domain == b.domain && a.attributes == b.attributes &&
         a.inputs.size() == b.inputs.size();
}

}  // namespace

ProgramDifference difference(const Program& before, const Program& after) {
  ProgramDifference out;
  const std::vector<NamedCall> calls_before = named_calls(before), calls_after = named_calls(after);
  std::map<std::string, const NamedCall*> now;
  for (const NamedCall& layer : calls_after) now[layer.name] = &layer;
  match_values(before, after, calls_before, now, out.same);
  for (const auto& [name, tensor] : after.constants) {
    if (out.same.count(name) == 0) out.constants[name] = tensor;
  }
  std::map<std::string, const NamedCall*> then;
  for (const NamedCall& layer : calls_before) then[layer.name] = &layer;
  for (const NamedCall& layer : calls_after) {
    const auto known = then.find(layer.name);
    if (known == then.end() || known->second->outputs != layer.outputs) out.added.push_back(layer);
  }
  for (const NamedCall& layer : calls_before) {
    const auto found = now.find(layer.name);
    if (found == now.end() || found->second->outputs != layer.outputs) continue;
    const NamedCall& changed = *found->second;
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
