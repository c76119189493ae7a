// The device interface of neural rules, implemented by tools: a model that can be run, and the times of its steps.
// Tests implement it with the evaluator.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/base/result.h"
#include "ir/language/tensor.h"
#include "neural_rules/rewrite/rewrite_model.h"

namespace hoist {

struct StepTime {
  std::vector<std::string> layers;  ///< computed by the step
  double seconds = 0;               ///< its part of a run's lower quartile
};

class RunnableModel {
 public:
  virtual ~RunnableModel() = default;
  /// Computes all outputs from all inputs, in the model's order.
  virtual Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) = 0;
  /// The outputs of `count` runs, in order. `inputs` returns the inputs of a run and may be called repeatedly.
  /// Implementations with several devices of one kind may use them in parallel: outputs are the same bits.
  virtual Result<std::vector<std::vector<Tensor>>> run_each(size_t count,
                                                            const std::function<std::vector<Tensor>(size_t)>& inputs) {
    std::vector<std::vector<Tensor>> out;
    for (size_t i = 0; i < count; ++i) {
      HOIST_TRY(std::vector<Tensor> outputs, run(inputs(i)));
      out.push_back(std::move(outputs));
    }
    return out;
  }
  /// The steps of a run on the present inputs; their sum is the time of a run.
  virtual Result<std::vector<StepTime>> step_times() = 0;
  /// Times in seconds of whole runs from host memory to host memory.
  virtual Result<std::vector<double>> run_times(int count) = 0;
};

using PrepareModel = std::function<Result<std::unique_ptr<RunnableModel>>(const RewrittenModel&)>;

/// Data for calibration or verification: the inputs of each run in the model's order, and optionally a class per
/// sample. If `count` samples do not fill the last run, its last sample is repeated; repetitions are not counted.
struct Samples {
  std::vector<std::vector<Tensor>> runs;
  std::vector<int64_t> labels;  ///< empty, or one per sample
  std::string hash;             ///< hash of the data, for the record and the report
  int64_t count = 0;
  int64_t samples_a_run = 1;
};

}  // namespace hoist
