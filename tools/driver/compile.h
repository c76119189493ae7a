// From lowered kernels to a plan: the Halide layer and the self-check joined. This is where the parts that must not
// know each other meet. Looking at a single kernel needs no plan: emit_kernel.
#pragma once

#include <string>
#include <vector>

#include "backends/halide/emit.h"
#include "ir/plan/plan.h"
#include "lowering/pipeline/lower.h"

namespace hoist {

struct CompileOptions {
  LowerOptions lower;
  /// Sampled positions of each kernel that the bundle checks on the device; 0 for a bundle that nobody verifies.
  int64_t check_positions = 12;
  bool check_model = true;  ///< and outputs of the whole model, where it is small
  /// Names of targets (backends/halide/native/native_target.h): native code instead of OpenCL C.
  std::vector<std::string> targets = {};
  /// Behind the name of every kernel, where a bundle has the same ones for other sizes.
  std::string kernel_suffix;
  /// Told, by one thread after the other, how many kernels are emitted.
  std::function<void(size_t done, size_t all)> progress = {};
};

/// All of the options that change kernels, for a plan and for records.
std::string options_text(const CompileOptions& options);

/// Errors name the kernel.
Result<EmittedKernel> emit_kernel(const LoweredKernel& kernel, const Profile& profile,
                                  const std::vector<std::string>& targets = {});

/// A kernel's term as the plan has it: parameters that its code does not read are zeros.
Expr reading_only(Expr term, const std::vector<std::string>& arguments);

/// Emits every kernel; errors of all kernels in one go.
Result<Plan> make_plan(LoweredModel lowered, const CompileOptions& options, const Profile& profile);

}  // namespace hoist
