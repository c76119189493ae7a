// Positions that a condition selects, for operators with a data-dependent number of results. Only for ir/operators.
#pragma once

#include "ir/operators/definitions/support.h"

namespace hoist::operators {

/// The positions of set flags, and their number.
struct Chosen {
  Expr places;  ///< [room]i64, ascending; unused entries are the number of flags
  Expr count;   ///< i64
};

/// flags : [n]bool
Chosen chosen_places(Expr flags, int64_t room);
/// Elements along an axis, stored in blocks, at these positions, [n]i64; 0 for a position beyond all of them.
Expr elements_along(Expr x, int64_t axis, Expr places);

}  // namespace hoist::operators
