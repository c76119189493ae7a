#include "lowering/plan/fused_launches.h"
#include "lowering/plan/rows.h"

namespace hoist {

Result<Nothing> fuse_launches(LoweredModel& model, const PassOptions& options) {
  if (options.fusion == LaunchFusion::automatic) model.launches = fuse_launches(model, options.profile);
  model.is_serial = is_serial(model, options.profile);
  FunctionNames names;
  for (const LoweredKernel& kernel : model.kernels) names.take(kernel.name);
  for (PlanLaunch& launch : model.launches) {
    launch.name = names.make("launch");
    for (int i = launch.first; i < launch.first + launch.count; ++i)
      model.kernels[static_cast<size_t>(model.steps[static_cast<size_t>(i)].kernel)].is_fused = true;
  }
  return Nothing{};
}

}  // namespace hoist
