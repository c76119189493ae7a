#include "lowering/terms/rereads.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

namespace hoist {
namespace {

using VisitedAt = std::set<std::pair<Expr, int64_t>>;  // shared parts are visited once per mode

// Windows that do not overlap read each element once.
bool windows_overlap(Expr n) {
  return n->pattern == Pattern::slide &&
         !(n->sizes[0].is_constant() && n->sizes[1].is_constant() && n->sizes[0].value() <= n->sizes[1].value());
}

// True for patterns that read elements of their arrays repeatedly, or in an unknown way.
bool repeats_elements(Expr n) {
  switch (n->pattern) {
    case Pattern::repeat:
    case Pattern::index:
    case Pattern::iterate:
    case Pattern::scatter:
    case Pattern::host:
    case Pattern::tile:
      return true;
    case Pattern::pad:
      return n->border == Border::clamp || n->border == Border::mirror || n->border == Border::wrap;
    default:
      return windows_overlap(n);
  }
}

// Loops whose function receives the elements of the last child.
bool visits_elements(Expr n) {
  return n->pattern == Pattern::map || n->pattern == Pattern::fold || n->pattern == Pattern::reduce;
}

int64_t bound_by(Expr c) { return c->pattern == Pattern::function ? static_cast<int64_t>(c->parameters.size()) : 0; }

Expr body_or_itself(Expr c) { return c->pattern == Pattern::function ? c->children[0] : c; }

// The bound variable that holds an element of the array. In a zip only the parts that use the name count.
struct ElementVariable {
  int64_t position = 0;
  PositionsOfRows positions_of_rows = PositionsOfRows::once;
  std::set<int64_t> other_parts = {};  // tuple components without the array

  ElementVariable under(int64_t more) const { return {position + more, positions_of_rows, other_parts}; }
  bool is_other_part(Expr n) const {
    return n->pattern == Pattern::get && n->children[0]->pattern == Pattern::bound &&
           n->children[0]->integers[0] == position && other_parts.count(n->integers[0]) != 0;
  }
};

bool mentions_element(Expr n, const ElementVariable& element, VisitedAt& visited) {
  if (n->free <= element.position || element.is_other_part(n)) return false;
  if (n->pattern == Pattern::bound) return n->integers[0] == element.position;
  if (!visited.emplace(n, element.position).second) return false;
  return std::any_of(n->children.begin(), n->children.end(),
                     [&](Expr c) { return mentions_element(body_or_itself(c), element.under(bound_by(c)), visited); });
}

bool uses_element(Expr n, const ElementVariable& element) {
  VisitedAt visited;
  return mentions_element(n, element, visited);
}

// True if the element, itself an array, is read repeatedly, or as a whole array inside another loop.
bool escapes(Expr n, const ElementVariable& element, bool repeated, VisitedAt& visited) {
  if (n->free <= element.position || element.is_other_part(n)) return false;
  if (n->pattern == Pattern::bound) return n->integers[0] == element.position && repeated;
  if (!visited.emplace(n, 2 * element.position + (repeated ? 1 : 0)).second) return false;
  const bool again = repeated || windows_overlap(n) || n->pattern == Pattern::repeat;
  for (Expr c : n->children) {
    // A position is read once, the indexed array once per position.
    const bool looked_into =
        n->pattern == Pattern::index &&
        (c == n->children.back() || (n->type->is_array() && element.positions_of_rows == PositionsOfRows::repeated));
    const bool loop = c->pattern == Pattern::function && n->pattern != Pattern::let;
    if (escapes(body_or_itself(c), element.under(bound_by(c)), again || looked_into || loop, visited)) return true;
  }
  return false;
}

class RepeatedReads {
 public:
  RepeatedReads(const std::string& name, PositionsOfRows positions) : name_(name), positions_(positions) {}

  // Every element reads an array that a function body captures.
  bool captured(Expr n, bool repeated) {
    if (n->pattern == Pattern::parameter) return n->name == name_ && repeated;
    if (!mentioned(n) || !walked_.emplace(n, repeated ? 1 : 0).second) return false;
    const bool again = repeated || repeats_elements(n);
    for (size_t i = 0; i < n->children.size(); ++i) {
      Expr c = n->children[i];
      const bool inside = c->pattern == Pattern::function && n->pattern != Pattern::let;
      // The value of a let may be used repeatedly. A function body that mentions the parameter rereads it.
      if (captured(c, again || inside || (n->pattern == Pattern::let && i == 0))) return true;
    }
    return false;
  }

  // Another loop inside reads an element that is an array for each of its steps: x |> map (\row. B |> map (\c.
  // row...)).
  bool in_elements(Expr n) {
    if (!mentioned(n) || !seen_.insert(n).second) return false;
    const auto reads_it = [this](Expr part) { return mentioned(part); };
    if (visits_elements(n) && mentioned(n->children.back()) && in_elements_of(n, reads_it)) return true;
    return std::any_of(n->children.begin(), n->children.end(), [this](Expr c) { return in_elements(c); });
  }

 private:
  bool mentioned(Expr n) {
    if (auto entry = reads_.find(n); entry != reads_.end()) return entry->second;
    bool found = n->pattern == Pattern::parameter && n->name == name_;
    for (Expr c : n->children) found = mentioned(c) || found;
    return reads_[n] = found;
  }

  // A loop over an array that uses the parameter.
  template <class Reads>
  bool in_elements_of(Expr loop, const Reads& reads_it) {
    const Expr array = loop->children.back(), body = loop->children[0]->children[0];
    ElementVariable element{.positions_of_rows = positions_};
    for (size_t i = 0; array->pattern == Pattern::zip && i < array->children.size(); ++i) {
      if (!reads_it(array->children[i])) element.other_parts.insert(static_cast<int64_t>(i));
    }
    VisitedAt escaped, visited;
    return escapes(body, element, false, escaped) || in_inner_loops(body, element, visited);
  }

  // Loops over the elements of the element.
  bool in_inner_loops(Expr n, const ElementVariable& element, VisitedAt& visited) {
    if (n->free <= element.position || !visited.emplace(n, element.position).second) return false;
    const auto reads_it = [&](Expr part) { return mentioned(part) || uses_element(part, element); };
    if (visits_elements(n) && uses_element(n->children.back(), element) && in_elements_of(n, reads_it)) return true;
    return std::any_of(n->children.begin(), n->children.end(),
                       [&](Expr c) { return in_inner_loops(body_or_itself(c), element.under(bound_by(c)), visited); });
  }

  const std::string& name_;
  const PositionsOfRows positions_;
  std::unordered_map<Expr, bool> reads_;
  VisitedAt walked_;
  std::set<Expr> seen_;
};

}  // namespace

bool rereads(Expr e, const std::string& name, PositionsOfRows positions) {
  RepeatedReads reads(name, positions);
  return reads.captured(e, false) || reads.in_elements(e);
}

}  // namespace hoist
