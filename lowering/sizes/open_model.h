// Kernels for every size of a range: the model is lowered for a few sizes, with the choices (tiles, layouts) of one of
// them, and the kernels, which then differ in numbers alone, become terms with a symbolic size (general_term.h). Passes
// and strategies need numbers, for decisions and conditions; everything in the model that depends on numbers (the
// target of a Reshape, for instance) is known at each of these sizes.
#pragma once

#include <functional>

#include "lowering/pipeline/lower.h"

namespace hoist {

/// The imported program for a value of the open size.
using ProgramForSize = std::function<Result<Program>(int64_t size)>;

/// The sizes at which the model is lowered: primes, so that the kernels have the form that holds for any size, with
/// tails. Empty if the range has too few.
std::vector<int64_t> probed_sizes(int64_t least, int64_t most);

/// The model for all sizes of the range. It has the numbers of the largest size; `open_sizes`, `open_shapes` and the
/// kernels' `open` terms say how they depend on the size. Errors: the kernels for different sizes differ in more than
/// numbers, a constant depends on the size, and models that need fixed sizes (states, control flow, host ops).
Result<LoweredModel> lower_open(const ProgramForSize& program, const PlanSize& size, const LowerOptions& options,
                                const Profile& profile);

}  // namespace hoist
