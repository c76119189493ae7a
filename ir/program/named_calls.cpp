// Conversion of programs to lists of calls by name, and back.
#include <fmt/format.h>

#include <algorithm>

#include "ir/operators/operators.h"
#include "ir/program/program_builder.h"

namespace hoist {
namespace {

NamedCall named_call(const Definition& definition, std::set<std::string>& names) {
  const Spec& call = *definition.expression;
  NamedCall out;
  out.name = layer_name(definition);
  if (!names.insert(out.name).second) names.insert(out.name = definition.value);
  out.operation = call.operation->name;
  out.domain = call.operation->domain;
  out.attributes = call.operation->attributes;
  for (size_t i = 0; i < call.children.size(); ++i) {
    const auto place = static_cast<size_t>(call.operation->operands[i]);
    if (out.inputs.size() <= place) out.inputs.resize(place + 1);
    out.inputs[place] = call.children[i]->name;
  }
  if (call.operation->results == 1)
    out.outputs = {definition.value};
  else
    out.outputs.resize(static_cast<size_t>(call.operation->results));
  if (!definition.layers.empty()) out.absorbed.assign(definition.layers.begin() + 1, definition.layers.end());
  return out;
}

}  // namespace

std::vector<NamedCall> named_calls(const Program& program) {
  std::vector<NamedCall> calls;
  std::set<std::string> names;
  std::map<std::string, size_t> tuples;
  for (const Definition& definition : program.definitions) {
    const Expr e = definition.expression;
    if (e->pattern == Pattern::get && e->children[0]->pattern == Pattern::parameter) {
      const size_t call = tuples.at(e->children[0]->name);
      calls[call].outputs[static_cast<size_t>(e->integers[0])] = definition.value;
      continue;
    }
    HOIST_CHECK(e->pattern == Pattern::operator_call, definition.value + " is not an operator call");
    if (e->type->is_tuple()) tuples[definition.value] = calls.size();
    calls.push_back(named_call(definition, names));
  }
  return calls;
}

Result<Nothing> check_calls(const Program& program) {
  Diagnostics problems;
  for (const Definition& d : program.definitions) {
    if (d.expression->pattern == Pattern::operator_call) continue;
    if (d.expression->pattern == Pattern::get && d.expression->children[0]->pattern == Pattern::parameter) continue;
    problems.push_back({layer_name(d), "is an expression of a backward pass, for which ONNX has no operator",
                        "only compile, inspect, explain, bisect and verify take such models"});
  }
  if (!problems.empty()) return problems;
  return Nothing{};
}

void shapes_to_inputs(NamedCall& call, int64_t version, std::map<std::string, Tensor>& constants) {
  const OperatorRow* row = find_operator(call.domain, call.operation, version);
  if (row == nullptr) return;
  const auto output =
      std::find_if(call.outputs.begin(), call.outputs.end(), [](const std::string& name) { return !name.empty(); });
  const std::string value = output == call.outputs.end() ? call.name : *output;  // a Loop may have no results
  for (const ShapeInput& shape : shape_inputs(*row)) {
    const auto attribute = call.attributes.find(std::string(shape.name));
    if (attribute == call.attributes.end() || (shape.place < call.inputs.size() && !call.inputs[shape.place].empty()))
      continue;
    const std::string name = value + "." + std::string(shape.name);
    if (const auto* list = std::get_if<std::vector<int64_t>>(&attribute->second))
      constants[name] = Tensor::of(Scalar::i64, {static_cast<int64_t>(list->size())}, *list);
    else if (const auto* numbers = std::get_if<std::vector<double>>(&attribute->second))
      constants[name] = Tensor::of(Scalar::f32, {static_cast<int64_t>(numbers->size())}, *numbers);
    else if (const auto* tensor = std::get_if<Tensor>(&attribute->second))
      constants[name] = *tensor;
    else
      continue;
    call.attributes.erase(attribute);
    if (call.inputs.size() <= shape.place) call.inputs.resize(shape.place + 1);
    call.inputs[shape.place] = name;
  }
}

Result<Program> with_calls(const Program& program, const std::vector<NamedCall>& calls) {
  ProgramBuilder builder(program.name, program.version);
  const bool bounded = !program.bounded.empty();
  if (bounded) builder.take_bounds();
  for (size_t i = 0; i < input_count(program); ++i)
    builder.add_input(value_info(program.inputs[i].first, program.inputs[i].second));
  for (const auto& [name, value] : program.constants) builder.add_constant(name, value);
  for (const NamedCall& call : calls) builder.reserve({call.outputs.begin(), call.outputs.end()});
  for (const NamedCall& call : calls) builder.add_call(call);
  const size_t outputs = bounded ? program.outputs.size() : model_output_count(program) + state_outputs(program).size();
  for (size_t i = 0; i < outputs; ++i) builder.add_output(program.outputs[i]);
  HOIST_TRY(Program out, builder.finish());
  if (bounded) out.extents = program.extents;
  out.states = program.states;
  out.bounded = program.bounded;
  const std::set<std::string> known(program.evaluated.begin(), program.evaluated.end());
  std::vector<ModelLayer> evaluated;
  for (const ModelLayer& layer : program.layers) {
    if (known.count(layer.name) == 0) continue;
    evaluated.push_back(layer);
    out.evaluated.push_back(layer.name);
  }
  out.layers.insert(out.layers.begin(), evaluated.begin(), evaluated.end());
  out.steps = program.steps;
  out.notes.insert(out.notes.begin(), program.notes.begin(), program.notes.end());
  out.hash = program.hash;
  return out;
}

}  // namespace hoist
