// What bounds a kernel however definitions are merged into it.
#pragma once

#include <cstddef>
#include <string>

#include "ir/language/expression.h"

namespace hoist {

/// How large a term is that stands for one kernel: its tree, in which what is shared counts as often as it occurs,
/// since code generators and drivers see it so. The largest of the models that were tried has some hundreds of nodes;
/// beyond the limit the time that a kernel costs grows faster than what it saves: 10,000 elementwise layers in a row
/// become several kernels, so that compile time grows with the layers and not with their square.
inline constexpr size_t most_nodes = 4000;

/// The same with the value of every let and every element of an array written out at each use, which is what Halide's
/// simplifier goes through. Resampling reads several elements of a row that the term names once, and each further
/// resampling multiplies them.
inline constexpr double most_written_out = 20'000;
/// How many nodes a term has when it is written out like that, where a read of the parameter `name` counts as `each`. A
/// value that folds counts once, since it is kept.
double written_out_nodes(Expr term, const std::string& name, double each);

}  // namespace hoist
