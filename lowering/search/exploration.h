// Random rewrites of a definition's term before strategies map it to a device: a few rules of the table, each at some
// place where it applies, so that a search can measure forms that no pass and no strategy produces. Every rewrite is an
// ordinary derivation, which a bundle can replay. A rewrite is identified by an integer: the seed of its walk and a
// check that the same walk still leads to the same term. A record of a measured rewrite therefore is a plain knob
// value. Nothing here estimates speed; tools/tuning measures it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/rules/rewrite.h"

namespace hoist {

/// The knob that selects the rewrite of a definition's term; 0 keeps the term.
inline constexpr std::string_view exploration_knob = "explored";

/// The rules that walks apply: moving, splitting, fusing and regrouping plain maps, folds and views. Rules that open
/// loops for a device or apply to convolutions belong to strategies and passes. No rule of the list adds undefined
/// elements. With `strict` only exact rules are returned.
std::vector<const Rule*> exploration_rules(bool strict);

/// Knob values of `count` different rewrites of the term, or of fewer if walks repeat or fail; never 0.
std::vector<int64_t> explorations(Expr term, size_t count, bool strict);

/// Applies the rewrite of this knob value. Returns false and changes nothing if the value does not belong to the term,
/// as with a record of another term or another rule table.
bool explore(Rewriter& rewriter, int64_t value, bool strict);

}  // namespace hoist
