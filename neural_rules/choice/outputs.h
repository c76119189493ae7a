// All outputs of a model over a data set: the meaning of their elements, and the total change of them by a change of
// the model. One output alone: metric.h.
//
// All outputs count: the error of each is divided by its own power, and these are added, so that the sum bounds each of
// them and remains a sum over sites. The main output (the first with scores) keeps its unit, so a model with one output
// has plain mean squared errors.
#pragma once

#include <functional>
#include <set>
#include <vector>

#include "ir/program/program.h"
#include "neural_rules/calibration/runner.h"
#include "neural_rules/choice/metric.h"

namespace hoist {

/// By run of a data set, then by output in the model's order.
using RunOutputs = std::vector<std::vector<Tensor>>;

struct OutputKinds {
  std::vector<OutputKind> of;  ///< an output each
  /// The output that defines the classes and the power to which errors refer: the first output of scores, or the first
  /// output.
  size_t main = 0;
  std::set<size_t> dynamic = {};  ///< outputs with a dynamic dimension: values

  OutputKind main_kind() const { return of[main]; }
};

/// The kinds of the model's outputs. Scores are [samples][classes] of at least two classes; further axes have one
/// element.
OutputKinds output_kinds(const Program& program);

/// The number of classes of the main output.
int64_t class_count(const Program& program);

/// The outputs of each of the first `runs` runs; `more` is appended to the inputs of each run.
Result<RunOutputs> run_all(RunnableModel& model, const Samples& samples, size_t runs,
                           const std::function<std::vector<Tensor>(size_t run)>& more = {});

/// The metrics of the main output, except that error and SQNR represent all outputs: the errors of other outputs are
/// scaled to the power of the main output and added, so that no output has a lower SQNR. Outputs without elements do
/// not count. Errors: errors of OutputComparison::add.
Result<OutputMetrics> compare_runs(const OutputKinds& kinds, const Samples& samples, const RunOutputs& reference,
                                   const RunOutputs& changed);

/// A summary of outputs, for a later check that a device still computes them.
struct OutputDigest {
  size_t main = 0;                   ///< the output that defines the classes
  std::vector<int64_t> classes;      ///< the top class of each sample if the main output has scores
  std::vector<double> mean_squares;  ///< mean square of all values of each output; 0 for strings
};
OutputDigest digest_of(const OutputKinds& kinds, const Samples& samples, const RunOutputs& outputs);

}  // namespace hoist
