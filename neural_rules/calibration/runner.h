// What neural rules need of a device, handed in by tools: a model that runs, and how long its parts take. Tests hand in
// the evaluator instead.
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
  std::vector<std::string> layers;  ///< what the step computes
  double seconds = 0;               ///< lower quartile
};

class RunnableModel {
 public:
  virtual ~RunnableModel() = default;
  /// All inputs in the model's order to all outputs.
  virtual Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) = 0;
  /// The outputs of so many runs, in their order. `inputs` gives those of a run, again where it is asked again. Whoever
  /// has several devices of one kind may use them at once: outputs are the same bits.
  virtual Result<std::vector<std::vector<Tensor>>> run_each(size_t count,
                                                            const std::function<std::vector<Tensor>(size_t)>& inputs) {
    std::vector<std::vector<Tensor>> out;
    for (size_t i = 0; i < count; ++i) {
      HOIST_TRY(std::vector<Tensor> outputs, run(inputs(i)));
      out.push_back(std::move(outputs));
    }
    return out;
  }
  virtual Result<std::vector<StepTime>> step_times() = 0;
  /// A whole run from host memory to host memory: samples in seconds.
  virtual Result<std::vector<double>> run_times(int count) = 0;
};

using PrepareModel = std::function<Result<std::unique_ptr<RunnableModel>>(const RewrittenModel&)>;

/// Data for calibration or verification: the inputs of each run in the model's order, and a class for each sample where
/// there are labels. Where `count` samples do not fill the last run, it repeats its last sample, which is not counted.
struct Samples {
  std::vector<std::vector<Tensor>> runs;
  std::vector<int64_t> labels;  ///< none, or one for each of `count` samples
  std::string hash;             ///< of the data, for the record and the report
  int64_t count = 0;
  int64_t samples_a_run = 1;
};

}  // namespace hoist
