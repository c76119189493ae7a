// From a program of operator calls to kernels as low-level terms: the result of the passes (passes.h). The Halide layer
// turns each LoweredKernel into OpenCL; the bundle writer writes the plan. All decisions are made at compile time and
// without a device; only its target description is known.
#pragma once

#include "ir/program/program.h"
#include "ir/target/profile.h"
#include "lowering/pipeline/passes.h"
#include "lowering/plan/lowered_model.h"

namespace hoist {

/// The pass options for a device with the given target description.
PassOptions pass_options(const LowerOptions& options, const Profile& profile);
/// All passes over terms.
Result<LoweredModel> lower_program(Program program, const LowerOptions& options, const Profile& profile);
/// All passes. Reports all layers that cannot be lowered together.
Result<LoweredModel> lower_model(Program program, const LowerOptions& options, const Profile& profile);

}  // namespace hoist
