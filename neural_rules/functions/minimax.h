// Best approximation of a function by a polynomial or a rational function, found by exchanging reference points (Remez)
// on a dense grid. What comes out is a proposal: its error is that on the grid, in double, before coefficients are
// rounded. Whoever needs a promise for the term that is computed uses term_error.h.
//
// The exchange starts from least squares and levels by secants. Debian's Boost (1.74) ships no Remez header.
#pragma once

#include <functional>
#include <optional>
#include <vector>

namespace hoist {

/// numerator(t) / denominator(t), times x for odd functions; t is x * x for odd functions and x else.
struct MinimaxShape {
  bool odd = false;
  int numerator = 0, denominator = 0;  ///< degrees in t
  bool relative = false;               ///< the error is measured against the function, which has no zero then
};

struct Minimax {
  std::vector<double> numerator, denominator;  ///< coefficients of t^0, t^1, ...; the denominator's first is 1
  double error = 0;                            ///< largest on the grid
};

/// On [low, high]; odd functions on [0, high]. Nothing where the exchange does not settle or the denominator has a
/// zero.
std::optional<Minimax> minimax(const std::function<double(double)>& function, double low, double high,
                               const MinimaxShape& shape);

}  // namespace hoist
