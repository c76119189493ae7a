// Chooses knobs without measuring: knobs that make a kernel clearly faster than the choice of lowering's estimate, by
// the mean of that estimate and a cost model. A kernel outside of the model's training range keeps its knobs. No kernel
// is run, so no choice is checked either; every choice is a form that lowering itself may choose.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tools/records/tuning_database.h"
#include "tools/tuning/model/cost_model.h"
#include "tools/tuning/variants.h"

namespace hoist::tuning {

struct EstimateOptions {
  size_t points = 32;       ///< maximum number per kernel
  double least_gain = 0.1;  ///< the least predicted gain of a kernel
  uint64_t seed = 1;
};

struct EstimateOutcome {
  std::vector<RecordedChoice> choices;  ///< choices with their expected ratios
  size_t places = 0;                    ///< the number of kernels that have a choice
  size_t outside = 0;                   ///< the number of kernels with tiles that are outside of the model's range
};

/// Estimates with the model that covers most of the program's kernels (model_for).
Result<EstimateOutcome> estimate(const TunedProgram& tuned, std::span<const CostModel> models,
                                 const EstimateOptions& options);

}  // namespace hoist::tuning
