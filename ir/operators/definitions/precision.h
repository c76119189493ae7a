// How exactly definitions compute with floats of 16 bits: a formula of several operations is formed in f32 and rounded
// once, as engines do. What rounds once anyway, and what only moves or compares numbers, stays as it is.
#pragma once

#include <functional>
#include <vector>

#include "ir/base/result.h"
#include "ir/language/expression.h"

namespace hoist::operators {

/// The function that `made` gives for arguments of these types; where they are 16-bit floats and the function rounds to
/// them more than once, the one that `made` gives for f32, between conversions. A function that combines its arguments
/// with other 16-bit values has no type for f32 and stays as it is. Errors: those of `made`.
Result<Expr> rounded_once(const std::vector<Type>& types,
                          const std::function<Result<Expr>(const std::vector<Type>&)>& made);

/// The type in which Resize forms values between elements of this type. They are converted once, after the last axis.
Scalar interpolation_scalar(Scalar scalar);
/// The amount by which the magnitude of such a value grows before it is truncated to an integer: a value that is just
/// below an integer because its weights were rounded becomes that integer.
double truncation_slack(Scalar interpolated);

}  // namespace hoist::operators
