// Traversals of terms that several passes need. Rewriting is done by rules.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/language/expression.h"

namespace hoist {

/// True for an array, and for a tuple with an array among its parts.
bool holds_arrays(Type type);
/// True if the term reads the parameter of that name.
bool mentions(Expr e, const std::string& name);
/// The term with its parameters called p0, p1, ... in order, so that equal terms over other arrays are equal.
Expr with_numbered_parameters(Expr e);
/// The number of times that a node other than a let applies its function: a map's extent, for example.
int64_t applications(Expr e);
/// An upper bound of the executed calls, casts and selections: each node of the tree counts once per iteration of the
/// enclosing maps and folds; saturated. lowering/cost/work.h counts executed work exactly.
int64_t count_operations(Expr e);
/// Rebuilds a term: `replace` gives a closed replacement of the same type for a closed subterm, or null to descend.
Expr replace_closed(Expr e, const std::function<Expr(Expr)>& replace);

/// The least multiple of k that is at least n.
inline int64_t round_up(int64_t n, int64_t k) { return (n + k - 1) / k * k; }
/// The place of the first closed subterm, outermost first, for which the test holds.
std::optional<Path> first_closed(Expr root, const std::function<bool(Expr)>& accepts);
/// The places of the subterms for which the test holds, outermost first, left to right, in the order of the text. The
/// graph of the term is traversed as a tree, so the traversal ends after `most_nodes` nodes.
std::vector<Path> places_where(Expr root, const std::function<bool(Expr)>& accepts, size_t most_nodes);

}  // namespace hoist
