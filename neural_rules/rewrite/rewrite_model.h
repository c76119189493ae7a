// A model under an assignment of neural rules: the program with quantise and dequantise layers, casts and new weights,
// in terms of ONNX's own operators, so that it can be exported; and the layers whose functions are to be approximated
// once they are expressions. Sites without an assignment are exact: an empty assignment gives the same program.
//
// The form of the changes, which lowering and other engines recognise:
// - A value is followed by one QuantizeLinear (u8 with a zero point; i8, i16 and float8 with zero point 0; i8 with
//   computed scales of blocks along the channels for `bfp8`) or Cast (f16, bf16). Later Reshape, Flatten, Transpose,
//   Squeeze, Unsqueeze, Slice, Split, DepthToSpace, SpaceToDepth, MaxPool and Concat run on the quantised elements if
//   ONNX has the type; one DequantizeLinear or Cast for all consumers comes after those.
// - Weights are a constant of the small type with DequantizeLinear (or Cast) directly before the contraction: one scale
//   per output channel (axis 0 of Conv and of Gemm with transB, else the last axis; 1 of ConvTranspose), symmetric; or
//   blocks along the summed axis. Blocks over several axes of a filter are a matrix [O][C k k] followed by a Reshape.
// - An integer contraction has both, and the bias stays f32. Lowering makes it integer arithmetic; as layers it is f32
//   arithmetic on rounded values.
//
// Every change is a step of the program's derivation that replays: a rule at a value or contraction, with its scales,
// or the hashes of its weights (format_rules.h).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/base/result.h"
#include "ir/program/program_builder.h"
#include "neural_rules/calibration/calibration.h"
#include "neural_rules/formats/product_weights.h"
#include "neural_rules/neural_rules.h"

namespace hoist {

/// One rule at one site, with its calibration results.
struct RuleUse {
  std::string site;  ///< Site::key()
  std::string layer;
  std::string rule;
  std::string parameters;    ///< "scale = 0.0123, zero point = 128", for the derivation
  double clipped_share = 0;  ///< share of the calibration data outside the range
  std::string proof;  ///< "sums stay below 2^31: 4.2e6", "within 6.1e-5 everywhere"; "" if the rule was only measured
};

struct RewrittenModel {
  Program program;  ///< program.steps has the neural steps of each use, except for functions
  std::map<std::string, std::string> functions;  ///< layer -> rule that functions.h applies to its expression
  std::vector<RuleUse> uses;
  bool only_values = false;  ///< the model is never timed: its calls run in the order in which they become ready
};

/// The straight-through gradients of a rewritten model, for training: the gradient of a value passes to the value
/// before rounding, and is zero outside the range if there is one.
struct RoundedValue {
  std::string value, of;
  std::optional<Range> range;
  std::string scale, zero_point;  ///< constants, shared by the values of a format; "" for formats without a scale
};
struct RoundedWeights {
  std::string layer, value;  ///< `value`: the weights as the contraction reads them
  PreparedProduct prepared;
  double largest_activation = 0;  ///< of a contraction of integers
  bool is_clipped = false;
};
struct StraightThrough {
  std::vector<RoundedValue> values;
  std::vector<RoundedWeights> weights;
};

/// Faults: an unknown site or rule (with the near miss), a rule that does not apply at its site, missing statistics, a
/// contraction rule whose input value lacks the required format.
/// With `straight_through` no layer moves before a dequantising layer, which changes no bit: all rounded values are
/// f32.
Result<RewrittenModel> rewrite(const Program& program, const Assignment& assignment, const Statistics& statistics,
                               StraightThrough* straight_through = nullptr);

}  // namespace hoist
