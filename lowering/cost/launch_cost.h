// The cost of a launch, against which passes weigh additional kernels.
#pragma once

#include "ir/language/expression.h"
#include "ir/target/profile.h"

namespace hoist {

/// Definitions that differ only in a place, or in tables, have at most this number of kernels, each of which takes 25
/// ms to compile. Results at different places with more elements have kernels of their own.
inline constexpr size_t most_similar_kernels = 16;
inline constexpr int64_t most_similar_elements = 4096;

/// The number of multiply-adds that a CPU computes in the time of a launch, or, if `fused`, of a step of a fused
/// launch.
double launch_cost(const Profile& profile, bool fused = false);
/// True if the term computes enough that a launch of its own, with an array in memory, costs little in comparison.
bool is_worth_an_array(Expr term, const Profile& profile);

}  // namespace hoist
