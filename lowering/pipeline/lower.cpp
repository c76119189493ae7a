#include "lowering/pipeline/lower.h"

#include "lowering/graph/steps.h"
#include "lowering/plan/fused_launches.h"

namespace hoist {

PassOptions pass_options(const LowerOptions& options, const Profile& profile) {
  PassOptions out;
  static_cast<LowerOptions&>(out) = options;
  out.fuses_launches = options.fusion == LaunchFusion::automatic && fuses_launches(profile);
  out.profile = profile;
  return out;
}

Result<LoweredModel> lower_program(Program program, const LowerOptions& options, const Profile& profile) {
  begin_derivation(program);
  LoweredModel model;
  model.original = program;
  model.notes = program.notes;
  model.program = std::move(program);
  const PassOptions passes = pass_options(options, profile);
  for (const Pass::Part part : {Pass::terms, Pass::plan}) HOIST_TRY_VOID(run_passes(model, part, passes));
  model.derivation = {*model.program.imported, std::move(model.program.steps),
                      options.rules != nullptr ? options.rules->text : ""};
  model.program.steps.clear();
  return model;
}

Result<LoweredModel> lower_model(Program program, const LowerOptions& options, const Profile& profile) {
  HOIST_TRY_VOID(run_passes(program, Pass::calls, pass_options(options, profile)));
  return lower_program(std::move(program), options, profile);
}

}  // namespace hoist
