// What each rule for products does, as data: how the weights are stored, which activation it reads, and which helpers
// improve the weights first. rules.cpp describes the same rows for people.
#pragma once

#include <string_view>

#include "neural_rules/rules.h"
#include "neural_rules/weights.h"

namespace hoist {

enum class ActivationUse : uint8_t { as_is, quantised, dynamic };

struct ProductScheme {
  std::string_view rule;
  std::string_view weights;  ///< name of a WeightFormat
  ActivationUse activation = ActivationUse::as_is;
  bool corrected = false;  ///< the bias takes up the mean error
  bool adaptive = false;   ///< weights are rounded for the least error on calibration data
  bool half = false;       ///< products and sums are formed in f16 (sums.h)
};
const ProductScheme* find_scheme(std::string_view rule);  ///< null when there is none

/// The largest magnitude of (number - zero point) of the activation that an integer product reads.
double largest_activation(const NeuralRule& rule);

}  // namespace hoist
