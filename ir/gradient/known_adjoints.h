// Terms of which the adjoint is shorter than that of their patterns: an element of a softmax does not depend on the
// largest element of its row, although the term subtracts it. The terms are the definitions of operators for one row,
// so they are found in every definition that contains them. Only for adjoints.cpp.
#pragma once

#include "ir/language/expression.h"

namespace hoist::gradients {

/// Computes the adjoint of the row from the row, the term's value and the term's adjoint.
using KnownAdjoint = Expr (*)(Expr row, Expr result, Expr adjoint);

struct KnownTerm {
  Expr row = nullptr;
  KnownAdjoint adjoint = nullptr;
};

/// The row and its adjoint if the term is such a term; otherwise both are null.
KnownTerm known_term(Expr e);

}  // namespace hoist::gradients
