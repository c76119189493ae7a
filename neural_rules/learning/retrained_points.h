// Points of a study with retrained weights: which points are worth the training, and their verification. The training
// itself is ChooseOptions::retrain.
#pragma once

#include <functional>

#include "neural_rules/choice/cost.h"
#include "neural_rules/choice/verification.h"

namespace hoist {

/// The state of a choice; all members outlive it.
struct RetrainingStudy {
  Sensitivity& sensitivity;  ///< receives notes
  const CostModel& costs;
  Verifier& verifier;
  const ChooseOptions& options;
  std::function<Result<Nothing>()> ensure_reference;  ///< the reference has run afterwards
  std::function<void()> keep;                         ///< keeps the measurements so far
};

/// Retrains points that are cheaper than the best one and break the budget, the cheapest first, until one keeps it. If
/// none does, the best point itself is retrained: it may become more accurate at the same cost. Retrained points have
/// the kernels of the point that they come from, and therefore its times. Does nothing without ChooseOptions::retrain,
/// and ends with the time limit. A training whose loss is not finite ends the search with a note.
Result<Nothing> add_retrained_points(const RetrainingStudy& study);

}  // namespace hoist
