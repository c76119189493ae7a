// Kernels on a device against the interpreter: what `hoist compile` asks of a bundle before it says that there is one,
// and `hoist verify` of one that there is. Inputs are those that a kernel really has: the steps before it have run.
// What differs is traced to the first rule of the kernel's derivation, or to the code generator behind it. Not the
// check that a bundle carries for its user: that is the runtime's (hoist_verify), on seeded inputs and a few positions.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "backends/opencl/bundle_runner.h"
#include "backends/opencl/device.h"
#include "ir/evaluate/evaluate.h"
#include "ir/rules/rewrite.h"
#include "lowering/rules/rules.h"
#include "tools/cli/attempt.h"
#include "tools/driver/model.h"

namespace hoist {

/// What a step read and wrote, after it has run.
struct StepValues {
  Expr term = nullptr;  ///< of its kernel
  Bindings reads;       ///< by parameter
  Tensor result;
  Region region;        ///< the elements of the result that mean something
  Tolerance tolerance;  ///< of the kernel on this device
};
Attempt<StepValues> step_values(BundleRunner& bundle, const Plan& plan, const Device& device, size_t step);

/// What the interpreter says of some elements of a step's result.
struct StepComparison {
  uint64_t compared = 0, different = 0;
  double largest_error = 0;
  int64_t first = -1;   ///< flat position of the first that differs
  std::string message;  ///< "position 3: 1, expected 0", or "" where all agree
};
Attempt<StepComparison> compare_step(const StepValues& values, const std::vector<int64_t>& positions);

/// What the evaluator says of all elements of a step's result, or, where what it keeps would be too much memory, the
/// interpreter, which takes far longer.
Attempt<StepComparison> compare_everywhere(const StepValues& values);

/// The first, the last and the middle ones along every axis and those around whole vectors there, each with a random
/// place along the other axes, and all corners; sorted, at most a few hundred.
std::vector<int64_t> boundary_positions(const Region& region, uint64_t seed);

struct KernelMismatch {
  size_t step = 0;
  StepComparison comparison;
  std::string origin;  ///< which rule, or what behind the rules, makes the difference
};

struct SelfCheck {
  std::string not_checked;  ///< why nothing was checked; "" where it was
  std::string device;
  std::string driver_cache;                                 ///< "hit", or "miss: REASON"
  size_t kernels = 0, kernels_whole = 0, kernels_left = 0;  ///< looked at, at every element, at none
  uint64_t compared = 0;
  std::string ended;  ///< why a step, and so those behind it, could not run on seeded inputs; else ""
  double seconds = 0, driver_seconds = 0;
  std::optional<KernelMismatch> mismatch;  ///< the first
  std::optional<Finding> launch_mismatch;  ///< of the first launch that leaves something else than its steps
  bool agrees() const { return !mismatch && !launch_mismatch; }
};

/// Why running the plan once is more than a compilation should ask of a machine; "" where it is not.
std::string too_large_to_check(const Plan& plan);

/// Runs the bundle in `folder` step by step on seeded inputs and compares every kernel, at its first step, as far as
/// about `seconds` allow; then whether launches of several steps leave what these leave. `derivations` are those of the
/// steps (LoweredModel::groups), by `rules`. `plan` is that of the specialisation of options.sizes.
Attempt<SelfCheck> self_check(const std::filesystem::path& folder, const Plan& plan,
                              const std::vector<LoweredGroup>& derivations, double seconds = 1,
                              const RuleTable& rules = lowering_rules(), RunOptions options = {});

/// Which step of a derivation first gives another value at the position, or, where none does, that the code generator
/// differs. `reads` are by the names in the derivation's terms.
std::string origin_of(const RuleTable& rules, const Derivation& derivation, const Bindings& reads, int64_t position);

/// The layers alone as a model of its own, with what is known at compile time of what they read; its inputs are the
/// values that they read of others.
Program model_of_layers(const Program& program, const std::vector<std::string>& layers);

}  // namespace hoist
