#include "lowering/terms/statements.h"

#include <algorithm>

#include "ir/properties/properties.h"
#include "lowering/terms/terms.h"

namespace hoist {
namespace {

bool keeps(Expr e) {
  return e->pattern == Pattern::let && e->children[0]->pattern == Pattern::materialise &&
         e->children[0]->memory == Memory::local && e->children[0]->type->is_array();
}

// A statement inherits the properties that concern its term. Results of convolutions and poolings are images.
Definition statement(const Definition& whole, const std::string& name, Expr term) {
  Definition out;
  out.value = name;
  out.layers = whole.layers;
  out.expression = term;
  for (const Weights& w : whole.weights) {
    if (!mentions(term, w.value)) continue;
    out.weights.push_back(w);
    out.channels_first |= w.in_place && w.output_dimension <= 1 && w.extents.size() >= 3;
  }
  out.channels_first |= leaf_of(term->type)->is_scalar() && pools(term);
  return out;
}

}  // namespace

size_t count_statements(Expr e) {
  size_t count = 0;
  for (; keeps(e); e = e->children[1]->children[0]) ++count;
  return count;
}

std::string statement_name(const std::string& value, size_t number) {
  return "\2" + value + "." + std::to_string(number);
}

bool is_statement(const std::string& name) { return name.starts_with('\2'); }

Statements statements_of(const Definition& definition) {
  Statements out;
  Expr e = definition.expression;
  while (keeps(e)) {
    Expr materialised = e->children[0]->children[0];
    e = apply(e->children[1],
              {parameter(statement_name(definition.value, out.materialised.size()), materialised->type)});
    out.materialised.push_back(materialised);
  }
  out.result = e;
  return out;
}

Expr term_of(const std::string& value, const Statements& statements) {
  Expr e = statements.result;
  for (size_t i = statements.materialised.size(); i-- > 0;) {
    e = let(materialise(Memory::local, statements.materialised[i]), [&](Expr array) {
      return substitute_parameters(e, {{statement_name(value, i), array}});
    });
  }
  return e;
}

Program with_statements_apart(const Program& program) {
  Program out = program;
  out.definitions.clear();
  for (const Definition& definition : program.definitions) {
    const Statements statements = statements_of(definition);
    for (size_t i = 0; i < statements.materialised.size(); ++i) {
      out.definitions.push_back(statement(definition, statement_name(definition.value, i), statements.materialised[i]));
    }
    if (statements.materialised.empty()) {
      out.definitions.push_back(definition);
      continue;
    }
    Definition result = statement(definition, definition.value, statements.result);
    result.channels_first |= definition.channels_first;
    out.definitions.push_back(std::move(result));
  }
  return out;
}

Path statement_place(size_t number, size_t count) {
  Path place;
  for (size_t i = 0; i < number; ++i) place.insert(place.end(), {1, 0});
  if (number < count) place.insert(place.end(), {0, 0});
  return place;
}

}  // namespace hoist
