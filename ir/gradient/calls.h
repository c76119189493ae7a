// Definitions at the end of a program that gradients and training extend, and calls whose operands are known to fit.
// For the files of ir/gradient; a call from a model has errors of its own and belongs to operator_call.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/operators/operators.h"
#include "ir/program/program.h"

namespace hoist::gradients {

/// operator_call for operands that fit by construction: aborts with the message of an error.
inline Expr build_call(OperatorCall call, const std::vector<Expr>& operands) {
  const auto made = operator_call(std::move(call), operands);
  HOIST_CHECK(made.ok(), made.errors()[0].text());
  return *made;
}

/// Defines the term under a new name, which is also its layer, after all other definitions; returns a read of it.
inline Expr append_definition(Program& program, ValueNames& names, const std::string& wanted, Expr term) {
  Definition d;
  d.value = names.make(wanted);
  d.layers = {d.value};
  d.expression = term;
  program.definitions.push_back(std::move(d));
  return parameter(program.definitions.back().value, term->type);
}

}  // namespace hoist::gradients
