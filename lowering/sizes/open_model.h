// Kernels for every size of a range: the model is lowered for a few sizes, with choices for a typical one
// (open_extents.h), and the kernels, which then differ in numbers alone, become terms with a symbolic size
// (general_term.h). Passes and strategies need numbers, for decisions and conditions; everything in the model that
// depends on numbers (the target of a Reshape, for instance) is known at each of these sizes.
#pragma once

#include <functional>
#include <set>
#include <vector>

#include "lowering/pipeline/lower.h"

namespace hoist {

/// The imported program for a value of the open size.
using ProgramForSize = std::function<Result<Program>(int64_t size)>;

/// The sizes at which the model is lowered: primes, so that the kernels have the form that holds for any size, with
/// tails. None divides one of the `fixed` extents, also in whole vectors of `width`. Empty if the range has too few.
std::vector<int64_t> probed_sizes(int64_t least, int64_t most, const std::set<int64_t>& fixed = {}, int64_t width = 1);

/// The model for all sizes of the range. It has the numbers of the largest size; `open_sizes`, `open_shapes` and the
/// kernels' `open` terms say how they depend on the size. Constants that depend on it are parts of those for the
/// largest size. Errors: the kernels for different sizes differ in more than numbers, a constant is no such part, and
/// models that need fixed sizes (states, control flow, host ops); the layer that divides the size, if there is one.
Result<LoweredModel> lower_open(const ProgramForSize& program, const PlanSize& size, const LowerOptions& options,
                                const Profile& profile);

}  // namespace hoist
