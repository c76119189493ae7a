// A model in training on a device: the compiled step with its states, and the compiled model that judges weights. For
// the loop over epochs use trainer.h; a program of a step alone is made by ir/gradient/training.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/gradient/training/training_step.h"
#include "tools/data/training_data.h"
#include "tools/driver/self_check.h"
#include "tools/study/device_models.h"
#include "tools/training/inverse_roots.h"
#include "tools/training/right_answers.h"
#include "tools/training/shared_runs.h"
#include "tools/training/training_options.h"

namespace hoist {

using WeightValues = std::map<std::string, Tensor>;

/// The quality of weights on data.
struct Judgement {
  double loss = 0;
  std::optional<double> right;  ///< share of right classes, or of the teacher's classes
};

/// The model for batches of this size.
Result<Program> read_for_batch(const std::filesystem::path& model, ModelOptions options, int64_t batch);

/// Parts of a session besides the step.
struct SessionParts {
  bool is_checked = false;                     ///< the kernels are compared with the interpreter
  bool has_judge = true;                       ///< the model that judges weights
  std::string step;                            ///< the folder for the bundle of the step; "": none
  std::vector<std::string> head_weights = {};  ///< the weights after the trunk, whose states a head keeps
  MakeRunnable share = {};                     ///< computes the runs of a step; empty: the step does
};

class TrainingSession {
 public:
  /// Reads and compiles the model. Without `is_checked` the kernels are not compared with the interpreter. `share` is
  /// as in SessionParts.
  static Result<TrainingSession> open(const std::filesystem::path& model, const ModelOptions& options,
                                      const TrainingOptions& training, const RunOptions& run, bool is_checked,
                                      MakeRunnable share = {});

  /// Compiles the step of a program for batches, whose targets are data of the caller.
  static Result<TrainingSession> of(Program program, const TrainingRequest& request, const ModelOptions& options,
                                    const RunOptions& run, const SessionParts& parts);

  const BatchShape& shape() const { return shape_; }
  /// The same for data before the trunk.
  const BatchShape& data_shape() const { return trunk_ ? data_shape_ : shape_; }
  /// The value of a frozen trunk for all samples in the place of the inputs; the data themselves without one.
  Result<TrainingData> through_trunk(TrainingData data);
  const std::vector<std::string>& weights() const { return weights_; }
  const SelfCheck& check() const { return check_; }
  std::string device() const { return step_.runner.device_name(); }

  /// One run of the step; returns the loss of the batch before it. `batch` is from batch_of().
  Result<double> step(std::vector<Tensor> batch, double rate);
  /// The same for several runs between two changes of the weights, whose gradients others may compute.
  Result<std::vector<double>> steps(std::vector<std::vector<Tensor>> batches, const std::vector<double>& rates);
  /// True if others compute runs.
  bool is_shared() const { return shared_.has_value(); }
  /// The layers whose results in this run would not be finite, in order; states do not change. Empty for shared runs.
  Result<std::vector<std::string>> layers_not_finite(std::vector<Tensor> batch, double rate);
  Result<Judgement> judge(const TrainingData& data, const WeightValues& weights);
  /// On these samples alone.
  Result<Judgement> judge(const TrainingData& data, const std::vector<int64_t>& samples, const WeightValues& weights);

  /// Gives a hyper-parameter of --auto its value for the next runs; the learning rate is given to each step.
  Result<Nothing> set_parameter(const std::string& name, double value);

  Result<WeightValues> weight_values();
  Result<Nothing> set_weights(const WeightValues& weights);
  /// The norm in the last run; only with a limit of the norm.
  Result<double> gradient_norm();
  /// All states, in the order of the step.
  Result<std::vector<Tensor>> states();
  Result<Nothing> set_states(const std::vector<Tensor>& states);
  /// The states of the weights after the trunk.
  Result<std::vector<Tensor>> head_states();
  Result<Nothing> set_head_states(const std::vector<Tensor>& states);
  /// Both also refresh roots, which are not in the file, so that a training goes on to the same bits.
  Result<Nothing> save_states(const std::filesystem::path& file);
  Result<Nothing> load_states(const std::filesystem::path& file);

 private:
  explicit TrainingSession(ModelOnDevice step) : step_(std::move(step)) {}
  Result<Nothing> set_inputs(std::vector<Tensor> batch, double rate);
  Result<Nothing> set_rate(double rate);
  Result<double> run_step();
  Result<NamedTensors> states_of_run();
  Result<Tensor> taught(const std::vector<Tensor>& batch);

  ModelOnDevice step_;
  std::optional<ModelOnDevice> judge_, trunk_;
  BatchShape data_shape_;
  std::vector<size_t> head_states_;
  KroneckerRoots roots_;
  std::optional<SharedRuns> shared_;
  std::optional<BundleRunner> teacher_;  // the judge's bundle with the model's own weights
  BatchShape shape_;
  std::vector<std::string> weights_, input_names_;
  std::string target_, rate_;
  std::map<std::string, std::string> open_;  // the inputs of open hyper-parameters
  std::optional<ClassAxis> classes_;         // none: the value has no classes
  bool is_squares_ = false;
  SelfCheck check_;
};

}  // namespace hoist
