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

#include "ir/program/program.h"

namespace hoist {

/// Reorders definitions and controls and lists them as the program's items, one step per definition. A carried state
/// and its result share one array. Changes nothing if the program has no controls.
void schedule(Program& program);

}  // namespace hoist
