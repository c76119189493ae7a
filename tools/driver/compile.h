// Turns lowered kernels into a plan: combines the Halide backend with the self-check, which do not include each other.
// To look at a single kernel, use emit_kernel, which needs no plan.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backends/halide/emit.h"
#include "ir/plan/plan.h"
#include "lowering/pipeline/lower.h"

namespace hoist {

/// The kernels that a process has emitted: the models of a study have most of them in common. Any threads may use it.
class EmittedKernels {
 public:
  /// The same as emit(), at once for a known kernel.
  Result<EmittedKernel> emit(Expr low_level, const EmitOptions& options);

 private:
  std::mutex mutex_;
  std::map<std::pair<Expr, EmitOptions>, EmittedKernel> known_;
};

struct CompileOptions {
  LowerOptions lower;
  /// Sampled positions per kernel that the bundle checks on the device; 0 for a bundle without a self-check.
  int64_t check_positions = 12;
  bool check_model = true;  ///< also check outputs of the whole model, if it is small
  /// Names of targets (backends/halide/native/native_target.h): native code instead of OpenCL C.
  std::vector<std::string> targets = {};
  /// Suffix of every kernel name, for bundles that hold the same kernels for several sizes.
  std::string kernel_suffix;
  /// Kernels that need not be emitted again; null if there are none.
  std::shared_ptr<EmittedKernels> emitted = {};
  /// Called with the number of emitted kernels, from one thread at a time.
  std::function<void(size_t done, size_t all)> progress = {};
};

/// All options that change kernels, as text, for plans and records.
std::string options_text(const CompileOptions& options);

/// Emits one kernel; `sizes` are the open sizes that it has as arguments. Errors name the kernel.
Result<EmittedKernel> emit_kernel(const LoweredKernel& kernel, const Profile& profile,
                                  const std::vector<std::string>& targets = {}, EmittedKernels* known = nullptr,
                                  const std::vector<std::string>& sizes = {});

/// The term of a kernel for the plan: parameters that its code does not read are replaced by zeros.
Expr reading_only(Expr term, const std::vector<std::string>& arguments);

/// Emits every kernel; returns the errors of all kernels together.
Result<Plan> make_plan(LoweredModel lowered, const CompileOptions& options, const Profile& profile);

}  // namespace hoist
