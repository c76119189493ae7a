// The runs of a step of training on several devices: each run of an accumulated gradient is computed on its own, with
// the same weights, and TrainingSession adds the results up in their order. The RunnableModel chooses the device of a
// run (tools/study/queued_models.h: the workers of a queue). For one device, training_session.h needs no such object.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/gradient/training/step_parts.h"
#include "tools/study/device_models.h"

namespace hoist {

using NamedTensors = std::map<std::string, Tensor>;

class SharedRuns {
 public:
  /// `model` computes the run of the parts.
  SharedRuns(std::unique_ptr<RunnableModel> model, const StepParts& parts);

  /// The inputs of the update for each batch, in the order of the batches. `states` has the weights and the number of
  /// the first run; a batch holds the data and the target by name.
  Result<std::vector<NamedTensors>> contributions(const NamedTensors& states, const std::vector<NamedTensors>& batches);
  /// The states that contributions() reads.
  const std::vector<std::string>& states() const { return states_; }

 private:
  std::unique_ptr<RunnableModel> model_;
  std::vector<std::string> inputs_, states_, given_;  // given_: in the order of the model's outputs
  std::string counter_;
};

}  // namespace hoist
