// Knobs without a measurement: those with which a kernel is clearly faster than with what lowering's estimate chooses,
// by the mean of that estimate and a cost model. A kernel that lies outside of what the model has learned from stays as
// it is. Nothing here runs a kernel, so no choice is checked either; every one is a form that lowering itself may
// choose.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tools/tuning/model/cost_model.h"
#include "tools/tuning/tuning_database.h"
#include "tools/tuning/variants.h"

namespace hoist::tuning {

struct EstimateOptions {
  size_t points = 32;       ///< of each kernel at most
  double least_gain = 0.1;  ///< what has to be promised, of one kernel
  uint64_t seed = 1;
};

struct EstimateOutcome {
  std::vector<RecordedChoice> choices;  ///< with the ratio that is expected
  size_t places = 0;                    ///< where there is something to choose
  size_t outside = 0;                   ///< kernels with tiles of which the model says nothing
};

/// By the model that knows the most of its kernels (model_for).
Result<EstimateOutcome> estimate(const TunedProgram& tuned, std::span<const CostModel> models,
                                 const EstimateOptions& options);

}  // namespace hoist::tuning
