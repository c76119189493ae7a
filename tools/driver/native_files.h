// The libraries of a bundle of native code: static ones of what the Halide layer emits, shared ones where a linker is
// at hand, and the table of functions for programs that link them. Not for loading them: that is the C runtime.
#pragma once

#include <string>
#include <vector>

#include "ir/base/result.h"
#include "ir/plan/plan.h"

namespace hoist {

/// One static library an architecture, a shared one where a C compiler for it can be run, and native/kernels.c.
/// `objects` has, for each kernel, an object file a target. Static libraries are functions of the objects alone; the
/// bytes of a shared one also depend on the linker.
Result<std::vector<PlanFile>> native_files(const std::vector<PlanKernel>& kernels,
                                           const std::vector<std::vector<std::string>>& objects,
                                           const std::vector<std::string>& targets);

/// Of plans that share a bundle: the first one's native/kernels.c lists the functions of all of them, the others have
/// none. The names of kernels differ.
Result<Nothing> join_tables(const std::vector<Plan*>& plans);

}  // namespace hoist
