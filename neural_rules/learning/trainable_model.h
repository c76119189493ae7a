// A model under an assignment of neural rules in the form that training needs: the forward pass rounds as the rewritten
// model does, and rounding has straight-through gradients. The weights of contractions that the assignment rounds are
// constants of f32 in units of their scales, which packing has chosen, and their biases are constants in units of a
// like effect: steps of one size suit all layers, whatever the magnitudes of their weights are. The rules state the
// gradients: rounding passes the gradient, the range of a format clips it (formats.rules), and an approximated function
// or a sum in f16 has the gradient of the term that it replaces.
//
// Forward values equal the values of the rewritten model's operators bit for bit, as long as no trained constant has
// changed, and with retrained_weights() afterwards too. The exceptions are weights in float8 before training, whose
// quotient is rounded to f32 first. A device that adds integers where the training step adds floats differs by the
// rounding of the sums. The layer that computes an output keeps its exact function.
//
// A step of training is made from it by ir/gradient/training; weights return to the rewritten model by
// rewrite/retrained_weights.h.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/gradient/gradient.h"
#include "neural_rules/rewrite/retrained_weights.h"
#include "neural_rules/rewrite/rewrite_model.h"

namespace hoist {

struct TrainedConstant {
  std::string name, layer;
  double unit = 1;  ///< a power of two: times it, the constant is a quotient of weights and scales, a factor, or a bias
  std::optional<RoundedWeights> rounded = {};  ///< of weights
  RetrainedPart part = RetrainedPart::weights;
  std::vector<float> scales = {};  ///< multiplied by the factors that the constant holds
};

struct TrainableModel {
  Program program;
  GradientTerms straight_through;
  std::vector<TrainedConstant> constants;  ///< f32 constants of the program
};

/// With `learns_scales` scales are trained too (Esser et al., 2020: learned step sizes), each as a factor of the scale
/// that packing or calibration has chosen. The scale of values has the gradient of that paper: of the rounding error
/// inside the range, and of its end outside. The quotients of weights stay when a scale moves, so that its gradient is
/// the quotient; powers of two stay. Errors: errors of rewrite(), an assignment that rounds no weights.
Result<TrainableModel> trainable_model(const Program& program, const Assignment& assignment,
                                       const Statistics& statistics, bool learns_scales = false);

/// Rounds the constants after training as the last step did. Errors: sums of integers that may no longer fit in i32.
Result<RetrainedWeights> retrained_weights(const TrainableModel& model, const std::map<std::string, Tensor>& trained);

}  // namespace hoist
