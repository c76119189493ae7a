#include "ir/import_graph.h"

#include <algorithm>
#include <set>

#include "ir/operators/operators.h"

namespace hoist {
namespace {

// Definitions as layers again, one call each.
class Export {
 public:
  explicit Export(const Program& program) : program_(program) {
    graph_.name = program.name;
    graph_.opset = program.version;
    graph_.hash = program.hash;
    graph_.inputs = input_infos(program);
    graph_.outputs = output_infos(program);
    graph_.constants = program.constants;
    graph_.steps = program.steps;
    graph_.notes = program.notes;
    for (const auto& [name, type] : value_types(program)) {
      if (leaf_of(type)->is_scalar()) graph_.types[name] = value_info(name, type);
    }
    const std::set<std::string> evaluated(program.evaluated.begin(), program.evaluated.end());
    for (const ModelLayer& layer : program.layers) {
      if (evaluated.count(layer.name) != 0) graph_.evaluated.push_back(layer);
    }
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
    layer.name = layer_name(definition);
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

Result<Program> program_of(const Graph& graph) {
  ProgramBuilder builder(graph.name, graph.opset);
  for (const ValueInfo& input : graph.inputs) builder.add_input(input);
  for (const auto& [name, value] : graph.constants) builder.add_constant(name, value);
  std::map<std::string, std::vector<std::string>> absorbed;  // layer -> layers that are part of it
  for (const ProgramStep& step : graph.steps) {
    std::vector<std::string>& more = absorbed[step.layer];
    more.insert(more.end(), step.absorbed.begin(), step.absorbed.end());
  }
  for (const Layer& layer : graph.layers) builder.reserve({layer.outputs.begin(), layer.outputs.end()});
  for (const Layer& layer : graph.layers) builder.add_call(layer, absorbed[layer.name]);
  for (const ValueInfo& output : graph.outputs) builder.add_output(output.name);
  HOIST_TRY(Program program, builder.finish());
  program.layers.insert(program.layers.begin(), graph.evaluated.begin(), graph.evaluated.end());
  for (const ModelLayer& layer : graph.evaluated) program.evaluated.push_back(layer.name);
  program.steps = graph.steps;
  program.notes.insert(program.notes.begin(), graph.notes.begin(), graph.notes.end());
  program.hash = graph.hash;
  return program;
}

Graph graph_of(const Program& program) { return Export(program).run(); }

}  // namespace hoist
