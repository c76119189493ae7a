// Convolution over elements of any type. Only for ir/operators.
#pragma once

#include <optional>

#include "ir/operators/support.h"

namespace hoist::operators {

/// How the numbers of a product meet: the type of the sum where it is not that of the factors, and what stands for
/// zero among the elements of the image.
struct Arithmetic {
  std::optional<Scalar> sum = {};
  int64_t zero = 0;
};

/// Filters against windows of x, by the layer's attributes: [N][C][spatial...], [O][C/groups][k...] and bias [O] or
/// null, of the sum's type, to [N][O][out...]. Padding is zeros.
Result<Expr> convolution(const OperatorContext& context, Expr x, Expr filters, Expr bias,
                         const Arithmetic& arithmetic = {});

}  // namespace hoist::operators
