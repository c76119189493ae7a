// How far an f32 term of one variable may lie from a function, everywhere in a range: a bound, not a sample. The range
// is divided until intervals of the term's value and of its first two derivatives say enough (a Taylor step from the
// middle of each part), and the rounding of every operation is carried along; divisions count with what OpenCL allows
// them. The bound therefore holds for every f32 in the range on every device that rounds to nearest and keeps its
// promises. For terms of literals, + - * /, fma, negate, abs, sign, comparisons and select, and let; branches have to
// be decided on each part, so a range ends where a select changes.
//
// The bound is 1 % above what dense sampling finds, 1.6 times where rounding rules.
#pragma once

#include <string>

#include "ir/language/expression.h"

namespace hoist {

/// A function that the host knows to within a few units of double, monotone where it is compared.
struct KnownFunction {
  std::string name;
  double (*value)(double);
  double (*slope)(double);
  double largest_curvature;  ///< of its second derivative's magnitude, anywhere
};

struct ErrorQuestion {
  Expr term = nullptr;  ///< f32; its only parameter or metavariable is the f32 scalar x
  double low = 0, high = 0;
  bool relative = false;  ///< to the function's magnitude, which has no zero in the range then
};

/// The largest |term - function| for f32 numbers x in [low, high], or that over |function|. Aborts on terms other than
/// those above; infinity where the range divides without end (a denominator with a zero).
double error_bound(const ErrorQuestion& question, const KnownFunction& function);

}  // namespace hoist
