// Formulas that approximate tanh, sigmoid, erf and exp on f32, each with a certificate: a bound of the error for every
// f32 input, on every device that rounds to nearest. They are computed at run time from the functions (minimax.h), and
// the bound is proved for the very term that is computed (term_error.h). functions.h makes rules of these formulas;
// rewrites of layers use the rules.
//
// Coefficients are rounded and operations ordered in the certified term, so no error is lost between theory and kernel.
// A quotient ends in a selection, not in a clamp: beyond its range the result is exactly 1 or -1, so that GELU and SiLU
// of large negative numbers are 0. The sigmoid is half of tanh plus a half, with exact ends; its relative error in the
// negative tail is unbounded, so uses that need it take an exp rule, whose error is relative.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ir/base/result.h"

namespace hoist {

/// A bound of a formula's error for inputs in low..high (infinite ends included), with the rounding of every operation.
struct Certificate {
  double error = 0;
  bool relative = false;  ///< relative to the function's value; otherwise absolute
  double low = 0, high = 0;
  std::string how;  ///< "minimax of degrees 5/4 below 5.47, 1 beyond: ..."
};

struct Approximation {
  std::string formula;  ///< a term in the variable x: f32, in the syntax of rules
  Certificate certificate;
};

/// tanh, sigmoid, erf: quotients of odd `degree` by the even degree below it, exactly 0 or +-1 near the limits. exp:
/// 2^n times a polynomial of `degree` in the fraction; subnormal results become 0.
Result<Approximation> approximation(std::string_view function, int degree);

}  // namespace hoist
