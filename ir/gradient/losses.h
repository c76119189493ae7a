// Losses for training, which a row adds to a value of a model as definitions, with an input of its own for what the
// value should be. A loss is one number, the mean over all rows or elements, so a batch of another size has the same
// scale.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ir/base/result.h"
#include "ir/program/program.h"

namespace hoist {

struct LossRow {
  std::string_view name;
  std::string_view what;  ///< one-line description
};

/// All losses.
///
/// `mse`: the mean of the squares of the differences from the input `target`, which has the value's type.
///
/// `cross-entropy`: the mean of the negative logarithms of the softmax at the classes that the input `labels` gives,
/// integers in the value's shape without the classes. Rows with a negative label are left out; a label that is too
/// large makes the loss NaN. The value holds logits; for the result of a Softmax or LogSoftmax over the classes the
/// loss is that of its operand, which is the same number.
///
/// `distillation`: the divergence of the value's softmax from that of the input `teacher`, which has the value's type,
/// both divided by a temperature, 1 by default, and times its square (Hinton, Vinyals and Dean, 2015).
///
/// `attention-transfer`: that divergence for the first columns of the value, as many as AXIS says, and 1000 times the
/// sum of the squares of the other columns' differences, as a mean over the rows (training/attention.h).
std::span<const LossRow> loss_rows();

/// `term`: the value of the term after "term:", one number of the value's scalar type, over the value as `output` and
/// the input `target`, which has the value's type.
inline constexpr char term_loss[] = "term:";

/// Adds the loss NAME, NAME:AXIS or NAME:AXIS,TEMPERATURE, or term:TERM, of a value, and returns the name of the loss.
/// AXIS is the dimension of the classes, 1 by default. Errors: an unknown loss or value, a value that is not an array
/// of floats or has sizes that are known only at run time, an axis that the value does not have. `smoothing`, a scalar
/// of f32, is the weight of the uniform distribution over the classes in each target (Szegedy et al., 2016); only for
/// cross-entropy.
Result<std::string> add_loss(Program& program, const std::string& value, const std::string& loss,
                             Expr smoothing = nullptr);

}  // namespace hoist
