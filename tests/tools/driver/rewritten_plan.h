// The plan of a model under neural rules: for tests that look into a bundle or run it, without a budget to choose them.
#pragma once

#include "ir/plan/plan.h"
#include "tools/study/device_models.h"

namespace hoist {

Result<Plan> rewritten_plan(const StudiedModel& model, const Assignment& assignment, const Statistics& statistics,
                            const CompileOptions& options);

}  // namespace hoist
