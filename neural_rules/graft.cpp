#include "neural_rules/graft.h"

#include <algorithm>
#include <set>

#include "neural_rules/switchboard.h"

namespace hoist {

Graft::Graft(const Graph& graph) : original_(graph), out_(graph) {
  for (size_t i = 0; i < out_.layers.size(); ++i) places_[out_.layers[i].name] = i;
}

void Graft::add(Layer layer) {
  const auto [place, fresh] = places_.emplace(layer.name, out_.layers.size());
  HOIST_CHECK(fresh, "two layers are called " + layer.name);
  out_.layers.push_back(std::move(layer));
}

Layer& Graft::layer(const std::string& name) { return out_.layers[places_.at(name)]; }

const Layer& Graft::original(const std::string& name) const {
  const auto place = places_.find(name);
  HOIST_CHECK(place != places_.end() && place->second < original_.layers.size(), "no layer is called " + name);
  return original_.layers[place->second];
}

std::string Graft::value(const std::string& prefix, const GraphDifference& change, const std::string& name,
                         const Resolver& resolve) {
  if (name.empty()) return name;
  if (change.same.count(name) != 0) return resolve(name);
  std::string here = prefix + name;
  if (const auto constant = change.constants.find(name); constant != change.constants.end()) {
    out_.constants[here] = constant->second;
    return here;
  }
  const auto makes_it = [&](const Layer& layer) {
    return std::find(layer.outputs.begin(), layer.outputs.end(), name) != layer.outputs.end();
  };
  const auto maker = std::find_if(change.added.begin(), change.added.end(), makes_it);
  HOIST_CHECK(maker != change.added.end(), "the rewritten graph has no value " + name);
  if (has_layer(prefix + maker->name)) return here;
  Layer clone = *maker;
  clone.name = prefix + maker->name;
  for (std::string& input : clone.inputs) input = value(prefix, change, input, resolve);
  for (std::string& output : clone.outputs) {
    if (!output.empty()) output = prefix + output;
  }
  add(std::move(clone));
  return here;
}

Graph Graft::finish() {
  std::map<std::string, size_t> makers;
  for (size_t i = 0; i < out_.layers.size(); ++i) {
    for (const std::string& output : out_.layers[i].outputs) {
      if (!output.empty()) makers[output] = i;
    }
  }
  std::vector<Layer> ordered;
  enum class State : uint8_t { unseen, open, done };
  std::vector<State> states(out_.layers.size(), State::unseen);
  // A layer stays on the stack until all that it reads is ordered; deep networks would overflow a recursion.
  std::vector<size_t> stack;
  const auto need = [&](const std::string& value) {
    if (const auto maker = makers.find(value); maker != makers.end() && states[maker->second] != State::done) {
      HOIST_CHECK(states[maker->second] == State::unseen, "a cycle through " + value);
      stack.push_back(maker->second);
    }
  };
  for (auto output = out_.outputs.rbegin(); output != out_.outputs.rend(); ++output) need(output->name);
  while (!stack.empty()) {
    const size_t top = stack.back();
    if (states[top] == State::unseen) {
      states[top] = State::open;
      const std::vector<std::string>& inputs = out_.layers[top].inputs;
      for (auto input = inputs.rbegin(); input != inputs.rend(); ++input) need(*input);
      continue;
    }
    stack.pop_back();
    if (states[top] == State::open) ordered.push_back(out_.layers[top]);
    states[top] = State::done;
  }
  out_.layers = std::move(ordered);
  std::set<std::string> read;
  for (const Layer& layer : out_.layers) read.insert(layer.inputs.begin(), layer.inputs.end());
  for (const ValueInfo& output : out_.outputs) read.insert(output.name);
  std::erase_if(out_.constants, [&](const auto& entry) { return read.count(entry.first) == 0; });
  return std::move(out_);
}

std::vector<Layer> replaced_by(const Graph& graph, const Site& site, const SiteRule& rule) {
  std::vector<Layer> out = rule.change.replaced;
  if (site.kind == SiteKind::value) return out;
  const auto named = [&](const std::string& name) {
    const auto place = std::find_if(out.begin(), out.end(), [&](const Layer& layer) { return layer.name == name; });
    return place != out.end() ? place : out.insert(out.end(), *find_layer(graph, name));
  };
  for (const ChangedInput& input : rule.change.inputs) named(input.layer)->inputs[input.slot] = input.after;
  if (out.empty()) named(site.layer);
  return out;
}

}  // namespace hoist
