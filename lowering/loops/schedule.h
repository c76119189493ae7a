// The order in which a plan performs the definitions of a program with controls, and which of them belong to a body.
// The program does not say so: a definition belongs to the body of a loop if it depends on what an iteration is given,
// and to a branch if nothing outside of the branch reads it. So what stays the same in a loop is computed before it,
// and what one branch alone needs only where that branch is chosen.
//
// Storage decides with it, since parts of a concatenation share an array: what reads the array reads all of them.
#pragma once

#include <vector>

#include "ir/plan/plan.h"
#include "ir/program/program.h"
#include "lowering/layout/storage_plan.h"

namespace hoist {

/// Puts definitions and controls into that order and gives the items of the plan, one step a definition. What a loop
/// carries gets one array, in which it also is behind the loop. Changes and gives nothing where the program has no
/// controls.
std::vector<PlanItem> schedule(Program& program, StoragePlan& storage);

}  // namespace hoist
