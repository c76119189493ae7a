// The libraries of a native bundle: static libraries of the emitted objects, shared libraries if a linker is available,
// and the function table for programs that link them. Loading them is the task of the C runtime.
#pragma once

#include <string>
#include <vector>

#include "ir/base/result.h"
#include "ir/plan/plan.h"

namespace hoist {

/// One static library per architecture, a shared library if a C compiler for it can be run, and native/kernels.c.
/// `objects` has one object file per target for each kernel. Static libraries depend only on the objects; the bytes of
/// a shared library also depend on the linker.
Result<std::vector<PlanFile>> native_files(const std::vector<PlanKernel>& kernels,
                                           const std::vector<std::vector<std::string>>& objects,
                                           const std::vector<std::string>& targets);

/// In a bundle with several plans, only the first plan's native/kernels.c holds the function table. Kernel names must
/// differ.
Result<Nothing> join_tables(const std::vector<Plan*>& plans);

}  // namespace hoist
