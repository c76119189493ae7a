#include "lowering/terms/terms.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "ir/properties/properties.h"
#include "lowering/terms/saturated.h"

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

int64_t operations_of_node(Expr e) {
  if (e->pattern == Pattern::call && e->function == Function::fma) return 2;
  return e->pattern == Pattern::call || e->pattern == Pattern::select || e->pattern == Pattern::cast ? 1 : 0;
}

int64_t tree_operations(Expr e, std::unordered_map<Expr, int64_t>& known) {
  if (auto found = known.find(e); found != known.end()) return found->second;
  int64_t sum = operations_of_node(e);
  for (Expr c : usual_children(e)) {
    const bool repeats = c->pattern == Pattern::function && e->pattern != Pattern::let;
    sum = saturated_sum(sum, saturated_product(tree_operations(c, known), repeats ? applications(e) : 1));
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
  return tree_operations(e, known);
}

bool holds_arrays(Type type) {
  return type->is_array() || (type->is_tuple() && std::any_of(type->parts.begin(), type->parts.end(), holds_arrays));
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
