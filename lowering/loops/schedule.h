// The order in which a plan executes the definitions of a program with controls, and the body that each definition
// belongs to.
//
// The program does not state either: a definition belongs to the body of a loop if it depends on a value of the
// iteration, and to a branch if no definition outside of the branch uses it. So loop-invariant values are computed
// before the loop, and values needed by one branch are computed only if that branch is chosen.
//
// The order depends on storage: the parts of a concatenation share an array, so a consumer of the array depends on all
// parts.
#pragma once

#include <vector>

#include "ir/plan/plan.h"
#include "ir/program/program.h"
#include "lowering/layout/storage_plan.h"

namespace hoist {

/// Reorders definitions and controls and returns the items of the plan, one step per definition. A carried state and
/// its result share one array. Returns nothing and changes nothing if the program has no controls.
std::vector<PlanItem> schedule(Program& program, StoragePlan& storage);

}  // namespace hoist
