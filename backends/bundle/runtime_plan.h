// A plan as read by the runtime, with an owner. For the reader and the writer of bundles only.
#pragma once

#include "backends/runtime/plan/plan_file.h"

namespace hoist {

struct RuntimePlan {
  hoist_plan plan = {};
  hoist_checks checks = {};
  RuntimePlan() = default;
  RuntimePlan(const RuntimePlan&) = delete;
  RuntimePlan& operator=(const RuntimePlan&) = delete;
  ~RuntimePlan() {
    hoist_plan_free(&plan);
    hoist_pool_free(&checks.pool);
  }
};

}  // namespace hoist
