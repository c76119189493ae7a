#include "lowering/strategies/terms.h"

#include <algorithm>
#include <limits>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "ir/properties/properties.h"

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

int64_t arithmetic_of_node(Expr e) {
  if (e->pattern == Pattern::call && e->function == Function::fma) return 2;
  return e->pattern == Pattern::call || e->pattern == Pattern::select ? 1 : 0;
}

int64_t operations_of_node(Expr e) { return e->pattern == Pattern::cast ? 1 : arithmetic_of_node(e); }

int64_t multiplications_of_node(Expr e) {
  return e->pattern == Pattern::call && (e->function == Function::multiply || e->function == Function::fma) ? 1 : 0;
}

// The sum of `of_node` over all nodes, each counted as often as the maps and folds around it repeat it.
int64_t sum_over_nodes(Expr e, int64_t (*of_node)(Expr), std::unordered_map<Expr, int64_t>& known) {
  if (auto found = known.find(e); found != known.end()) return found->second;
  int64_t sum = of_node(e);
  for (Expr c : usual_children(e)) {
    const bool repeats = c->pattern == Pattern::function && e->pattern != Pattern::let;
    const int64_t times = repeats ? applications(e) : 1;
    int64_t product = 0;
    if (__builtin_mul_overflow(sum_over_nodes(c, of_node, known), times, &product) ||
        __builtin_add_overflow(sum, product, &sum)) {
      sum = std::numeric_limits<int64_t>::max();
    }
  }
  return known[e] = sum;
}

}  // namespace

Expr with_numbered_parameters(Expr e) {
  std::map<std::string, Expr> renamed;
  for (Expr p : parameters_of(e)) renamed[p->name] = parameter("p" + std::to_string(renamed.size()), p->type);
  return substitute_parameters(e, renamed);
}

int64_t applications(Expr e) {
  return e->pattern == Pattern::iterate ? e->sizes[0].value() : e->children.back()->type->size.value();
}

int64_t count_operations(Expr e) {
  std::unordered_map<Expr, int64_t> known;
  return sum_over_nodes(e, operations_of_node, known);
}

int64_t count_arithmetic(Expr e) {
  std::unordered_map<Expr, int64_t> known;
  return sum_over_nodes(e, arithmetic_of_node, known);
}

int64_t count_multiplications(Expr e) {
  std::unordered_map<Expr, int64_t> known;
  return sum_over_nodes(e, multiplications_of_node, known);
}

bool mentions(Expr e, const std::string& name) {
  return any_node(e, [&](Expr n) { return n->pattern == Pattern::parameter && n->name == name; });
}

Expr replace_closed(Expr e, const std::function<Expr(Expr)>& replace) {
  std::unordered_map<Expr, Expr> memo;
  return rebuild(e, replace, memo);
}

std::optional<Path> first_closed(Expr root, const std::function<bool(Expr)>& accepts) {
  std::set<Expr> seen;
  Path path;
  std::function<bool(Expr)> walk = [&](Expr e) {
    if (!seen.insert(e).second) return false;
    if (e->free == 0 && accepts(e)) return true;
    for (size_t i = 0; i < e->children.size(); ++i) {
      path.push_back(static_cast<int>(i));
      if (walk(e->children[i])) return true;
      path.pop_back();
    }
    return false;
  };
  if (!walk(root)) return std::nullopt;
  return path;
}

std::vector<Path> places_where(Expr root, const std::function<bool(Expr)>& accepts, size_t most_nodes) {
  std::vector<Path> out;
  Path path;
  size_t visited = 0;
  const std::function<void(Expr)> walk = [&](Expr e) {
    if (++visited > most_nodes) return;
    if (accepts(e)) out.push_back(path);
    for (size_t i = 0; i < e->children.size(); ++i) {
      path.push_back(static_cast<int>(i));
      walk(e->children[i]);
      path.pop_back();
    }
  };
  walk(root);
  return out;
}

}  // namespace hoist
