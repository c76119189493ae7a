// Adjoints of operator calls as operator calls, for operands where rules between calls and strategies for the operator
// give faster kernels than the adjoint of its definition (adjoints.h), which holds for every operator.
#pragma once

#include <functional>
#include <string>

#include "ir/language/expression.h"

namespace hoist::gradients {

/// Stores a term under a name like the given one, and returns the parameter with its value.
using StoreTerm = std::function<Expr(const std::string& wanted, Expr term)>;

/// The adjoint of child i of a call from the adjoint of its result; null if no row applies. Calls inside it are stored.
Expr adjoint_as_call(const Spec& call, size_t i, Expr adjoint, const StoreTerm& store);

}  // namespace hoist::gradients
