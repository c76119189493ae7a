// Convolution over elements of any type. Only for lowering/operators.
#pragma once

#include "lowering/operators/support.h"

namespace hoist::operators {

/// Filters against windows of x, by the layer's attributes: [N][C][spatial...], [O][C/groups][k...] and bias [O] or
/// null, all of one element type, to [N][O][out...]. Padding is zeros.
Result<Expr> convolution(const OperatorContext& context, Expr x, Expr filters, Expr bias);

}  // namespace hoist::operators
