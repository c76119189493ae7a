#include "tools/inspection/timed_program.h"

#include <algorithm>

#include "backends/bundle/bundle.h"
#include "ir/base/stopwatch.h"
#include "ir/base/temporary_folder.h"
#include "tools/driver/compile.h"
#include "tools/inspection/roofline.h"

namespace hoist {
namespace {

// Ones, since a division by zero or a subnormal number may take longer than other values.
Tensor ones(const PlanArray& array) {
  Tensor out(array.scalar, array.shape);
  for (int64_t i = 0; i < out.size(); ++i) is_float(array.scalar) ? out.set_float(i, 1) : out.set_integer(i, 1);
  return out;
}

Result<TimedProgram> timed(Program program, const RunOptions& options, const Profile& profile,
                           const std::vector<std::string>& targets, double duration) {
  HOIST_TRY(TemporaryFolder folder, TemporaryFolder::make());
  CompileOptions compile;
  compile.check_positions = 0;
  compile.targets = targets;
  HOIST_TRY(LoweredModel lowered, lower_model(std::move(program), compile.lower, profile));
  lowered.is_serial = false;  // all threads share the steps, however little they compute
  HOIST_TRY(Plan plan, make_plan(std::move(lowered), compile, profile));
  const auto path = folder.path() / "timed.hoist";
  HOIST_TRY_VOID(write_bundle(plan, path, {}));
  HOIST_TRY(BundleRunner bundle, BundleRunner::open(path, options));
  for (size_t i = 0; i < bundle.inputs().size(); ++i)
    HOIST_TRY_VOID(bundle.set_input(i, ones(plan.arrays[static_cast<size_t>(plan.inputs[i])])));
  HOIST_TRY_VOID(bundle.run());
  constexpr int least_runs = 10, most_runs = 200;  // a second
  std::vector<double> least(bundle.steps().size(), 1e9);
  const Stopwatch timing;
  for (int i = 0; i < least_runs || (i < most_runs * duration && timing.seconds() < duration); ++i) {
    HOIST_TRY(const std::vector<double> seconds, bundle.profile());
    for (size_t k = 0; k < least.size(); ++k) least[k] = std::min(least[k], seconds[k]);
  }
  TimedProgram out;
  out.threads = bundle.threads();
  for (size_t k = 0; k < least.size(); ++k) {
    const StepInfo& step = bundle.steps()[k];
    out.steps[step.layers.front()] = {
        std::max(least[k], 1e-9),
        work_of(plan.kernels[static_cast<size_t>(step.kernel_index)], bundle.step_runs(k)).bytes};
  }
  return out;
}

}  // namespace

Result<TimedProgram> time_program(Program program, const RunOptions& options, const Profile& profile,
                                  const std::vector<std::string>& targets, double duration) {
  return with_kind(ErrorKind::device, timed(std::move(program), options, profile, targets, duration));
}

}  // namespace hoist
