// Grouping of layers into kernels. A group is an anchor (a definition that folds: convolution, matrix product, pooling,
// normalisation) with the elementwise definitions after it and the views around it. Merging substitutes a definition's
// expression for a parameter of another one, so values stay the same bit for bit. The passes only ensure that no
// element is computed more often than before.
//
// Dequantised arrays are the exception: every consumer that reads each element once recomputes them, because loading
// 8-bit values is cheaper than loading the widened values.
#pragma once

#include <set>
#include <string>

#include "ir/base/result.h"
#include "ir/target/profile.h"
#include "lowering/graph/program.h"
#include "lowering/tiling/open_extents.h"

namespace hoist {

/// Inlines views into all consumers: a reshape is a kernel only if it is an output. With `stores_filters`, filters that
/// are a view of computed ones are stored.
void inline_views(Program& program, bool stores_filters);
/// Recomputes dequantised arrays in all consumers that read each element once.
void inline_widening(Program& program);
/// Merges producers into the only definition that uses them, if it reads each element once. With
/// `transposes_contractions` it also merges if adjacent elements of the result then belong to different rows of a
/// contraction, as in MatMul and Transpose. That is for GPUs: vectors of a CPU would load these rows separately in each
/// step (384x256x512: 2.4 ms instead of 0.8 ms in two kernels).
void merge_producers(Program& program, bool transposes_contractions);
/// The same for the definitions of `values`, from which outlining has taken their folds: the elementwise rest of a
/// normalisation over many elements, for example. Consumers are elementwise, so that they need no fold of their own.
void merge_rests(Program& program, const std::set<std::string>& values);
/// Merges sums along rows into the only definition that uses them, so that a normalisation decomposed into several
/// layers is one kernel that reads each row once from memory.
void merge_rows(Program& program);
/// Merges a contraction, the softmax of its rows and the contraction that reads them into one kernel, if only these
/// read the arrays between them: the kernel computes blocks of rows that stay in the cache of a core. Only
/// contractions of computed operands are merged, as in attention; blocks of rows would read constant weights
/// repeatedly.
Result<Nothing> fuse_rows(Program& program, const Profile& profile, const OpenExtents& open);

}  // namespace hoist
