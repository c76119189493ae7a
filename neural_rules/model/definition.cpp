#include "neural_rules/model/definition.h"

#include <mutex>
#include <unordered_map>

#include "ir/operators/operators.h"

namespace hoist {
namespace {

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

const Definition* find_layer(const Program& program, const std::string& layer) {
  for (const Definition& definition : program.definitions) {
    if (definition.expression->pattern == Pattern::operator_call && layer_name(definition) == layer) return &definition;
  }
  return nullptr;
}

double float_attribute(const Definition& layer, const std::string& name, double otherwise) {
  const Attributes& attributes = layer.expression->operation->attributes;
  const auto found = attributes.find(name);
  const double* value = found == attributes.end() ? nullptr : std::get_if<double>(&found->second);
  return value == nullptr ? otherwise : *value;
}

Expr term_of(const Program& program, const Definition& definition) {
  const Expr e = definition.expression;
  if (e->pattern != Pattern::get || e->children[0]->pattern != Pattern::parameter) return without_operator_calls(e);
  const std::string& tuple = e->children[0]->name;
  const Expr results = without_operator_calls(find_definition(program, tuple)->expression);
  return substitute_parameters(e, {{tuple, results}});
}

Definitions definitions_of(const Program& program) {
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

const TermFacts& facts_of(Expr term) {
  static std::mutex mutex;
  static auto* known = new std::unordered_map<Expr, TermFacts>;  // never destroyed: terms live as long as the process
  const std::lock_guard lock(mutex);
  auto found = known->find(term);
  if (found == known->end()) found = known->emplace(term, find_facts(term)).first;
  return found->second;
}

}  // namespace hoist
