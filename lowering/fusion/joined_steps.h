// Which steps of a plan one launch performs, one after the other. A launch costs the threads of a CPU's driver some
// microseconds each, whatever it computes, which is as long as many layers take. So the steps between two points where
// the host has a say are cut into few launches, of as many work-items as there are threads, which share the groups of
// each step: where PoCL divides them itself, a 1x1 convolution of squeezenet1.1 takes 26 us instead of 16. Kernels,
// arrays and what is stored in them stay as they are, and each step can still be launched alone, which is how a
// self-check and a profile look at it. Not for GPUs, where work-items of different groups must not wait for one
// another, and not for native code, whose launches cost little.
#pragma once

#include <vector>

#include "ir/target/profile.h"
#include "lowering/pipeline/lower.h"

namespace hoist {

/// Whether launches take so long on this device that kernels share them, unless somebody says otherwise.
bool joins_steps(const Profile& profile);

/// In the order of the steps, each of those that stand one behind the other; no loop or branch begins or ends within
/// one. All steps of kernels whose groups are single work-items belong to one, if the device joins steps.
std::vector<PlanLaunch> join_steps(const LoweredModel& model, const Profile& profile);

/// Whether one core computes a run sooner than others are woken for it; the model has its launches.
bool is_serial(const LoweredModel& model, const Profile& profile);

}  // namespace hoist
