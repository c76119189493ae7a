// The weights of a point of a study after training with the rounding of its rules, and how they came to be. The tools
// train (Retrain); the record, the certificate and the report show this structure. The form of a model for training is
// in trainable_model.h.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "neural_rules/calibration/calibration.h"
#include "neural_rules/model/equalisation.h"
#include "neural_rules/model/site.h"
#include "neural_rules/rewrite/retrained_weights.h"

namespace hoist {

struct Retraining {
  RetrainedWeights weights;
  int64_t epochs = 0, steps = 0, samples = 0;  ///< `epochs`: finished ones
  uint64_t seed = 0;
  std::string data_hash;      ///< of the calibration data, which are the training data
  std::string weights_hash;   ///< of all constants in `weights`
  std::string loss;           ///< as `hoist train --loss` names it; the teacher is the unchanged model
  std::vector<double> curve;  ///< the mean loss of each epoch
};

/// Trains the model under an assignment. `statistics` are of the model with channels scaled by `factors`.
using Retrain = std::function<Result<Retraining>(const Assignment& assignment, const Statistics& statistics,
                                                 const ChannelFactors& factors)>;

/// "after 10 epochs of distillation over 750 samples, seed 1".
std::string text(const Retraining& retraining);

}  // namespace hoist
