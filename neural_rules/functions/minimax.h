// Best approximation of a function by a polynomial or a rational function, by the Remez exchange algorithm on a dense
// grid. The result is a candidate: its error holds on the grid, in double, before coefficients are rounded.
// term_error.h certifies the term that is computed.
//
// The exchange starts from least squares and levels by secants. Debian's Boost (1.74) does not include a Remez header.
#pragma once

#include <functional>
#include <optional>
#include <vector>

namespace hoist {

/// numerator(t) / denominator(t), times x for odd functions; t is x * x for odd functions and otherwise x.
struct MinimaxShape {
  bool odd = false;
  int numerator = 0, denominator = 0;  ///< degrees in t
  bool relative = false;               ///< the error is relative to the function, which then must not have a zero
};

struct Minimax {
  std::vector<double> numerator, denominator;  ///< coefficients of t^0, t^1, ...; the denominator's first is 1
  double error = 0;                            ///< maximum on the grid
};

/// The approximation on [low, high]; odd functions on [0, high]. Nothing if the exchange does not converge or the
/// denominator has a zero.
std::optional<Minimax> minimax(const std::function<double(double)>& function, double low, double high,
                               const MinimaxShape& shape);

}  // namespace hoist
