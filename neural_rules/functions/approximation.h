// Formulas that stand in for tanh, sigmoid, erf and exp on f32, with a promise for each: how far any f32 input's result
// may lie from the function, on every device that rounds to nearest. Made at run time from the functions themselves
// (minimax.h), bounded as the very term that is computed (term_error.h). Rules are made of these (functions.h); whoever
// rewrites layers uses those.
//
// A certificate is made from the term that is computed: coefficients are rounded and operations ordered there, so
// nothing is lost between a paper's error and the kernel's. A quotient ends in a selection, not in a clamp: beyond its
// range the result is exactly 1 or -1, so that GELU and SiLU of large negative numbers are 0. The sigmoid is half of
// tanh plus a half, with exact ends; its relative error in the negative tail is unbounded, so whoever needs that takes
// an exp rule, whose error is relative.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ir/base/result.h"

namespace hoist {

/// The largest error that a formula can have for inputs in low..high (infinite ends included), rounding of every
/// operation counted.
struct Certificate {
  double error = 0;
  bool relative = false;  ///< to the function's value; else absolute
  double low = 0, high = 0;
  std::string how;  ///< "minimax of degrees 5/4 below 5.47, 1 beyond: ..."
};

struct Approximation {
  std::string formula;  ///< a term in the variable x: f32, as rules are written
  Certificate certificate;
};

/// tanh, sigmoid, erf: quotients of odd `degree` by the even degree below it, exactly 0 or +-1 where the function is
/// nearly so. exp: 2^n times a polynomial of `degree` in the fraction; subnormal results become 0.
Result<Approximation> approximation(std::string_view function, int degree);

}  // namespace hoist
