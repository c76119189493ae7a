// The agreement of an output of two bundles on the same inputs, for any content: masks, boxes, dynamic shapes. For
// `evaluate --against`. Classifiers with labels use scores.h; the choice under a budget, whose models have outputs of
// one shape, uses neural_rules/choice/metric.h.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>

#include "ir/language/tensor.h"

namespace hoist {

/// Accumulates the agreement of one output over runs.
class OutputAgreement {
 public:
  explicit OutputAgreement(std::string name) : name_(std::move(name)) {}

  /// Adds one run of `samples` samples along the first axis. Integers agree if they are equal. A float output has
  /// classes along the second axis if the first axis holds the samples and the rank is 2 or at least 4, as in
  /// classification and segmentation: a position agrees if the same class has the highest score. If the shapes differ,
  /// all positions of the larger output disagree and no error is computed.
  void add(const Tensor& reference, const Tensor& changed, int64_t samples);

  /// "masks: 98.40 % of 4,096 positions agree, SQNR 31.2 dB, largest error 0.21"
  std::string text() const;
  /// {"name", "positions", "agreeing", "agreement", "sqnr", "largest_error", "runs", "other_shape", "not_finite"}
  nlohmann::ordered_json to_json() const;

 private:
  std::string name_;
  int64_t runs_ = 0, other_shape_ = 0, not_finite_ = 0;  ///< runs; elements that are NaN or infinite in exactly one
                                                         ///< output
  int64_t positions_ = 0, agreeing_ = 0, values_ = 0;
  double signal_ = 0, error_ = 0, largest_ = 0;
  double sqnr() const;
};

}  // namespace hoist
