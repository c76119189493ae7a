#include "lowering/terms.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "ir/properties.h"

namespace hoist {
namespace {

Expr rebuild(Expr e, const std::function<Expr(Expr)>& replace, std::unordered_map<Expr, Expr>& memo) {
  if (auto found = memo.find(e); found != memo.end()) return found->second;
  Expr result = e->free == 0 ? replace(e) : nullptr;
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

int64_t operations(Expr e, std::unordered_map<Expr, int64_t>& known) {
  if (auto found = known.find(e); found != known.end()) return found->second;
  int64_t sum = e->pattern == Pattern::call || e->pattern == Pattern::cast || e->pattern == Pattern::select ? 1 : 0;
  if (e->pattern == Pattern::call && e->function == Function::fma) sum = 2;
  for (Expr c : e->children) {
    int64_t times = 1;
    if (c->pattern == Pattern::function && e->pattern != Pattern::let) {
      times = e->pattern == Pattern::iterate ? e->sizes[0].value() : e->children.back()->type->size.value();
    }
    int64_t product = 0;
    if (__builtin_mul_overflow(operations(c, known), times, &product) || __builtin_add_overflow(sum, product, &sum)) {
      sum = std::numeric_limits<int64_t>::max();
    }
  }
  return known[e] = sum;
}

}  // namespace

int64_t count_operations(Expr e) {
  std::unordered_map<Expr, int64_t> known;
  return operations(e, known);
}

bool mentions(Expr e, const std::string& name) {
  return any_node(e, [&](Expr n) { return n->pattern == Pattern::parameter && n->name == name; });
}

Expr replace_closed(Expr e, const std::function<Expr(Expr)>& replace) {
  std::unordered_map<Expr, Expr> memo;
  return rebuild(e, replace, memo);
}

}  // namespace hoist
