#include "lowering/terms.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace hoist {
namespace {

Expr rebuild(Expr e, const std::function<Expr(Expr)>& replace, std::unordered_map<Expr, Expr>& memo) {
  if (auto place = memo.find(e); place != memo.end()) return place->second;
  Expr result = e->open == 0 ? replace(e) : nullptr;
  if (result == nullptr) {
    std::vector<Expr> children;
    for (Expr c : e->children) children.push_back(rebuild(c, replace, memo));
    result = e;
    if (children != e->children) {
      auto made = with_children(e, std::move(children));
      HOIST_CHECK(made.ok(), made.errors()[0].text());
      result = *made;
    }
  }
  memo.emplace(e, result);
  return result;
}

}  // namespace

bool any_node(Expr e, const std::function<bool(Expr)>& test) {
  std::unordered_set<Expr> seen;
  std::function<bool(Expr)> walk = [&](Expr n) {
    if (!seen.insert(n).second) return false;
    return test(n) || std::any_of(n->children.begin(), n->children.end(), walk);
  };
  return walk(e);
}

bool mentions(Expr e, const std::string& name) {
  return any_node(e, [&](Expr n) { return n->pattern == Pattern::parameter && n->name == name; });
}

Expr replace_closed(Expr e, const std::function<Expr(Expr)>& replace) {
  std::unordered_map<Expr, Expr> memo;
  return rebuild(e, replace, memo);
}

}  // namespace hoist
