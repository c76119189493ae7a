// Measures of prediction quality, for the tests of error models and of studies.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "neural_rules/choice/solver/interval.h"

namespace hoist {

/// Compares predicted with measured numbers; both must be non-negative.
struct PredictionQuality {
  int64_t pairs = 0;
  double median_ratio = 0;      ///< median ratio of measured to predicted; NaN without pairs
  double share_within_two = 0;  ///< share of pairs with a ratio from 1/2 to 2; NaN without pairs
};
/// The pairs are (predicted, measured). If both are 0 the ratio is 1; a NaN is outside every factor and has an infinite
/// ratio.
inline PredictionQuality prediction_quality(const std::vector<std::pair<double, double>>& pairs) {
  PredictionQuality out;
  out.pairs = static_cast<int64_t>(pairs.size());
  std::vector<double> ratios;
  int64_t within = 0;
  for (const auto& [predicted, measured] : pairs) {
    double ratio = predicted == measured ? 1 : measured / predicted;
    if (std::isnan(ratio)) ratio = std::numeric_limits<double>::infinity();
    ratios.push_back(ratio);
    within += ratio >= 0.5 && ratio <= 2 ? 1 : 0;
  }
  out.median_ratio = quantile(ratios, 0.5);
  out.share_within_two = pairs.empty() ? std::numeric_limits<double>::quiet_NaN()
                                       : static_cast<double>(within) / static_cast<double>(pairs.size());
  return out;
}

}  // namespace hoist
