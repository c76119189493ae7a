// Compares kernels on a device with the interpreter: `hoist compile` does so before it reports a bundle, and `hoist
// verify` for an existing one. Kernels get their real inputs: the steps before them have run. A difference is traced to
// the first rule of the kernel's derivation, or to the code generator. A bundle's own self-check for its users differs:
// the runtime's hoist_verify uses seeded inputs and a few positions.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "backends/opencl/bundle_runner.h"
#include "backends/opencl/device.h"
#include "ir/base/result.h"
#include "ir/evaluate/evaluate.h"
#include "ir/rules/rewrite.h"
#include "lowering/rules/rules.h"
#include "tools/driver/model.h"

namespace hoist {

/// The operands and the result of a step after it has run.
struct StepValues {
  Expr term = nullptr;  ///< term of the step's kernel
  Bindings reads;       ///< by parameter
  Tensor result;
  Region region;        ///< the defined elements of the result
  Tolerance tolerance;  ///< tolerance of the kernel on this device
};
Result<StepValues> step_values(BundleRunner& bundle, const Plan& plan, const Device& device, size_t step);

/// A comparison of some elements of a step's result with the interpreter.
struct StepComparison {
  uint64_t compared = 0, different = 0;
  double largest_error = 0;
  int64_t first = -1;   ///< flat position of the first difference
  std::string message;  ///< "position 3: 1, expected 0", or "" if all agree
};
Result<StepComparison> compare_step(const StepValues& values, const std::vector<int64_t>& positions);

/// Compares all elements of a step's result with the evaluator, or with the far slower interpreter if the evaluator's
/// temporaries need too much memory.
Result<StepComparison> compare_everywhere(const StepValues& values);

/// The first, last and middle elements along every axis and the elements at vector boundaries, each at a random
/// position along the other axes, and all corners; sorted, at most a few hundred.
std::vector<int64_t> boundary_positions(const Region& region, uint64_t seed);

struct KernelMismatch {
  size_t step = 0;
  StepComparison comparison;
  std::string origin;  ///< the rule, or the stage after the rules, that causes the difference
};

struct SelfCheck {
  std::string not_checked;  ///< the reason why nothing was checked; "" otherwise
  std::string device;
  std::string driver_cache;                                 ///< "hit", or "miss: REASON"
  size_t kernels = 0, kernels_whole = 0, kernels_left = 0;  ///< compared, compared in full, skipped
  uint64_t compared = 0;
  std::vector<int64_t> sizes;  ///< values of an open size at which the outputs agree with the model's
  std::string ended;  ///< the reason why a step and all later steps could not run on seeded inputs; otherwise ""
  double seconds = 0, driver_seconds = 0;
  std::optional<KernelMismatch> mismatch;  ///< the first
  /// The first fused launch whose result differs from its steps' results, or wrong states.
  std::optional<Finding> launch_mismatch;
  bool agrees() const { return !mismatch && !launch_mismatch; }
};

/// The reason why one run of the plan is too expensive for a compilation; "" if it is not.
std::string too_large_to_check(const Plan& plan);

/// Sets the inputs of run `run` of a sequence: `samples`, the first again after the last.
Result<Nothing> set_run(BundleRunner& bundle, const std::vector<std::vector<Tensor>>& samples, size_t run);
/// The inputs of the runs of a check from this seed.
std::vector<std::vector<Tensor>> seeded_runs(const BundleRunner& bundle, const Plan& plan, uint64_t seed);

/// Runs the bundle in `folder` step by step on seeded inputs and compares every kernel, at its first step, as far as
/// about `seconds` allow; then compares fused launches with their steps. With states it does so in each run of a
/// sequence. `derivations` belong to the steps
/// (LoweredModel::groups), by `rules`. `plan` is the plan of the specialisation of options.sizes.
Result<SelfCheck> self_check(const std::filesystem::path& folder, const Plan& plan,
                             const std::vector<LoweredGroup>& derivations, double seconds = 1,
                             const RuleTable& rules = lowering_rules(), RunOptions options = {});

/// Runs the bundle of a model with an open size at the smallest value, an odd one and a random one, as large as the
/// evaluator allows in about a second each, and compares the outputs with the model's. Returns the values. Errors: an
/// output differs.
Result<std::vector<int64_t>> check_open_size(const std::filesystem::path& folder, const CompiledModel& model,
                                             const RunOptions& options);

/// The first step of a derivation that changes the value at the position or, if none does, a text that names the code
/// generator. `reads` are by the names in the derivation's terms.
std::string origin_of(const RuleTable& rules, const Derivation& derivation, const Bindings& reads, int64_t position);

/// A model of these layers only, with the compile-time constants among their operands; its inputs are the other
/// operands.
Program model_of_layers(const Program& program, const std::vector<std::string>& layers);

}  // namespace hoist
