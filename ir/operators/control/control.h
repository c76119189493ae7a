// Facts for passes about calls whose attributes are programs, besides their definitions: how often a body runs, and
// along which axes sequences enter and rows leave.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/base/result.h"
#include "ir/language/expression.h"

namespace hoist::operators {

/// The maximum number of rows of the scan outputs of a Loop without a number of iterations.
inline constexpr int64_t most_loop_rows = 1024;

/// The number of runs of a Loop's body, as far as the call determines it. `most` is 0 and `starts` false if it never
/// runs.
struct IterationBounds {
  std::optional<int64_t> most;   ///< the number of iterations M, 0 or more; nothing if it is absent or depends on data
  std::optional<int64_t> limit;  ///< the attribute `most`: a bound of the number of runs, whatever M is
  std::optional<bool> starts;    ///< the first condition; nothing if it depends on data
  bool goes_on = false;          ///< true if the body's condition holds for any data
  size_t states = 0, rows = 0;   ///< the carried values, and the rows that each iteration adds to scan outputs

  /// The iterations of a call if neither M nor an attribute states their number.
  int64_t most_or(int64_t otherwise) const { return most.value_or(limit.value_or(otherwise)); }
  /// True if the body runs exactly `most` times.
  bool counted() const { return most && starts && (goes_on || !*starts); }
};
Result<IterationBounds> iteration_bounds(const Spec& loop);

/// The axis along which a Scan reads a sequence, or collects rows; from its end if it is reversed.
struct ScanAxis {
  int64_t axis = 0;
  bool reversed = false;

  Expr rows(Expr sequence) const;   ///< the array with the axis first, in the order in which the body receives elements
  Expr from_rows(Expr rows) const;  ///< the inverse of rows
};
struct ScanAxes {
  std::vector<ScanAxis> sequences, outputs;
};
Result<ScanAxes> axes_of_scan(const Spec& scan);

}  // namespace hoist::operators
