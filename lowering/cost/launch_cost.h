// The cost of a launch, against which passes weigh additional kernels.
#pragma once

#include "ir/language/expression.h"
#include "ir/target/profile.h"

namespace hoist {

/// The number of multiply-adds that a CPU computes in the time of a launch, or, if `fused`, of a step of a fused
/// launch.
double launch_cost(const Profile& profile, bool fused = false);
/// True if the term computes enough that a launch of its own, with an array in memory, costs little in comparison.
bool is_worth_an_array(Expr term, const Profile& profile);

}  // namespace hoist
