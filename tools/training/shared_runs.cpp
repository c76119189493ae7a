#include "tools/training/shared_runs.h"

namespace hoist {

SharedRuns::SharedRuns(std::unique_ptr<RunnableModel> model, const StepParts& parts)
    : model_(std::move(model)), counter_(parts.update.counter) {
  for (const auto& [name, type] : parts.run.inputs) inputs_.push_back(name);
  for (const StateValue& state : parts.update.program.states) {
    if (std::find(inputs_.begin(), inputs_.end(), state.name) != inputs_.end()) states_.push_back(state.name);
  }
  for (const std::string& output : parts.run.outputs) given_.push_back(parts.given.at(output));
}

Result<std::vector<NamedTensors>> SharedRuns::contributions(const NamedTensors& states,
                                                            const std::vector<NamedTensors>& batches) {
  const auto inputs_of_run = [&](size_t run) {
    std::vector<Tensor> out;
    for (const std::string& name : inputs_) {
      const auto state = states.find(name);
      out.push_back(state == states.end() ? batches[run].at(name) : state->second);
      if (name == counter_) out.back().set_integer(0, out.back().integer_at(0) + static_cast<int64_t>(run));
    }
    return out;
  };
  HOIST_TRY(const auto outputs, model_->run_each(batches.size(), inputs_of_run));
  std::vector<NamedTensors> all(outputs.size());
  for (size_t run = 0; run < outputs.size(); ++run) {
    for (size_t i = 0; i < given_.size(); ++i) all[run].emplace(given_[i], outputs[run][i]);
  }
  return all;
}

}  // namespace hoist
