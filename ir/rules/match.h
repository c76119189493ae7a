// Matching and building: the two halves of applying a rule. A pattern is an ordinary term that holds metavariables
// (Pattern::meta), type variables and named sizes; match() finds their values in a term, instantiate() inserts these
// into another pattern. A metavariable without arguments matches a term that mentions no variable bound inside the
// pattern; a metavariable applied to bound variables (or to components of bound tuples) matches a function of exactly
// those. Rules and strategies use this through rewrite.h.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/language/expression.h"

namespace hoist {

/// The values of a pattern's names. A metavariable with arguments is bound to a function node with that many
/// parameters. Bound positions are relative to the matched place.
struct Match {
  std::map<std::string, Nat> sizes;
  std::map<std::string, Type> types;
  std::map<std::string, Expr> metas;
};

/// The first difference between a pattern and a term; `place` is relative to the matched term.
struct Mismatch {
  Path place;
  std::string what;
};

/// True if pattern and term have the same form, whatever their types and sizes; if they differ, match_term gives a
/// mismatch. Searches try rules at every place of a term, and call this first, because it fails without a message.
bool may_match(Expr pattern, Expr term);

/// Fills `match` (which may hold sizes already) and returns nothing, or the first mismatch. Sizes are found by solving
/// equations that are linear in one unknown; a size that no equation determines is a mismatch.
std::optional<Mismatch> match_term(Expr pattern, Expr term, Match& match);

/// The pattern with everything replaced, built by make(): typed and in normal form.
Result<Expr> instantiate(Expr pattern, const Match& match);
Result<Nat> instantiate(const Nat& size, const Match& match);
Result<Type> instantiate(Type type, const Match& match);

/// True if the term mentions a bound position in low..high-1, counted from outside the term.
bool mentions_bound(Expr e, int64_t low, int64_t high);

}  // namespace hoist
