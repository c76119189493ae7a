#include "ir/properties/properties.h"

#include <algorithm>

#include "ir/base/seen_terms.h"
#include "ir/properties/formula.h"

namespace hoist {

bool any_node(Expr e, const std::function<bool(Expr)>& test) {
  SeenTerms seen;
  const auto walk = [&](const auto& self, Expr n) -> bool {
    if (!seen.insert(n)) return false;
    return test(n) || std::any_of(n->children.begin(), n->children.end(), [&](Expr c) { return self(self, c); });
  };
  return walk(walk, e);
}

std::vector<Expr> usual_children(Expr e) {
  std::vector<Expr> out = e->children;
  if (is_rare(e)) out.erase(out.begin() + 1);
  return out;
}

bool any_usual_node(Expr e, const std::function<bool(Expr)>& test) {
  SeenTerms seen;
  const auto walk = [&](const auto& self, Expr n) -> bool {
    if (!seen.insert(n)) return false;
    if (test(n)) return true;
    const std::vector<Expr> children = usual_children(n);
    return std::any_of(children.begin(), children.end(), [&](Expr c) { return self(self, c); });
  };
  return walk(walk, e);
}

bool is_fold(Expr e) {
  switch (e->pattern) {
    case Pattern::reduce:
    case Pattern::fold:
    case Pattern::scan:
    case Pattern::iterate:
    case Pattern::scatter:
    case Pattern::host:
      return true;
    default:
      return false;
  }
}

bool folds(Expr e) { return any_usual_node(e, is_fold); }

bool concatenates(Expr e) {
  return any_node(e, [](Expr n) { return n->pattern == Pattern::concat; });
}

bool has_windows(Expr e) {
  return any_usual_node(e, [](Expr n) { return n->pattern == Pattern::slide && n->sizes[0] != Nat(1); });
}

bool moves_only(Expr e) {
  return !any_node(e, [](Expr n) {
    switch (n->pattern) {
      case Pattern::parameter:
      case Pattern::bound:
      case Pattern::function:
      case Pattern::literal:
      case Pattern::let:
        return false;
      case Pattern::map:
        return n->mode != Mode::view;
      case Pattern::constant:
      case Pattern::iota:
      case Pattern::index:
        return true;
      default:
        return !row(n->pattern).is_view;
    }
  });
}

std::set<Function> functions_in(Expr term) {
  std::set<Function> out;
  any_node(term, [&](Expr e) {
    if (e->pattern == Pattern::call) out.insert(e->function);
    return false;
  });
  return out;
}

bool pools(Expr term) {
  if (sizes_of(term->type).size() < 3) return false;
  const auto formula = element_formula(term);
  if (formula == nullptr) return false;
  const Formula element(*formula);
  const auto is_position = [&](const ElementFormula::Read& read, size_t d) {
    return read.at[d] == formula->position[d];
  };
  bool any = false;
  for (const ElementFormula::Read* read : element.reads_in(element.root())) {
    if (read->at.size() != element.rank()) continue;
    if (!is_position(*read, 0) || !is_position(*read, 1)) return false;
    for (size_t d = 2; d < element.rank(); ++d) {
      if (is_position(*read, d) && !element.indices()[read->at[d]].terms.empty()) return false;
    }
    any = true;
  }
  return any;
}

bool normalises_exponentials(Expr term) {
  const auto formula = functions_in(term).count(Function::exp) != 0 ? element_formula(term) : nullptr;
  if (formula == nullptr) return false;
  const Formula element(*formula);
  const auto is_exponential = [&](int v) {
    return element.at(v).kind == Value::operation && element.at(v).function == Function::exp;
  };
  const Value& root = element.at(element.root());
  if (root.kind != Value::operation || root.function != Function::divide || !is_exponential(root.a)) return false;
  const Value& divisor = element.at(root.b);
  if (divisor.kind != Value::result) return false;
  const Value& body = element.at(element.loop(divisor.a).slots[static_cast<size_t>(divisor.b)].body);
  return body.kind == Value::operation && body.function == Function::add &&
         (is_exponential(body.a) || is_exponential(body.b));
}

}  // namespace hoist
