// Concatenations without a kernel: every part is computed in its place in the array of the whole. Many small parts that
// one kernel computes are copied to their places. A concatenation whose parts follow each other in a later one is a
// region of the array of that one.
#pragma once

#include "lowering/layout/storage_plan.h"

namespace hoist {

/// Stores every part of a concatenation in its place in the whole, or adds a copy that does; the layer itself is
/// removed.
void place_concatenations(Program& program, StoragePlan& plan);

}  // namespace hoist
