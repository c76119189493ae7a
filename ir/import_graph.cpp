#include "ir/import_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/evaluate.h"
#include "ir/operators/operators.h"

namespace hoist {
namespace {

Type type_of(const ValueInfo& info) {
  Type t = scalar_type(info.scalar);
  for (size_t i = info.shape.size(); i-- > 0;) t = array_type(info.shape[i], t);
  return t;
}

// Where onnx's own inference and the type of a definition disagree, one of the two is wrong; the user has to know.
void cross_check(const Graph& graph, const std::string& value, Type type, const std::string& layer,
                 std::vector<std::string>& notes) {
  auto place = graph.inferred.find(value);
  if (place == graph.inferred.end() || !leaf_of(type)->is_scalar()) return;
  std::vector<int64_t> shape = shape_of(type);
  const auto& inferred = place->second.shape;
  bool agrees = shape.size() == inferred.size() && place->second.scalar == leaf_of(type)->scalar;
  for (size_t i = 0; agrees && i < shape.size(); ++i) agrees = inferred[i] < 0 || inferred[i] == shape[i];
  if (!agrees) {
    notes.push_back(fmt::format("{}: onnx's shape inference says {} for {}, hoist computes {}", layer,
                                text(type_of(place->second)), value, text(type)));
  }
}

// Lists of i64 and of f32, which is what shapes, axes and scales are, read better than tensors.
Attribute attribute_of(const Tensor& value) {
  if (value.shape().size() != 1 || value.size() > 64) return value;
  if (value.scalar() == Scalar::i64) return value.as_integers();
  if (value.scalar() != Scalar::f32) return value;
  std::vector<double> numbers;
  for (int64_t i = 0; i < value.size(); ++i) numbers.push_back(value.float_at(i));
  return numbers;
}

class Import {
 public:
  explicit Import(const Graph& graph) : graph_(graph) {}

  Result<Program> run() {
    program_.name = graph_.name;
    program_.version = graph_.opset;
    program_.notes = graph_.notes;
    program_.steps = graph_.steps;
    program_.constants = graph_.constants;
    for (const ValueInfo& input : graph_.inputs) {
      program_.inputs.emplace_back(input.name, type_of(input));
      types_[input.name] = type_of(input);
    }
    for (const auto& [name, tensor] : graph_.constants) types_[name] = hoist::type_of(tensor);
    for (const ProgramStep& step : graph_.steps) {
      std::vector<std::string>& more = absorbed_[step.layer];
      more.insert(more.end(), step.absorbed.begin(), step.absorbed.end());
    }
    for (const Layer& layer : graph_.layers) names_.insert(layer.outputs.begin(), layer.outputs.end());
    for (const Layer& layer : graph_.layers) add(layer);
    for (const ValueInfo& output : graph_.outputs) {
      if (types_.count(output.name) == 0 && failed_.count(output.name) == 0)
        problems_.push_back({output.name, "a model output that nothing defines", ""});
      program_.outputs.push_back(output.name);
    }
    if (!problems_.empty()) return problems_;
    // What has become a constant on the way needs no definition.
    std::erase_if(program_.definitions, [&](const Definition& d) { return program_.constants.count(d.value) != 0; });
    return std::move(program_);
  }

 private:
  void add(const Layer& layer) {
    auto fail = [&](Diagnostics problems) {
      for (Diagnostic& d : problems) {
        if (d.where.empty()) d.where = layer.name;
        problems_.push_back(std::move(d));
      }
      failed_.insert(layer.outputs.begin(), layer.outputs.end());
    };
    Diagnostics unknown;
    bool reachable = true;  // readers of a layer that failed say nothing of their own
    for (const std::string& name : layer.inputs) {
      if (failed_.count(name) != 0)
        reachable = false;
      else if (!name.empty() && types_.count(name) == 0)
        unknown.push_back({layer.name, "reads " + name + ", which nothing defines", ""});
    }
    if (!reachable || !unknown.empty()) return fail(unknown);
    auto call = call_for(layer);
    if (!call) return fail(call.errors());
    const auto results = call_results(*call);
    if (results == 1) {
      if (auto defined = define_value(layer, layer.outputs[0], *call); !defined) fail(defined.errors());
      return;
    }
    std::string all = layer.name + ".results";
    while (!names_.insert(all).second || types_.count(all) != 0) all += "_";
    if (auto defined = define_value(layer, all, *call); !defined) return fail(defined.errors());
    for (int64_t i = 0; i < results; ++i) {
      const std::string& value = layer.outputs[static_cast<size_t>(i)];
      if (value.empty()) continue;
      auto defined = define_value(layer, value, get(i, parameter(all, (*call)->type)));
      if (!defined) return fail(defined.errors());
    }
  }

