// Which steps of a plan one launch performs, one after the other in a single work-item. On CPUs a launch costs a driver
// some microseconds, whatever it computes: where the steps of a small network take less, they are done sooner by one
// core in one launch than by all cores in a launch each. Kernels, arrays and what is stored in them stay as they are,
// and each step can still be launched alone, which is how a self-check and a profile look at it. Not for GPUs, where
// one work-item is a small part of the device, and not for native code, whose launches cost little.
#pragma once

#include <vector>

#include "ir/profile.h"
#include "lowering/lower.h"

namespace hoist {

/// The launches that take less time than those of their steps would, in the order of the steps, which do not overlap.
/// Each joins two steps or more that stand one behind the other, none of them in a loop or a branch.
std::vector<PlanLaunch> join_steps(const LoweredModel& model, const Profile& profile);

}  // namespace hoist
