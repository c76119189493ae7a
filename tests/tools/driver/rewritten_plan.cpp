#include "tests/tools/driver/rewritten_plan.h"

namespace hoist {

Result<Plan> rewritten_plan(const StudiedModel& model, const Assignment& assignment, const Statistics& statistics,
                            const CompileOptions& options) {
  HOIST_TRY(RewrittenModel rewritten, rewrite(model.program, assignment, statistics));
  HOIST_TRY(LoweredModel lowered, lower_rewritten(rewritten, options.lower, model.profile));
  return make_plan(std::move(lowered), options, model.profile);
}

}  // namespace hoist
