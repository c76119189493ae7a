// Fused launches: one launch runs several steps of a plan in turn. On a CPU a launch costs some microseconds of the
// driver's threads, whatever it computes, and many layers take no longer. So the steps between two host actions are
// divided among few launches with as many work-items as there are threads; the work-items share the work-groups of each
// step. A 1x1 convolution of squeezenet1.1 takes 16 us that way, and 26 us with PoCL's own division. Kernels, arrays
// and layouts are unchanged, and each step can still be launched alone, as in a self-check and a profile. Not for GPUs,
// where work-items of different groups must not wait for one another, and not for native code, whose launches are
// cheap.
#pragma once

#include <vector>

#include "ir/target/profile.h"
#include "lowering/plan/lowered_model.h"

namespace hoist {

/// True if launches on this device are so slow that steps share them by default.
bool fuses_launches(const Profile& profile);

/// The launches in step order, each of consecutive steps; no loop or branch begins or ends within a launch. Every step
/// of a kernel whose work-groups are single work-items belongs to a launch, if the device fuses launches.
std::vector<PlanLaunch> fuse_launches(const LoweredModel& model, const Profile& profile);

/// True if one core computes a run faster than several cores, whose threads have to be woken. The model already has its
/// launches.
bool is_serial(const LoweredModel& model, const Profile& profile);

}  // namespace hoist
