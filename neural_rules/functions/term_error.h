// A proved bound of the distance between an f32 term of one variable and a function over a range. The range is
// subdivided until intervals of the term's value and its first two derivatives give a tight bound (a Taylor expansion
// at the centre of each part), and the rounding of every operation is propagated; divisions count with the error that
// OpenCL allows. The bound holds for every f32 in the range on every device that rounds to nearest and conforms to
// OpenCL. For terms of literals, + - * /, fma, negate, abs, sign, comparisons and select, and let; conditions must be
// constant on each part, so a range ends at a select's threshold.
//
// The bound is 1 % above the maximum of dense sampling, and 1.6 times it if rounding dominates.
#pragma once

#include <string>

#include "ir/language/expression.h"

namespace hoist {

/// A function that the host computes to within a few ulps of double, monotone on the compared range.
struct KnownFunction {
  std::string name;
  double (*value)(double);
  double (*slope)(double);
  double largest_curvature;  ///< a bound of the second derivative's magnitude
};

struct ErrorQuestion {
  Expr term = nullptr;  ///< f32; its only parameter or metavariable is the f32 scalar x
  double low = 0, high = 0;
  bool relative = false;  ///< relative to the function's magnitude, which must not be zero in the range
};

/// The largest |term - function| for f32 numbers x in [low, high], or its ratio to |function|. Aborts on other terms;
/// infinity if the subdivision does not converge (a denominator with a zero).
double error_bound(const ErrorQuestion& question, const KnownFunction& function);

}  // namespace hoist
