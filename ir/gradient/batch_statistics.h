// Means and variances of a batch by channel, and the adjoints of a BatchNormalization by them. Both sums that the
// image's adjoint needs are the adjoints of bias and scale; the adjoints of mean and variance as values of their own
// would read image and adjoint two more times.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "ir/gradient/call_adjoints.h"

namespace hoist::gradients {

/// The mean of each channel of [N][C]..., by sums of this scalar.
Expr batch_mean(Expr image, Scalar scalar);
/// The mean of the squared distances from these means.
Expr batch_variance(Expr image, Expr means, Scalar scalar);

/// Adjoints of the operands of a BatchNormalization. The image's contains what reaches it through mean and variance.
struct NormalisationAdjoints {
  Expr image, scale, bias;
};

/// Nothing unless mean and variance are the statistics of the image. `term_of` gives the term of a defined value, null
/// for others.
std::optional<NormalisationAdjoints> adjoints_by_batch(const Spec& call, Expr adjoint,
                                                       const std::function<Expr(const std::string& value)>& term_of,
                                                       const StoreTerm& store);

}  // namespace hoist::gradients
