// Common code of the models of ai.onnx.ml: tables in attributes, rows of features, and the transformation of scores.
// Only for ir/operators.
#pragma once

#include <string>
#include <vector>

#include "ir/operators/definitions/support.h"
#include "ir/operators/operators.h"

namespace hoist::operators {

using Floats = std::vector<double>;

/// From the attribute of that name, a list, or from NAME_as_tensor; empty if both are absent.
Result<Floats> floats_attribute(const OperatorContext& context, const std::string& name);
Expr table(Scalar scalar, const Floats& values);

/// Models accept all numeric types and compute in f32, or in f64 for f64 inputs.
Scalar computed_in(Expr x);
/// Rows of features; a vector is one row.
Result<Expr> feature_rows(Expr x);
/// x times the transpose of `weights`, plus `added`, which has one element per row of `weights`. The result has the
/// type of the weights.
Expr weighted_sums(Expr x, Expr weights, Expr added);

/// Attribute post_transform.
Result<std::string> transform_attribute(const OperatorContext& context);
/// The transformation of a row of scores.
Expr transformed(const std::string& transform, Expr row);
/// The scores of two classes from a single score, as in onnxruntime: `first` and `score`, [2]. LOGISTIC makes both
/// probabilities, PROBIT leaves the second at 0, and SOFTMAX and SOFTMAX_ZERO change nothing.
Expr scores_of_two(const std::string& transform, const Number& first, const Number& score);
/// The transformation of all rows, in the type of the result.
Expr finished(const std::string& transform, Expr scores, Scalar scalar = Scalar::f32);

/// The position of the first largest element.
Expr place_of_largest(Expr row);
/// Class labels, integers or strings, one per class: the attribute of that name, or classlabels_strings.
Result<Tensor> labels_of(const OperatorContext& context, const std::string& name);
Expr label_at(Expr place, const Tensor& labels);

}  // namespace hoist::operators
