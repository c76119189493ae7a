// Loops that strategies open: each function applies rules of rules/nest.rules at a place of the rewriter's term and
// gives the place of the loop's body. They abort if a rule does not apply, since a strategy checks first. Only
// strategies include this.
#pragma once

#include <cstdint>
#include <string>

#include "ir/rules/rewrite.h"
#include "lowering/strategies/strategy.h"

namespace hoist::loops {

/// Of dimension `dimension` of the array at the path.
int64_t extent(Expr root, const Path& path, int dimension);
int rank_at(Expr root, const Path& path);

/// The body of the loop that the rule, just applied at the place, has opened.
Path opened(Expr root, const Path& place);
/// Applies a rule that opens a loop.
Path open(Rewriter& r, const std::string& rule, const Path& place, const RuleArguments& arguments = {});

/// Applies the rule at the place and wherever else the same term stands, so that what a kernel computes once remains
/// one term: x * sigmoid(x) names a convolution twice. False where it does not apply.
bool apply_to_all(Rewriter& r, const std::string& rule, const Path& place, const RuleArguments& arguments = {});
/// The same of the first place where the rule applies.
bool apply_to_all_of_first(Rewriter& r, const std::string& rule, const RuleArguments& arguments = {});

/// The columns of a register tile, in vectors of `width` lanes.
void open_tile_columns(Rewriter& r, const Path& place, int64_t width);
/// Vectors of so many are worth more than elements by themselves, or than shorter ones that fit.
inline constexpr int64_t few_lanes = 4;
/// The lanes of vectors along a dimension of n elements: `width`, or fewer that divide n where there are fewer.
int64_t lanes_of(int64_t n, int64_t width);
/// The same where the last vector may reach back over the one before it: a row of 14 has vectors of 8, not of 2.
int64_t lanes_of_columns(int64_t n, int64_t width);
/// The innermost dimension of something that computes no folds, in vectors of lanes_of_columns.
void open_columns(Rewriter& r, const Path& place, int64_t width);
/// Loops over the outermost dimensions that no rule maps together, until `rank` are left.
Path open_outermost(Rewriter& r, Path place, int rank);
/// All dimensions but the last `keep` become one dimension of work-groups.
Path open_leading(Rewriter& r, Path place, int keep, int dimension);

/// Whether the result of a fold is one number, and the number of its steps is known.
bool folds_numbers(Expr fold);
/// Folds of numbers over whole rows, of the value at the path, form partial results side by side, in vectors of `width`
/// lanes, and combine them at the end, where that takes fewer steps one after the other. The order changes: not for
/// strict kernels. For kernels whose loops over the result leave such a fold scalar; a fold under a vec map is one of
/// vectors already.
void vectorise_folds(Rewriter& r, int64_t width, const Path& within = {});

}  // namespace hoist::loops
