// Loops that strategies open: each function applies rules of rules/nest.rules at a place of the rewriter's term and
// returns the place of the loop's body. They abort if a rule does not apply, because a strategy checks first. Only
// strategies include this header.
#pragma once

#include <cstdint>
#include <string>

#include "ir/rules/rewrite.h"
#include "lowering/strategies/strategy.h"

namespace hoist::loops {

/// The size of dimension `dimension` of the array at the path.
int64_t extent(Expr root, const Path& path, int dimension);
int rank_at(Expr root, const Path& path);

/// The body of the loop that the rule has just opened at the place.
Path opened(Expr root, const Path& place);
/// Applies a rule that opens a loop.
Path open(Rewriter& r, const std::string& rule, const Path& place, const RuleArguments& arguments = {});

/// Applies the rule at the place and at every other occurrence of the same term, so that it remains one term and is
/// computed once: x * sigmoid(x) names a convolution twice. Returns false if the rule does not apply.
bool apply_to_all(Rewriter& r, const std::string& rule, const Path& place, const RuleArguments& arguments = {});
/// The same for the first place at which the rule applies.
bool apply_to_all_of_first(Rewriter& r, const std::string& rule, const RuleArguments& arguments = {});

/// The columns of a register tile, in vectors of `width` lanes.
void open_tile_columns(Rewriter& r, const Path& place, int64_t width);
/// Vectors of at least this width are faster than single elements, or than shorter vectors that fit.
inline constexpr int64_t few_lanes = 4;
/// The lanes of vectors along a dimension of n elements: `width`, or for smaller n fewer lanes that divide n.
int64_t lanes_of(int64_t n, int64_t width);
/// The same if the last vector may overlap the one before it: for example a row of 14 has vectors of 8, not of 2.
int64_t lanes_of_columns(int64_t n, int64_t width);
/// The innermost dimension of a value without folds, in vectors of lanes_of_columns.
void open_columns(Rewriter& r, const Path& place, int64_t width, const OpenExtents& open = {});
/// Loops over the outermost dimensions that no rule collapses, until `rank` dimensions are left.
Path open_outermost(Rewriter& r, Path place, int rank);
/// The last two dimensions become one, `times` times; returns the place of the collapsed value.
Path collapse_columns(Rewriter& r, Path place, int64_t times);
/// All dimensions but the last `keep` become one collapsed dimension of work-groups.
Path open_leading(Rewriter& r, Path place, int keep, int dimension);

/// True if the result of a fold is a scalar and the number of its steps is known.
bool folds_numbers(Expr fold);
/// Scalar folds over whole rows, in the value at the path, form adjacent partial results in vectors of `width` lanes
/// and combine them at the end, if that makes the chain shorter. The order changes, so this is not for strict kernels.
/// It is for kernels whose loops over the result leave such a fold scalar; a fold inside a vec map is a fold of vectors
/// already.
void vectorise_folds(Rewriter& r, int64_t width, const OpenExtents& open, const Path& within = {});
/// The same for the scalars that elements of a row share, in the value at the place; also materialises exponentials
/// that a row's elements share with its sum. Does nothing if the lanes of a vector are elements of different rows.
void vectorise_shared_folds(Rewriter& r, const Path& place, const Profile& profile, const OpenExtents& open);

}  // namespace hoist::loops
