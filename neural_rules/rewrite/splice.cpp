#include "neural_rules/rewrite/splice.h"

#include <algorithm>
#include <set>

#include "neural_rules/rewrite/multi_variant.h"

namespace hoist {

Splice::Splice(const Program& program) : program_(program), original_(named_calls(program)), calls_(original_) {
  for (size_t i = 0; i < calls_.size(); ++i) places_[calls_[i].name] = i;
}

void Splice::add(NamedCall layer) {
  const auto [place, fresh] = places_.emplace(layer.name, calls_.size());
  HOIST_CHECK(fresh, "two layers are called " + layer.name);
  calls_.push_back(std::move(layer));
}

NamedCall& Splice::layer(const std::string& name) { return calls_[places_.at(name)]; }

const NamedCall& Splice::original(const std::string& name) const {
  const auto found = places_.find(name);
  HOIST_CHECK(found != places_.end() && found->second < original_.size(), "no layer is called " + name);
  return original_[found->second];
}

std::string Splice::value(const std::string& prefix, const ProgramDifference& change, const std::string& name,
                          const Resolver& resolve) {
  if (name.empty()) return name;
  if (change.same.count(name) != 0) return resolve(name);
  std::string here = prefix + name;
  if (const auto constant = change.constants.find(name); constant != change.constants.end()) {
    program_.constants[here] = constant->second;
    return here;
  }
  const auto makes_it = [&](const NamedCall& layer) {
    return std::find(layer.outputs.begin(), layer.outputs.end(), name) != layer.outputs.end();
  };
  const auto maker = std::find_if(change.added.begin(), change.added.end(), makes_it);
  HOIST_CHECK(maker != change.added.end(), "the rewritten program has no value " + name);
  if (has_layer(prefix + maker->name)) return here;
  NamedCall clone = *maker;
  clone.name = prefix + maker->name;
  clone.absorbed.clear();
  for (std::string& input : clone.inputs) input = value(prefix, change, input, resolve);
  for (std::string& output : clone.outputs) {
    if (!output.empty()) output = prefix + output;
  }
  add(std::move(clone));
  return here;
}

Result<Program> Splice::finish() {
  std::map<std::string, size_t> makers;
  for (size_t i = 0; i < calls_.size(); ++i) {
    for (const std::string& output : calls_[i].outputs) {
      if (!output.empty()) makers[output] = i;
    }
  }
  std::vector<NamedCall> ordered;
  enum class State : uint8_t { unseen, open, done };
  std::vector<State> states(calls_.size(), State::unseen);
  // A layer stays on the stack until all layers that it reads are ordered; deep networks would overflow a recursion.
  std::vector<size_t> stack;
  const auto need = [&](const std::string& value) {
    if (const auto maker = makers.find(value); maker != makers.end() && states[maker->second] != State::done) {
      HOIST_CHECK(states[maker->second] == State::unseen, "a cycle through " + value);
      stack.push_back(maker->second);
    }
  };
  for (auto output = program_.outputs.rbegin(); output != program_.outputs.rend(); ++output) need(*output);
  while (!stack.empty()) {
    const size_t top = stack.back();
    if (states[top] == State::unseen) {
      states[top] = State::open;
      const std::vector<std::string>& inputs = calls_[top].inputs;
      for (auto input = inputs.rbegin(); input != inputs.rend(); ++input) need(*input);
      continue;
    }
    stack.pop_back();
    if (states[top] == State::open) ordered.push_back(calls_[top]);
    states[top] = State::done;
  }
  return with_calls(program_, ordered);
}

std::vector<NamedCall> replaced_by(const Splice& splice, const Site& site, const SiteRule& rule) {
  std::vector<NamedCall> out = rule.change.replaced;
  if (site.kind == SiteKind::value) return out;
  const auto named = [&](const std::string& name) {
    const auto found = std::find_if(out.begin(), out.end(), [&](const NamedCall& layer) { return layer.name == name; });
    return found != out.end() ? found : out.insert(out.end(), splice.original(name));
  };
  for (const ChangedInput& input : rule.change.inputs) named(input.layer)->inputs[input.slot] = input.after;
  if (out.empty()) named(site.layer);
  for (NamedCall& layer : out) layer.absorbed.clear();
  return out;
}

}  // namespace hoist
