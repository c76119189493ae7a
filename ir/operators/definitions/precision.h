// The precision of definitions on 16-bit floats: a formula of several operations is computed in f32 and rounded once,
// as engines do. A formula with one rounding, and one that only moves or compares elements, stays unchanged.
#pragma once

#include <functional>
#include <vector>

#include "ir/base/result.h"
#include "ir/language/expression.h"

namespace hoist::operators {

/// The function that `made` returns for arguments of these types; if they are 16-bit floats and the function rounds to
/// them more than once, the one that `made` returns for f32, between conversions. A function that combines its
/// arguments with other 16-bit values has no type for f32 and stays unchanged. Errors: errors of `made`.
Result<Expr> rounded_once(const std::vector<Type>& types,
                          const std::function<Result<Expr>(const std::vector<Type>&)>& made);

/// The type in which Resize forms values between elements of this type. They are converted once, after the last axis.
Scalar interpolation_scalar(Scalar scalar);
/// The amount by which the magnitude of such a value grows before it is truncated to an integer: a value that is just
/// below an integer because its weights were rounded becomes that integer.
double truncation_slack(Scalar interpolated);

}  // namespace hoist::operators
