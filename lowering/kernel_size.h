// What bounds a kernel however definitions are merged into it.
#pragma once

#include <cstddef>
#include <string>

#include "ir/expression.h"

namespace hoist {

/// How large a term is that stands for one kernel: its tree, in which what is shared counts as often as it occurs,
/// since code generators and drivers see it so. The largest of the models that were tried has some hundreds of nodes;
/// beyond the limit the time that a kernel costs grows faster than what it saves: 10,000 elementwise layers in a row
/// become several kernels, so that compile time grows with the layers and not with their square.
inline constexpr size_t most_nodes = 4000;

/// The same with every let and every element of an array in place of its uses, as a code generator has them before it
/// finds what is common: resampling picks several elements of a row that the term names once, and resampling what was
/// resampled the product of that many. Halide's simplifier looks at each of them.
inline constexpr double most_written_out = 20'000;
/// So many nodes of a term, with `each` for a parameter of that name. A value that folds is computed once.
double written_out_nodes(Expr term, const std::string& name, double each);

}  // namespace hoist
