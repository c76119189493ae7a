#include "neural_rules/model/flow.h"

#include <algorithm>
#include <utility>

namespace hoist {
namespace {

// A value's definition, or null: model inputs, constants and shape values have none.
Expr definition_of(const Flow& flow, const std::string& value) {
  auto found = flow.definitions.find(value);
  return found == flow.definitions.end() ? nullptr : found->second;
}

bool is_narrow(Type type) { return is_integer(leaf_of(type)->scalar) && row(leaf_of(type)->scalar).bits <= 16; }

// True if the value is rounded to a grid of few bits; dequantises: true if it comes from one.
bool quantises(Expr e) { return e != nullptr && is_narrow(e->type); }
bool dequantises(Expr e, const Flow& flow) {
  if (e == nullptr || facts_of(e).kind != LayerKind::elementwise) return false;
  bool narrow = false;
  for (Expr p : parameters_of(e)) {
    if (flow.floats.count(p->name) != 0) return false;
    narrow = narrow || is_narrow(p->type);
  }
  return narrow;
}

// The arrays that kernels write, determined as in lowering/fusion/grouping.cpp: views belong to their consumers, and
// each layer fuses the preceding layers without other consumers into its kernel, with one anchor per kernel.
class Kernels {
 public:
  explicit Kernels(const Flow& flow) : flow_(flow) {
    for (const std::string& name : flow.outputs) read_outside_.insert(source_of(name));
    for (size_t i = 0; i < flow.calls.size(); ++i) add(i);
  }

  /// True if the layer's first output is an array in memory.
  bool writes(size_t layer) const { return kernel_.at(layer) == layer && kind(layer) != LayerKind::view; }
  /// True if no other layer is fused into the layer's kernel.
  bool alone(size_t layer) const { return size_.at(layer) == 1; }

 private:
  LayerKind kind(size_t i) const { return flow_.kinds[i]; }

  // Follows views back to the array that stores the elements.
  std::string source_of(std::string value) const {
    for (auto made = flow_.producer.find(value); made != flow_.producer.end() && kind(made->second) == LayerKind::view;
         made = flow_.producer.find(value)) {
      const Expr view = definition_of(flow_, value);
      if (view == nullptr || facts_of(view).moved.empty()) break;
      value = *facts_of(view).moved.begin();
    }
    return value;
  }

  // Collects kernels that read the array, directly or through views.
  void collect_consumers(const std::string& value, std::set<size_t>& kernels) const {
    auto consumers = flow_.consumers.find(value);
    if (consumers == flow_.consumers.end()) return;
    for (size_t consumer : consumers->second) {
      if (kind(consumer) != LayerKind::view) {
        auto joined = kernel_.find(consumer);
        kernels.insert(joined == kernel_.end() ? consumer : joined->second);
      } else {
        for (const std::string& output : flow_.calls[consumer].outputs) collect_consumers(output, kernels);
      }
    }
  }

  void add(size_t i) {
    kernel_[i] = i;
    size_[i] = 1;
    anchored_[i] = kind(i) != LayerKind::elementwise;
    if (kind(i) != LayerKind::elementwise) return;
    for (bool joined = true; joined;) {
      joined = false;
      for (size_t j = i; j-- > 0 && !joined;) joined = join(j, i);
    }
  }

  bool join(size_t before, size_t consumer) {
    if (kind(before) == LayerKind::view || kernel_[before] != before) return false;
    const std::string& value = flow_.calls[before].outputs[0];
    const Expr definition = definition_of(flow_, value);
    if (definition == nullptr || facts_of(definition).joins || (anchored_[before] && anchored_[consumer])) return false;
    if (read_outside_.count(value) != 0) return false;
    std::set<size_t> kernels;
    collect_consumers(value, kernels);
    if (kernels != std::set<size_t>{consumer}) return false;
    for (auto& [layer, kernel] : kernel_) {
      if (kernel == before) kernel = consumer;
    }
    size_[consumer] += size_[before];
    anchored_[consumer] = anchored_[consumer] || anchored_[before];
    return true;
  }

  const Flow& flow_;
  std::set<std::string> read_outside_;  // arrays of which outputs of the model are views
  std::map<size_t, size_t> kernel_;     // layer -> the last layer of its kernel
  std::map<size_t, size_t> size_;       // layers per kernel, by last layer
  std::map<size_t, bool> anchored_;
};

class Families {
 public:
  Families(const Program& program, const Flow& flow) : flow_(flow), kernels_(flow) {
    for (const auto& [name, type] : program.inputs) {
      if (flow.floats.count(name) != 0) start(name);
    }
    for (size_t i = 0; i < flow.calls.size(); ++i) add(i);
  }

  std::vector<ValueFamily> take() {
    std::vector<ValueFamily> out;
    for (ValueFamily& family : families_) {
      bool leaves = std::any_of(family.members.begin(), family.members.end(),
                                [&](const std::string& v) { return flow_.outputs.count(v) != 0; });
      bool read = std::any_of(family.members.begin(), family.members.end(),
                              [&](const std::string& v) { return flow_.consumers.count(v) != 0; });
      if (!family.name.empty() && !leaves && read && !quantised_already(family)) out.push_back(std::move(family));
    }
    return out;
  }

 private:
  void start(const std::string& value) {
    family_[value] = families_.size();
    families_.push_back({value, {value}, {value}});
  }

  void enter(const std::string& value, size_t family) {
    family_[value] = family;
    families_[family].members.insert(value);
  }

