// Formats of few bits for gradients, as rows of a table: a step rounds each gradient to a signed grid of its own before
// it adds or uses it. Rounding is stochastic and unbiased: an element x of an array with the step s becomes one of its
// two adjacent numbers of the grid, with the expected value x and the variance s^2 f (1 - f), at most s^2 / 4, where f
// is the fractional part of x / s. The random bits depend on the seed, the run and the element alone. With feedback,
// the error of a run is a state that the next run adds to its gradient (Seide et al. 2014): sums over runs differ from
// exact sums by at most the largest step, and single gradients have a bias. For formats of weights and values use
// neural_rules/formats.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "ir/language/expression.h"

namespace hoist {

struct GradientFormat {
  std::string_view name;  ///< as `hoist train --gradients` names it
  std::string_view what;
  int bits = 8;
  bool has_feedback = false;

  /// The largest number of the grid, and the negative of the smallest.
  int64_t largest() const { return (int64_t{1} << (bits - 1)) - 1; }
};

std::span<const GradientFormat> gradient_formats();
/// Null if there is none of this name.
const GradientFormat* find_gradient_format(std::string_view name);

/// The step of the grid for an array of floats with at least one dimension: a scalar, the largest magnitude over the
/// largest number.
Expr gradient_step(const GradientFormat& format, Expr gradient);
/// The array in units of this step, a scalar, rounded to integers of i8. `run` is a scalar of u64.
Expr rounded_gradient(const GradientFormat& format, Expr gradient, Expr step, uint64_t seed, Expr run);
/// The gradient that integers and their step stand for.
Expr gradient_of(Expr integers, Expr step);

}  // namespace hoist