  static int64_t call_results(Expr call) { return call->operation->results; }

  // Outputs that nobody wants at the end of the list are none.
  Result<Expr> call_for(const Layer& layer) {
    OperatorCall call = call_of(layer, graph_.opset);
    while (call.results > 1 && layer.outputs[static_cast<size_t>(call.results) - 1].empty()) --call.results;
    std::vector<Expr> operands;
    for (const std::string& name : layer.inputs)
      operands.push_back(name.empty() ? nullptr : parameter(name, types_.at(name)));
    if (const OperatorRow* row = find_operator(call.domain, call.name, call.version)) {
      for (const ShapeInput& input : shape_inputs(*row)) {
        if (input.place >= operands.size() || operands[input.place] == nullptr) continue;
        HOIST_TRY(const Tensor* value, known_value(layer.inputs[input.place]));
        if (value == nullptr) continue;  // the definition says that it has to be known
        call.attributes[std::string(input.name)] = attribute_of(*value);
        operands[input.place] = nullptr;
      }
    }
    return operator_call(std::move(call), operands);
  }

  Result<Nothing> define_value(const Layer& layer, const std::string& value, Expr e) {
    types_[value] = e->type;
    cross_check(graph_, value, e->type, layer.name, program_.notes);
    // The definition counts: the shape of a value is known where the value is not.
    Expr unfolded = without_operator_calls(e);
    const std::vector<Expr> reads = parameters_of(unfolded);
    const bool known = std::all_of(reads.begin(), reads.end(), [&](Expr p) {
      return program_.constants.count(p->name) != 0 || known_.count(p->name) != 0;
    });
    if (known) known_[value] = {program_.definitions.size(), unfolded};
    std::vector<std::string> computed = {layer.name};
    if (auto more = absorbed_.find(layer.name); more != absorbed_.end())
      computed.insert(computed.end(), more->second.begin(), more->second.end());
    program_.definitions.push_back({value, computed, e});
    return Nothing{};
  }

  // The value of what reads nothing but constants, which becomes a constant; null where it does not.
  Result<const Tensor*> known_value(const std::string& value) {
    if (auto constant = program_.constants.find(value); constant != program_.constants.end()) return &constant->second;
    auto last = known_.find(value);
    if (last == known_.end() || !leaf_of(types_.at(value))->is_scalar()) return nullptr;
    // What it needs, back from the value, then forwards.
    std::map<size_t, Expr> needed = {{last->second.place, last->second.term}};
    for (auto at = needed.rbegin(); at != needed.rend(); ++at) {
      for (Expr p : parameters_of(at->second)) {
        if (auto inner = known_.find(p->name); inner != known_.end())
          needed.emplace(inner->second.place, inner->second.term);
      }
    }
    std::map<std::string, Expr> tuples;
    for (const auto& [place, term] : needed) {
      const Definition& definition = program_.definitions[place];
      if (program_.constants.count(definition.value) != 0) continue;
      Expr e = substitute_parameters(term, tuples);
      if (!leaf_of(e->type)->is_scalar()) {
        tuples[definition.value] = e;
        continue;
      }
      Bindings bindings;
      for (Expr p : parameters_of(e)) bindings[p->name] = program_.constants.at(p->name);
      HOIST_TRY(program_.constants[definition.value], evaluate(e, bindings));
      program_.evaluated.insert(program_.evaluated.end(), definition.layers.begin(), definition.layers.end());
    }
    return &program_.constants.at(value);
  }