  // True if the model already rounds these values to a grid.
  bool quantised_already(const ValueFamily& family) const {
    auto rounds = [&](size_t consumer) { return quantises(definition_of(flow_, flow_.calls[consumer].outputs[0])); };
    return std::all_of(family.members.begin(), family.members.end(), [&](const std::string& member) {
      if (dequantises(definition_of(flow_, member), flow_)) return true;
      auto consumers = flow_.consumers.find(member);
      return consumers != flow_.consumers.end() &&
             std::all_of(consumers->second.begin(), consumers->second.end(), rounds);
    });
  }

  void add(size_t i) {
    const NamedCall& layer = flow_.calls[i];
    const LayerKind kind = flow_.kinds[i];
    const Expr joined = layer.outputs.size() == 1 ? definition_of(flow_, layer.outputs[0]) : nullptr;
    if (joined != nullptr && facts_of(joined).joins) {
      if (kernels_.writes(i) && !join_parts(layer, facts_of(joined)) && is_float(layer.outputs[0]))
        start(layer.outputs[0]);
      return;
    }
    const bool moves = kind == LayerKind::view || (kind == LayerKind::mover && kernels_.alone(i));
    for (const std::string& output : layer.outputs) {
      if (!is_float(output)) continue;
      const Expr definition = definition_of(flow_, output);
      const bool one = definition != nullptr && moves && facts_of(definition).moved.size() == 1;
      const auto from = one ? family_.find(*facts_of(definition).moved.begin()) : family_.end();
      if (from != family_.end())
        enter(output, from->second);
      else if (kind != LayerKind::view && kernels_.writes(i))
        start(output);
    }
  }

  bool is_float(const std::string& value) const { return flow_.floats.count(value) != 0; }

  // True if the part's elements are used only by the concatenation, so that both have the same range.
  bool only_read_here(const std::string& part) const {
    auto place = family_.find(part);
    if (place == family_.end() || flow_.outputs.count(part) != 0) return false;
    const ValueFamily& family = families_[place->second];
    if (flow_.inputs.count(family.name) != 0) return false;
    return std::all_of(family.members.begin(), family.members.end(), [&](const std::string& member) {
      auto consumers = flow_.consumers.find(member);
      return consumers != flow_.consumers.end() && consumers->second.size() == 1;
    });
  }

  bool join_parts(const NamedCall& concat, const TermFacts& facts) {
    const bool own = !facts.moved.empty() && std::all_of(facts.moved.begin(), facts.moved.end(),
                                                         [&](const auto& part) { return only_read_here(part); });
    if (!own) return false;
    ValueFamily joined{concat.outputs[0], {}, {concat.outputs[0]}};
    std::set<size_t> parts;
    for (const std::string& part : facts.moved) parts.insert(family_.at(part));
    for (size_t part : parts) {
      ValueFamily& family = families_[part];
      joined.sources.insert(joined.sources.end(), family.sources.begin(), family.sources.end());
      joined.members.merge(family.members);
      family = {};
    }
    for (const std::string& member : joined.members) family_[member] = families_.size();
    families_.push_back(std::move(joined));
    return true;
  }

  const Flow& flow_;
  Kernels kernels_;
  std::vector<ValueFamily> families_;  // families without a name are merged into a later family
  std::map<std::string, size_t> family_;
};

}  // namespace

namespace {

LayerKind kind_of(const NamedCall& layer, const Flow& flow) {
  std::set<LayerKind> kinds;
  for (const std::string& output : layer.outputs) {
    if (const Expr definition = definition_of(flow, output)) kinds.insert(facts_of(definition).kind);
  }
  return kinds.empty() ? LayerKind::view : *kinds.rbegin();
}

}  // namespace

Flow flow_of(const Program& program) {
  Flow flow;
  flow.calls = named_calls(program);
  for (size_t i = 0; i < program.definitions.size(); ++i) {
    if (program.definitions[i].expression->pattern == Pattern::operator_call) flow.places.push_back(i);
  }
  flow.definitions = definitions_of(program);
  for (const auto& [name, type] : program.inputs) {
    flow.inputs.insert(name);
    if (leaf_of(type) == scalar_type(Scalar::f32)) flow.floats.insert(name);
  }
  flow.outputs.insert(program.outputs.begin(), program.outputs.end());
  for (size_t i = 0; i < flow.calls.size(); ++i) {
    const NamedCall& layer = flow.calls[i];
    for (const std::string& name : layer.inputs) {
      if (name.empty()) continue;
      std::vector<size_t>& consumers = flow.consumers[name];
      if (consumers.empty() || consumers.back() != i) consumers.push_back(i);
    }
    const bool known = std::all_of(layer.inputs.begin(), layer.inputs.end(), [&](const std::string& name) {
      return name.empty() || program.constants.count(name) != 0 || flow.known.count(name) != 0;
    });
    for (const std::string& name : layer.outputs) {
      if (name.empty()) continue;
      flow.producer[name] = i;
      if (known) {
        flow.known.insert(name);
        continue;
      }
      const Expr definition = definition_of(flow, name);
      if (definition != nullptr && leaf_of(definition->type) == scalar_type(Scalar::f32)) flow.floats.insert(name);
    }
    flow.kinds.push_back(kind_of(layer, flow));
  }
  return flow;
}

std::set<std::string> matrix_inputs(const Definitions& definitions) {
  std::set<std::string> out;
  for (const auto& [value, definition] : definitions) {
    const auto& product = facts_of(definition).product;
    if (product && product->left_summed.size() == 1 && product->left_summed[0] + 1 == product->left_rank)
      out.insert(product->left);
  }
  return out;
}

std::vector<ValueFamily> value_families(const Program& program, const Flow& flow) {
  return Families(program, flow).take();
}

}  // namespace hoist
