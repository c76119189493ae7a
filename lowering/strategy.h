// Strategies: which rules to apply where, so that a definition becomes a kernel for a device. A strategy never builds
// terms; it applies rules of the table through a Rewriter, so every decision is in the derivation. The device is known
// only through its profile.
#pragma once

#include <optional>
#include <vector>

#include "ir/profile.h"
#include "ir/rules/rewrite.h"
#include "lowering/storage.h"

namespace hoist {

struct StrategyInput {
  Expr term = nullptr;  ///< the stored array: surround(storage, interior(...)) of the group's expression
  Path inside;          ///< where the interior stands in it
  Tile tile;
  std::vector<Tile> kept;  ///< of the arrays that the term keeps before its result (statements.h)
  bool folds = false;
  bool interleaved = false;  ///< weights lie in words of four bytes, for a dot instruction
  bool strict = false;       ///< exact rules only
};

/// The strategy for the term that the rewriter holds, which is the input's.
void apply_strategy(Rewriter& rewriter, const StrategyInput& input, const Profile& profile);
/// The low-level term and how it came about.
Derivation lower_to_kernel(const StrategyInput& input, const Profile& profile, Expr& low_level);
/// The body of the innermost map with a mode below a place, where a rule has opened one: below views, the function's
/// body. Nothing where there is none.
std::optional<Path> opened_body(Expr root, Path place);

}  // namespace hoist
