// The weights and the bias that a product gets under a rule, and what the rule costs at the product's output: rounding,
// with the helpers that the rule asks for. The rewrite writes them down, the error model predicts from them, so that
// both speak of the same numbers.
#pragma once

#include <optional>

#include "neural_rules/calibration/calibration.h"
#include "neural_rules/neural_rules.h"

namespace hoist {

struct PreparedProduct {
  Product product;
  PackedWeights packed;
  std::optional<Tensor> bias;  ///< where it changes: f32, one number an output channel
};

/// Weights that are rounded with data are taken from the statistics where they are there. Errors: statistics that the
/// rule needs are missing, rounded numbers of another shape or range. The rule applies at the layer (why_not).
Result<PreparedProduct> prepare_product(const Program& program, const Definition& layer, const NeuralRule& rule,
                                        const Statistics& statistics);

/// Whether the layer can take a bias of one number an output channel, and why not.
std::optional<std::string> why_no_bias(const Program& program, const Definition& layer);

/// The mean squared error that a rule for values or products causes at the site's value when everything before it is
/// exact. From marginal statistics of channels: numbers of one sum count as uncorrelated but for their means, borders
/// as if data went on. Rules for functions have no such prediction. Errors: missing statistics, a rule that does not
/// apply.
Result<double> predicted_noise(const Program& program, const Site& site, const NeuralRule& rule,
                               const Statistics& statistics);

}  // namespace hoist
