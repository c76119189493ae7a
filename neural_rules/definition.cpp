#include "neural_rules/definition.h"

#include <mutex>
#include <unordered_map>

#include "ir/import_graph.h"
#include "ir/operators/operators.h"

namespace hoist {
namespace {

// Constants that may decide shapes; others are known by their types.
constexpr int64_t most_shape_elements = 1024;

Definitions definitions_in(const Program& program) {
  Definitions out;
  std::map<std::string, Expr> tuples;
  for (const Definition& d : program.definitions) {
    const Expr e = without_operator_calls(substitute_parameters(d.expression, tuples));
    if (e->type->is_tuple())
      tuples[d.value] = e;
    else
      out[d.value] = e;
  }
  return out;
}

TermFacts find_facts(Expr term) {
  TermFacts out;
  out.joins = concatenates(term);
  out.product = product_form(term);
  const bool view = moves_only(term) && !out.joins;
  if (view || out.joins || folds(term)) out.moved = moved_from(term);
  if (view)
    out.kind = LayerKind::view;
  else if (!out.joins && !folds(term))
    out.kind = LayerKind::elementwise;
  else
    out.kind = out.moved.empty() ? LayerKind::anchor : LayerKind::mover;
  return out;
}

}  // namespace

Definitions definitions_of(const Graph& graph) {
  auto program = program_of(graph);
  HOIST_CHECK(program.ok(), program.ok() ? "" : program.errors()[0].text());
  return definitions_in(*program);
}

Definitions definitions_of(const Graph& graph, const Layer& layer) {
  ProgramBuilder builder(graph.name, graph.opset);
  std::set<std::string> given = {""};
  for (const std::string& name : layer.inputs) {
    if (!given.insert(name).second) continue;
    const Tensor* constant = constant_of(graph, name);
    const auto type = graph.types.find(name);
    const auto is_input = [&](const ValueInfo& info) { return info.name == name; };
    const auto input = std::find_if(graph.inputs.begin(), graph.inputs.end(), is_input);
    if (constant != nullptr && constant->size() <= most_shape_elements)
      builder.add_constant(name, *constant);
    else if (constant != nullptr)
      builder.add_input({name, constant->scalar(), constant->shape()});
    else if (input != graph.inputs.end())
      builder.add_input(*input);
    else if (type != graph.types.end())
      builder.add_input({name, type->second.scalar, type->second.shape});
    else
      return definitions_of(graph);
  }
  builder.add_call(layer);
  auto program = builder.finish();
  HOIST_CHECK(program.ok(), program.ok() ? "" : program.errors()[0].text());
  return definitions_in(*program);
}

const TermFacts& facts_of(Expr term) {
  static std::mutex mutex;
  static auto* known = new std::unordered_map<Expr, TermFacts>;  // never destroyed: terms live as long as the program
  const std::lock_guard lock(mutex);
  auto place = known->find(term);
  if (place == known->end()) place = known->emplace(term, find_facts(term)).first;
  return place->second;
}

}  // namespace hoist
