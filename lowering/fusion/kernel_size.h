// Upper bounds of the size of a kernel. They hold however definitions are merged into it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "ir/language/expression.h"

namespace hoist {

/// The limit of nodes of a term that becomes one kernel, counted as a tree: shared parts count once per use, as code
/// generators and drivers process them. The largest kernel of the tested models has some hundreds of nodes. Beyond the
/// limit compile time grows faster than the time it saves: 10,000 elementwise layers in a row become several kernels,
/// so that compile time is linear in the layers and not quadratic.
inline constexpr size_t most_nodes = 4000;
/// The nodes of the generated code for one node, without its operands: 1, or the nodes of the polynomial for a function
/// such as tanh. A kernel of 200 such functions compiles in 2 s, a kernel of 400 in 9 s.
size_t own_nodes(Expr e);

/// The limit with the value of every let and every element of an array expanded at each use, as Halide's simplifier
/// processes them. Resampling reads several elements of a row that the term names once, and each further resampling
/// multiplies them.
inline constexpr double most_written_out = 20'000;
/// The number of nodes of a term expanded like that. A use of the parameter `name` counts as `each`. A value that folds
/// counts once, since it is materialised.
double written_out_nodes(Expr term, const std::string& name, double each);

/// The limit of regroupings between an element of a kernel's result and an element that it reads. Each splits the index
/// by division and remainder and recombines both, which doubles the expression of the position: 18 pairs of Reshape and
/// Transpose in one kernel compile in 13 s, and 24 pairs take more than 120 s.
inline constexpr int64_t most_regroupings = 8;
/// The limit of nestings on that path: of borders, which compare the position, and joins, which divide it. Halide
/// simplifies nested positions in quadratic time: 200 pairs of Pad and Slice, or of Tile and Slice, in one kernel
/// compile in 0.8 s, 400 pairs in 2.7 s.
inline constexpr int64_t most_nestings = 64;
/// The largest number of times that dimensions are collapsed and split again, and of nestings, on a path through the
/// term.
struct PositionDepth {
  int64_t regroupings = 0, nestings = 0;
};
PositionDepth position_depth(Expr term);

/// The limit of folds that the elements of a row share in merged definitions: the lets of all are rebuilt for each
/// further fold. A chain of 60 tree ensembles and sums was merged in 10 s without the limit.
inline constexpr size_t most_shared_folds = 16;

/// The limit of distinct arrays that a kernel with merged definitions reads. Halide checks every array of a kernel by
/// statements that it flattens in quadratic time: a sum of 100 arrays in one kernel compiles in 0.6 s, a sum of 400 in
/// 7 s. OpenCL devices need not accept more than 1,024 bytes of arguments.
inline constexpr size_t most_arrays = 64;

}  // namespace hoist
