// How near an output of one bundle is to that of another on the same inputs, whatever it holds: masks, boxes, numbers
// of them that data decide. For `evaluate --against`. Not for classifiers with labels (scores.h), nor for the choice
// under a budget, whose models have outputs of one shape (neural_rules/choice/metric.h).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>

#include "ir/language/tensor.h"

namespace hoist {

/// Gathers one output over runs.
class OutputAgreement {
 public:
  explicit OutputAgreement(std::string name) : name_(std::move(name)) {}

  /// One run of `samples` samples along the first axis. Elements of integers agree where they are equal. Floats have
  /// classes along the second axis where the first holds the samples and there are two axes, or four and more, as
  /// classifiers and segmentation have them: positions agree where the same class is highest. Of outputs whose shapes
  /// differ, all positions of the larger one disagree, and no error is taken.
  void add(const Tensor& reference, const Tensor& changed, int64_t samples);

  /// "masks: 98.40 % of 4,096 positions agree, SQNR 31.2 dB, largest error 0.21"
  std::string text() const;
  /// {"name", "positions", "agreeing", "agreement", "sqnr", "largest_error", "runs", "other_shape", "not_finite"}
  nlohmann::ordered_json to_json() const;

 private:
  std::string name_;
  int64_t runs_ = 0, other_shape_ = 0, not_finite_ = 0;  ///< runs, and what is NaN or infinite in one of the two alone
  int64_t positions_ = 0, agreeing_ = 0, values_ = 0;
  double signal_ = 0, error_ = 0, largest_ = 0;
  double sqnr() const;
};

}  // namespace hoist
