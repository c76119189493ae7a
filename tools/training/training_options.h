// The options of a training, in the form of the command line; option_table.h explains them. For the request that they
// become use ir/gradient/training.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hoist {

struct TrainingOptions {
  std::string value, loss = "cross-entropy", optimiser = "adam", schedule = "constant";
  double rate = 0.001, decay = 0, clip = 0, smoothing = 0, temperature = 4;
  int64_t batch = 32;  ///< 0: automatic
  int64_t epochs = 10, accumulated = 1, patience = 0;
  uint64_t seed = 1;
  std::vector<std::string> frozen, augment, automatic;
  std::string labels, validation, initialise, checkpoint, masks;
  std::string gradients;  ///< a row of gradient_formats(); "" for exact ones
  std::string step;       ///< the folder for the bundle of a step
  std::string trunk, heads;
  bool distill = false, resume = false, freeze_trunk = false;
};

}  // namespace hoist
