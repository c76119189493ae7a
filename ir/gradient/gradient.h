// The gradient of a program: reverse-mode differentiation of its definitions (adjoints.h). The result is an ordinary
// program whose outputs are the loss and one gradient for each requested value. The backward pass reads values of the
// forward pass from their definitions; a fold's value that several adjoints read becomes a definition too. For the
// adjoint of a single term use adjoints.h.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/base/result.h"
#include "ir/program/program.h"

namespace hoist {

/// Terms over earlier values that are differentiated in place of the definitions of these values, which they have the
/// type of: rounding has no useful derivative, and its straight-through gradient is that of the value before rounding
/// (Bengio et al. 2013, arXiv 1308.3432). The forward pass keeps the definitions.
using GradientTerms = std::map<std::string, Expr>;

struct GradientRequest {
  std::string loss;                          ///< a float value of one element, unless it is summed
  bool is_summed = false;                    ///< the loss is the sum of the value's elements
  std::vector<std::string> with_respect_to;  ///< float values: inputs, constants or defined values
  GradientTerms straight_through = {};
};

/// The float constants on which the value depends, in order of their first use.
std::vector<std::string> weights_of(const Program& program, const std::string& value);
/// The float inputs.
std::vector<std::string> float_inputs(const Program& program);

/// Outputs: the loss, and a gradient named VALUE.gradient for each value, in order. Errors: unknown values, values
/// without floats, a loss of several elements, sizes or extents that are known only at run time, and every layer
/// without a derivative between the values and the loss.
Result<Program> gradient(const Program& program, const GradientRequest& request);

}  // namespace hoist
