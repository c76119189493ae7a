// A step of training in two programs, for runs that several devices share: one computes what a run contributes (the
// loss, gradients, statistics of the batch), the other adds contributions up in the order of the runs and changes the
// weights. The sums have one order, so the weights do not depend on the number of devices. For a step on one device use
// training_step.h.
#pragma once

#include <map>
#include <string>

#include "ir/gradient/training/training_step.h"

namespace hoist {

struct StepParts {
  /// Has no states: the weights that it reads and the number of the run are inputs. Outputs: the step's contributions,
  /// in their order.
  Program run;
  TrainingStep update;                       ///< the contributions are inputs of its program
  std::map<std::string, std::string> given;  ///< the names of these inputs, by contribution
};

/// Errors: a run that reads a state besides weights, such as the error of rounded gradients.
Result<StepParts> split_step(TrainingStep step);

}  // namespace hoist
