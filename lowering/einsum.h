// Sums of products over more than two arrays, two at a time. The definition of Einsum multiplies all operands for every
// combination of all indices: four square matrices of n rows take n^5 steps, as three products of matrices 3 n^3.
#pragma once

#include "ir/program.h"

namespace hoist {

/// Every call of Einsum with three or more operands becomes calls with two, the cheapest pair first, where that is less
/// work. Changes the rounding: sums between are of the call's element type.
void contract_in_pairs(Program& program);

}  // namespace hoist
