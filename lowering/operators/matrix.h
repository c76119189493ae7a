// Products of matrices over elements of any type. Only for lowering/operators.
#pragma once

#include "lowering/operators/support.h"

namespace hoist::operators {

/// numpy's matmul of arrays of one element type: vectors, matrices, and batches that broadcast.
Result<Expr> matrix_product(Expr a, Expr b);

}  // namespace hoist::operators
