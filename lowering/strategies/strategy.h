// Strategies decide which rules to apply at which place, so that a definition becomes a kernel for a device. A strategy
// never builds terms; it applies rules of the table through a Rewriter, so every decision is in the derivation. A
// strategy knows a device only by its target description. Strategies are rows of a table, one file of strategies/ for
// each kind of device; the first one that applies maps a kernel's loops, unless the user's steps (schedule_script.h)
// name another.
//
// On CPUs a strategy opens a nest of loops over the stored result and leaves folds scalar: `unroll` and `vec` are
// space, not time, so the Halide layer runs a fold outside of them and its accumulators become the register tile. Terms
// stay short, and convolutions, matrix products, pooling and depthwise layers share one strategy. Folds over rows that
// no vector of the result spans form partial results in vectors themselves (`prepare`). On GPUs a work-group computes a
// tile of a contraction, each work-item a part of it that is spread over the group, and the innermost fold reads its
// operands through local memory, some steps at a time (`fold-blocks`). The tiles in local memory are inside the
// work-item loops, next to the operators that use them; the Halide layer gives them a dimension for each loop that they
// depend on. For a few results of long sums, the work-items of a group share each sum ("sum-in-parts"), as they share
// the folds of a row and folds over adjacent elements. A tile of a transposition turns in local memory. All other
// kernels have one work-item for each element, or for a vector of elements that are adjacent in every array.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ir/rules/rewrite.h"
#include "ir/target/profile.h"
#include "lowering/layout/storage_plan.h"
#include "lowering/tiling/open_extents.h"

namespace hoist {

struct StrategyInput {
  Expr term = nullptr;  ///< the stored array: surround(storage, interior(...)) of the group's expression
  Path inside;          ///< the place of the interior in the stored array
  Tile tile;
  std::vector<Tile> materialised;  ///< the arrays that the term materialises before its result (statements.h)
  bool folds = false;
  bool interleaved = false;  ///< weights are stored in words of four bytes or two 16-bit values, for a dot instruction
  bool strict = false;       ///< exact rules only
  OpenExtents open;          ///< the extents that a run chooses
};

/// A way to map the loops of a kernel to a device.
struct Strategy {
  std::string_view name;  ///< name in the user's steps
  std::string_view what;  ///< one-line description
  /// True if the strategy can map this term: the input's, with sums as folds.
  bool (*applies)(Expr term, const StrategyInput& input, const Profile& profile);
  /// Opens loops over the result, which is at input.inside and has at least one dimension.
  void (*apply)(Rewriter& rewriter, const StrategyInput& input, const Profile& profile);
  /// Changes folds before their scalar code changes; null if there is nothing to change.
  void (*prepare)(Rewriter& rewriter, const StrategyInput& input, const Profile& profile) = nullptr;
};

/// In the order in which they are tried. One of them applies to every term.
const std::vector<Strategy>& strategies();

/// The steps common to all strategies (sums become folds), then the first of the candidates that applies to the
/// rewriter's term, which is the input's. Errors: none applies.
Result<Nothing> apply_strategy(Rewriter& rewriter, const StrategyInput& input, const Profile& profile,
                               const std::vector<Strategy>& candidates);
/// The body of the innermost map with a mode below a place at which a rule has opened one: below views, the function's
/// body. Empty if there is none.
std::optional<Path> opened_body(Expr root, Path place);

}  // namespace hoist
