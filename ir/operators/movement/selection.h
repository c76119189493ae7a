// Positions that a condition selects, for operators with a data-dependent number of results. Only for ir/operators.
#pragma once

#include "ir/operators/definitions/support.h"

namespace hoist::operators {

/// The places of flags that are set, and how many there are.
struct Chosen {
  Expr places;  ///< [room]i64 in order; after them the number of flags
  Expr count;   ///< i64
};

/// flags : [n]bool
Chosen chosen_places(Expr flags, int64_t room);
/// The elements of the blocks along an axis at these positions, [n]i64; 0 for a position beyond all of them.
Expr elements_along(Expr x, int64_t axis, Expr places);

}  // namespace hoist::operators
