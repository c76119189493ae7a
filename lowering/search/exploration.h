// Random rewrites of a definition's term, before strategies map it to a device: a few rules of the table, each at some
// place where it applies, so that a search can measure forms that no pass and no strategy makes. Every one is a
// derivation like any other, which a bundle replays. They are numbered: the number is the seed of a walk, so a record
// of a measured one is a number too, with a check that the same walk still leads to the same term. Which are worth
// anything is measured (tools/tuning); nothing here estimates.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/rules/rewrite.h"

namespace hoist {

/// The knob of a definition that says which rewrite of its term is taken; 0 for the term as it is.
inline constexpr std::string_view exploration_knob = "explored";

/// The rules that a walk takes: those that move, split, fuse and regroup plain maps, folds and views. What opens loops
/// for a device, and what knows a convolution, is for strategies and passes; none adds elements that are undefined.
std::vector<const Rule*> exploration_rules(bool strict);

/// So many different rewrites of the term, or fewer where walks lead back or nowhere: values of the knob, 0 not among
/// them.
std::vector<int64_t> explorations(Expr term, size_t count, bool strict);

/// The rewrite that this value of the knob stands for; false, and nothing is done, where it stands for none of this
/// term: a record of another term, or of other rules.
bool explore(Rewriter& rewriter, int64_t value, bool strict);

}  // namespace hoist
