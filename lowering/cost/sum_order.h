// The order of the steps of sums over collapsed dimensions, by the distances in memory of the elements that they read.
#pragma once

#include "ir/language/expression.h"

namespace hoist {

/// True if a contraction over collapsed dimensions, whose operands are stored arrays under views, moves furthest in
/// memory along the first dimension for every operand, as along the images of a batch. For such sums the order of the
/// term is the order in memory.
bool sums_in_memory_order(Expr term);

}  // namespace hoist
