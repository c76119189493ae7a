// The loop of a training: epochs over batches in a seeded order, the learning rate by its schedule, validation, the
// best weights, checkpoints. Prints the learning curve. Single steps: training_session.h.
#pragma once

#include <string>

#include "tools/training/checkpoint.h"

namespace hoist {

struct Trained {
  WeightValues weights;  ///< the best ones, or without validation the last ones
  TrainingProgress progress;
  double seconds = 0;  ///< of steps, and of what --auto needs, in this process
  int64_t steps = 0;   ///< in this process
  std::string ended;   ///< why before the last epoch; "" otherwise
};

struct TrainingSets {
  TrainingData data, validation;  ///< `validation` may be empty
};

/// Errors: fewer samples than a batch, a loss that is not finite (its step and layers are named; a checkpoint stays as
/// it was), errors of the device and of the checkpoint.
Result<Trained> train(TrainingSession& session, const TrainingSets& sets, const TrainingOptions& options,
                      Checkpoint* checkpoint);

}  // namespace hoist
