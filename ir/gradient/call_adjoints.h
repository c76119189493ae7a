// Adjoints of operator calls that are operator calls themselves, for operands for which the rules and strategies of an
// operator give faster kernels. For all other operands the operator's definition is differentiated (adjoints.h).
#pragma once

#include <functional>
#include <string>

#include "ir/language/expression.h"

namespace hoist::gradients {

/// Makes the term a definition with a name like `wanted`, and returns the parameter for its value.
using StoreTerm = std::function<Expr(const std::string& wanted, Expr term)>;

/// The adjoint of child i of a call, from the adjoint of the call's result; null if no row applies. Calls in the
/// adjoint are stored.
Expr adjoint_as_call(const Spec& call, size_t i, Expr adjoint, const StoreTerm& store);

}  // namespace hoist::gradients
