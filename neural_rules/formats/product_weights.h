// The weights and the bias of a contraction under a rule, and the error at its output: rounding, with the corrections
// that the rule specifies. The rewrite stores them and the error model predicts from them, so both use the same
// numbers.
#pragma once

#include <optional>

#include "neural_rules/calibration/calibration.h"
#include "neural_rules/neural_rules.h"

namespace hoist {

struct PreparedProduct {
  Product product;
  PackedWeights packed;
  std::optional<Tensor> bias;  ///< if it changes: f32, one element per output channel
};

/// Weights that are rounded with data are taken from the statistics if present. Errors: statistics that the rule needs
/// are missing, or rounded weights have another shape or range. The rule must apply to the layer (why_not).
Result<PreparedProduct> prepare_product(const Program& program, const Definition& layer, const NeuralRule& rule,
                                        const Statistics& statistics);

/// The reason why the layer cannot take a bias with one element per output channel, or nothing if it can.
std::optional<std::string> why_no_bias(const Program& program, const Definition& layer);

/// The mean squared error at the site's value that a rule for values or contractions causes if all earlier values are
/// exact. Derived from per-channel statistics: the terms of a sum count as uncorrelated except for their means, and
/// borders as if data continued. Rules for functions have no such prediction. Errors: missing statistics, a rule that
/// does not apply.
Result<double> predicted_noise(const Program& program, const Site& site, const NeuralRule& rule,
                               const Statistics& statistics);

}  // namespace hoist
