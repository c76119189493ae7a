// Strategies: which rules to apply where, so that a definition becomes a kernel for a device. A strategy never builds
// terms; it applies rules of the table through a Rewriter, so every decision is in the derivation. The device is known
// only through its profile. They are rows of a table, one file of strategies/ for each kind of device; the first one
// that applies maps a kernel's loops, unless the user's steps (steering.h) name another.
//
// On CPUs a strategy opens a nest of loops over the stored result and leaves folds scalar: `unroll` and `vec` are
// space, not time, so the Halide layer runs a fold outside of them and its accumulators become the register tile. Terms
// stay short, and convolutions, products, pooling and depthwise layers share one strategy. Folds over rows that no
// vector of the result spreads form partial results in vectors themselves (`prepare`). On GPUs a work-group
// computes a tile of a product, each work-item a part of it that is spread over the group, and the innermost fold takes
// its operands through local memory some steps at a time (`fold-blocks`). The tiles in local memory stand inside the
// work-item loops, where every operator has its operands; the Halide layer gives them a dimension for each loop that
// they depend on. Where there are few results of long sums, the work-items of a group share each sum ("sum-in-parts"),
// as they share the folds of a row. Everything else has a work-item an element, or a work-group a row.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ir/rules/rewrite.h"
#include "ir/target/profile.h"
#include "lowering/layout/storage_plan.h"

namespace hoist {

struct StrategyInput {
  Expr term = nullptr;  ///< the stored array: surround(storage, interior(...)) of the group's expression
  Path inside;          ///< where the interior stands in it
  Tile tile;
  std::vector<Tile> kept;  ///< of the arrays that the term keeps before its result (statements.h)
  bool folds = false;
  bool interleaved = false;  ///< weights lie in words of four bytes or two times 16 bits, for a dot instruction
  bool strict = false;       ///< exact rules only
};

/// A way to map the loops of a kernel to a device.
struct Strategy {
  std::string_view name;  ///< for the user's steps
  std::string_view what;  ///< one line, for people
  /// Whether it can map this term: the input's, with sums as folds.
  bool (*applies)(Expr term, const StrategyInput& input, const Profile& profile);
  /// Opens loops over the result, which stands at input.inside and has at least one dimension.
  void (*apply)(Rewriter& rewriter, const StrategyInput& input, const Profile& profile);
  /// What it does to folds before their scalar code changes; null: nothing.
  void (*prepare)(Rewriter& rewriter, const StrategyInput& input, const Profile& profile) = nullptr;
};

/// In the order in which they are asked. One of them applies to every term.
const std::vector<Strategy>& strategies();

/// What all strategies begin with (sums become folds), then the first of the candidates that applies to the term that
/// the rewriter holds, which is the input's. Errors: none applies.
Result<Nothing> apply_strategy(Rewriter& rewriter, const StrategyInput& input, const Profile& profile,
                               const std::vector<Strategy>& candidates);
/// The body of the innermost map with a mode below a place, where a rule has opened one: below views, the function's
/// body. Nothing where there is none.
std::optional<Path> opened_body(Expr root, Path place);

}  // namespace hoist
