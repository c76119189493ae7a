// Weights and biases of contractions and scales of values after training, in the stored form of a rewritten model: they
// replace the constants that the rules have made. Every replacement is a step of the derivation that replays; training
// itself does not replay, so the step states the hash of its constant. The training is in neural_rules/learning.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/base/result.h"
#include "ir/program/program.h"

namespace hoist {

enum class RetrainedPart { weights, scales, bias, range };

struct RetrainedConstant {
  std::string layer;  ///< for a range the constant that is the scale of the values in a format
  RetrainedPart part = RetrainedPart::weights;
  Tensor value;  ///< of weights the numbers of the rule's format; of their scales all, in one dimension

  bool operator==(const RetrainedConstant&) const = default;
};
using RetrainedWeights = std::vector<RetrainedConstant>;

/// The constant that a contraction adds to its sums, if it is an operand of the layer's call.
std::optional<std::string> bias_of(const Program& program, const std::string& layer);

/// Replaces the constants. Errors: a layer that the program lacks, or a constant of another type (records are
/// untrusted).
Result<Nothing> put_retrained(Program& program, const RetrainedWeights& weights);

inline constexpr std::string_view retraining_step = "retraining";
/// Repeats a recorded step.
Result<Nothing> repeat_retraining(Program& program, const ProgramStep& step);

}  // namespace hoist
