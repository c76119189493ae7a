#include "ir/evaluate/evaluate.h"
#include "ir/program/program_values.h"
#include "lowering/graph/steps.h"
#include "lowering/passes/rows.h"

namespace hoist {

// Values that are computed from withheld constants are withheld too.
Done replay_fold_constants(Program& program, Definition& definition, const ProgramStep& step) {
  Expr subterm = at(definition.expression, step.place);
  const bool empty = subterm != nullptr && step.place.empty() && has_no_elements(subterm->type);
  Expr e = subterm == nullptr ? nullptr : empty ? subterm : constant_term(program, definition, subterm);
  if (e == nullptr || e->free > 0 || !leaf_of(e->type)->is_scalar())
    return Diagnostic{"", "the term at this place reads values other than constants", ""};
  Bindings bindings;
  bool withheld = false;
  for (Expr p : empty ? std::vector<Expr>() : parameters_of(e)) {
    bindings[p->name] = program.constants.at(p->name);
    withheld |= program.withheld.count(p->name) != 0;
  }
  Tensor value;
  auto name = step.parameters.find("name");
  const std::string constant = name == step.parameters.end() ? step.value : name->second;
  if (program.constants.count(constant) != 0 || (constant != step.value && is_definition(program, constant)))
    return Diagnostic{"", "there is a value " + constant + " already", ""};
  if (empty || withheld) {
    value = Tensor(leaf_of(e->type)->scalar, shape_of(e->type));
    if (!empty) program.withheld[constant];
  } else {
    HOIST_TRY(value, evaluate(e, bindings));
  }
  if (name != step.parameters.end()) {
    fold_subterm(program, definition, step.place, constant, std::move(value));
    return Nothing{};
  }
  fold_definition(program, definition, std::move(value));
  program.definitions.erase(program.definitions.begin() + (&definition - program.definitions.data()));
  return Nothing{};
}

}  // namespace hoist
