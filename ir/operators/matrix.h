// Products of matrices over elements of any type. Only for ir/operators.
#pragma once

#include <optional>

#include "ir/operators/support.h"

namespace hoist::operators {

/// numpy's matmul of arrays of one element type: vectors, matrices, and batches that broadcast. With `wide`, sums and
/// the result are of that type, and the factors may differ.
Result<Expr> matrix_product(Expr a, Expr b, std::optional<Scalar> wide = {});

}  // namespace hoist::operators
