// Concatenations without a kernel: every part is computed in its place in the array of the whole.
#pragma once

#include "lowering/layout/storage_plan.h"

namespace hoist {

/// Every part of a concatenation is computed where it belongs, or copied there; nothing is left of the layer itself.
void place_concatenations(Program& program, StoragePlan& plan);

}  // namespace hoist
