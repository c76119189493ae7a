// The change of one output of a model: error power, agreement and right answers, collected run by run so that outputs
// need not be stored. Every sum goes over samples in their order, so the results do not depend on batches. Values that
// are not finite are never hidden: such a sample is wrong, and it is counted. For comparisons of tensors within a
// tolerance see tools/data/data.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/base/result.h"
#include "ir/language/tensor.h"
#include "neural_rules/choice/solver/interval.h"

namespace hoist {

/// The meaning of an output's elements. values: images, boxes, anything; the error is taken unchanged. logits and
/// probabilities: one score per class; the error is taken after each sample's mean is subtracted, because a constant
/// added to all scores changes no answer; probabilities are results of a softmax (this concerns only the divergence).
enum class OutputKind : uint8_t { values, logits, probabilities };

/// An element of any numeric type as a double.
double value_at(const Tensor& tensor, int64_t i);

/// The class with the highest score among `classes` elements from flat position `first`; the first of equals; -1 where
/// any of them is NaN, which is not a label and so never right.
int64_t top_class(const Tensor& scores, int64_t first, int64_t classes);

/// Over all added samples; NaN without a measurement.
struct OutputMetrics {
  OutputKind kind = OutputKind::values;
  int64_t samples = 0, values_a_sample = 0;
  double signal_power = 0;        ///< mean square of the reference output (centred for scores)
  double mean_squared_error = 0;  ///< infinite if a value is non-finite in only one of the two outputs
  double sqnr = 0;                ///< dB; infinity without a change, -infinity if the error is not finite
  double psnr = 0;                ///< dB, with the range of the reference as the peak; infinity without a change
  double largest_error = 0;       ///< absolute
  double low = 0, high = 0;       ///< range of the finite reference values, not centred
  int64_t not_finite = 0;         ///< samples of the changed output that hold a NaN or an infinity
  int64_t reference_not_finite = 0;
  // Scores only:
  int64_t flips = 0;      ///< samples whose top class changed; one that lost its class to a NaN is a flip
  Interval agreement{};   ///< share without a flip
  double divergence = 0;  ///< mean Kullback-Leibler divergence of the softmax, reference to changed, in nats
  // Scores with labels only:
  bool labelled = false;
  PairedCounts paired;
  Interval reference_top1{}, top1{};  ///< shares of right answers
  Interval drop{};                    ///< paired_drop(paired)
  double p_value = 1;                 ///< mcnemar_p_value
  int64_t worst_class = -1;           ///< the label with the largest drop of its own share of right answers
  double worst_class_drop = 0;        ///< in [-1, 1]
  int64_t worst_class_samples = 0;
};

/// SQNR in dB of two mean squares, and the inverse: the mean squared error of a signal of this power at this SQNR.
double sqnr_of(double signal_power, double mean_squared_error);
/// "31.2 dB", "exact" if nothing changed, "-" for values that are not finite.
std::string sqnr_text(double decibel);
double error_at_sqnr(double signal_power, double decibel);

/// Gathers one output over the runs of a data set.
class OutputComparison {
 public:
  /// `dynamic` is true for values with a dynamic dimension: each run is compared as a whole, may have any size and may
  /// be empty, and the error is infinite if the changed output has another shape.
  explicit OutputComparison(OutputKind kind, bool dynamic = false) : kind_(kind), dynamic_(dynamic) {}

  /// One run: both outputs have the same shape, numbers or strings (of power 1, and error 1 if they changed), with
  /// `samples_a_run` samples along the first axis (if it is 1, the whole tensor is the sample). Only the first
  /// `samples` are counted, since the last run of a data set may contain repeated samples. `labels` is empty or has a
  /// class for each of `samples`; all calls or none give labels. Errors: shapes that differ between the two or between
  /// calls, a first axis of another extent, labels outside the classes or in another number.
  Result<Nothing> add(const Tensor& reference, const Tensor& changed, int64_t samples_a_run, int64_t samples,
                      std::span<const int64_t> labels = {});
  OutputMetrics metrics() const;

 private:
  struct OfClass {
    int64_t samples = 0, reference_right = 0, right = 0;
  };
  void add_whole(const Tensor& reference, const Tensor& changed, int64_t samples);
  void add_values(std::span<const double> reference, std::span<const double> changed);
  void add_scores(std::span<const double> reference, std::span<const double> changed);
  void add_label(int64_t label, int64_t reference_class, int64_t changed_class);

  OutputKind kind_;
  bool dynamic_;
  int64_t samples_ = 0, values_ = -1;
  int64_t compared_ = 0;       ///< values of all samples
  int64_t finite_values_ = 0;  ///< finite elements of the reference, which make up the signal
  double signal_ = 0, error_ = 0, largest_ = 0, low_ = 0, high_ = 0, divergence_ = 0;
  int64_t not_finite_ = 0, reference_not_finite_ = 0, flips_ = 0;
  bool labelled_ = false;
  PairedCounts paired_;
  std::vector<OfClass> classes_;
};

}  // namespace hoist
