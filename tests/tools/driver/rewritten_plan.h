// The plan of a model under neural rules, for tests that inspect or run a bundle without a budget.
#pragma once

#include "ir/plan/plan.h"
#include "tools/study/device_models.h"

namespace hoist {

Result<Plan> rewritten_plan(const StudiedModel& model, const Assignment& assignment, const Statistics& statistics,
                            const CompileOptions& options);

}  // namespace hoist
