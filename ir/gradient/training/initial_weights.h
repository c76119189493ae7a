// Weights for training from the beginning: seeded random numbers whose scale follows from the layer that reads them.
#pragma once

#include <string>

#include "ir/gradient/training/training_step.h"

namespace hoist {

/// Gives the weights and averages of the request new values. `how` is he (normal, variance 2 / inputs) or glorot
/// (uniform, variance 2 / (inputs + outputs)), for weights of two dimensions or more; scales of normalisations and
/// running variances become 1, other weights 0. Errors: another word.
Result<Nothing> initialise_weights(Program& program, const TrainingRequest& request, const std::string& how);

}  // namespace hoist
