// Which layers become one kernel. A group is an anchor (a definition that folds: convolution, matrix product, pooling,
// normalisation) with the elementwise definitions after it and the views around it. Merging is substitution of one
// definition's expression for a parameter of another, so meaning and bits stay; what is decided here is only that no
// element is computed more often than before.
//
// What is dequantised is computed again by every reader that reads each element once: reading bytes is cheaper than
// reading what they widen to.
#pragma once

#include "lowering/graph/program.h"

namespace hoist {

/// Can evaluating every element of `e` once read an element of parameter `name` more than once?
bool rereads(Expr e, const std::string& name);

/// Views become part of all that read them: a reshape is never a kernel of its own unless it is an output.
void inline_views(Program& program);
/// What is dequantised is computed again, from fewer bytes, by all that read each element once.
void inline_widening(Program& program);
/// Producers become part of the single definition that reads each of their elements once. `turns_products`: also where
/// neighbours in the result are then of other rows of a product, as in MatMul and Transpose, which is for GPUs: vectors
/// of a CPU would read those rows apart in each step (384x256x512: 2.4 ms for 0.8 in two kernels).
void merge_producers(Program& program, bool turns_products);

}  // namespace hoist