  const Graph& graph_;
  Program program_;
  Diagnostics problems_;
  std::map<std::string, Type> types_;
  std::map<std::string, std::vector<std::string>> absorbed_;  // layer -> layers that are part of it
  std::set<std::string> names_, failed_;
  struct Known {
    size_t place;  // of the definition
    Expr term;     // without calls
  };
  std::map<std::string, Known> known_;  // definitions that read nothing but constants
};

// Definitions as layers again, one call each.
class Export {
 public:
  Export(const Program& program, Graph graph) : program_(program), graph_(std::move(graph)) {
    graph_.constants = program.constants;
    graph_.layers.clear();
    graph_.steps = program.steps;
  }

  Graph run() {
    std::map<std::string, size_t> tuples;
    for (const Definition& definition : program_.definitions) {
      const Expr e = definition.expression;
      if (e->pattern == Pattern::get && e->children[0]->pattern == Pattern::parameter) {
        Layer& layer = graph_.layers[tuples.at(e->children[0]->name)];
        layer.outputs[static_cast<size_t>(e->integers[0])] = definition.value;
        continue;
      }
      HOIST_CHECK(e->pattern == Pattern::operator_call, definition.value + " is no operator call");
      graph_.layers.push_back(layer_of(definition));
      if (e->type->is_tuple()) tuples[definition.value] = graph_.layers.size() - 1;
    }
    return std::move(graph_);
  }

 private:
  Layer layer_of(const Definition& definition) {
    const Spec& call = *definition.expression;
    Layer layer;
    layer.name = definition.layers.empty() ? definition.value : definition.layers.front();
    if (!names_.insert(layer.name).second) names_.insert(layer.name = definition.value);
    layer.operation = call.operation->name;
    layer.domain = call.operation->domain;
    layer.attributes = call.operation->attributes;
    for (size_t i = 0; i < call.children.size(); ++i)
      input(layer, static_cast<size_t>(call.operation->operands[i])) = call.children[i]->name;
    const OperatorRow* row = find_operator(layer.domain, layer.operation, call.operation->version);
    for (const ShapeInput& shape : shape_inputs(*row)) {
      auto attribute = layer.attributes.find(std::string(shape.name));
      // Older versions have some of them as attributes, and models keep those.
      if (attribute == layer.attributes.end() ||
          (shape.place < layer.inputs.size() && !layer.inputs[shape.place].empty()))
        continue;
      const std::string name = definition.value + "." + std::string(shape.name);
      if (const auto* list = std::get_if<std::vector<int64_t>>(&attribute->second))
        graph_.constants[name] = Tensor::of(Scalar::i64, {static_cast<int64_t>(list->size())}, *list);
      else if (const auto* numbers = std::get_if<std::vector<double>>(&attribute->second))
        graph_.constants[name] = Tensor::of(Scalar::f32, {static_cast<int64_t>(numbers->size())}, *numbers);
      else if (const auto* tensor = std::get_if<Tensor>(&attribute->second))
        graph_.constants[name] = *tensor;
      else
        continue;
      layer.attributes.erase(attribute);
      input(layer, shape.place) = name;
    }
    if (call.operation->results == 1)
      layer.outputs = {definition.value};
    else
      layer.outputs.resize(static_cast<size_t>(call.operation->results));
    return layer;
  }

  static std::string& input(Layer& layer, size_t place) {
    if (layer.inputs.size() <= place) layer.inputs.resize(place + 1);
    return layer.inputs[place];
  }

  const Program& program_;
  Graph graph_;
  std::set<std::string> names_;
};

}  // namespace

Result<Program> program_of(const Graph& graph) { return Import(graph).run(); }

Graph graph_of(const Program& program, Graph graph) { return Export(program, std::move(graph)).run(); }

}  // namespace hoist
