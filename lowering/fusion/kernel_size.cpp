#include "lowering/fusion/kernel_size.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>

#include "ir/properties/properties.h"

namespace hoist {
namespace {

constexpr double most_counted = 1e12;
constexpr int64_t whole = -1;

/// The nodes of a term, and the number of uses of each enclosing bound variable or of one of its components.
struct WrittenOut {
  double nodes = 0;
  bool folds = false;
  std::map<std::pair<int64_t, int64_t>, double> uses;  // number of uses by position and component

  void add(const WrittenOut& other, double times = 1) {
    nodes = std::min(most_counted, nodes + times * other.nodes);
    folds |= other.folds;
    for (const auto& [use, count] : other.uses) {
      double& here = uses[use];
      here = std::min(most_counted, here + times * count);
    }
  }
};

class Counter {
 public:
  Counter(const std::string& name, double each) : name_(name), each_(each) {}

  const WrittenOut& of(Expr e) {
    if (const auto found = known_.find(e); found != known_.end()) return found->second;
    WrittenOut out;
    switch (e->pattern) {
      case Pattern::bound:
        out.uses[{e->integers[0], whole}] = 1;
        break;
      case Pattern::parameter:
        out.nodes = e->name == name_ ? each_ : 1;
        break;
      case Pattern::let:
        out = with_argument(e->children[1], e->children[0]);
        break;
      case Pattern::get:
        if (e->children[0]->pattern == Pattern::bound)
          out.uses[{e->children[0]->integers[0], e->integers[0]}] = 1;
        else
          out = of(e->children[0]);
        break;
      case Pattern::map:
      case Pattern::fold:
      case Pattern::reduce:
      case Pattern::scan:
        out = with_argument(e->children[0], e->children.back());
        for (size_t i = 1; i + 1 < e->children.size(); ++i) out.add(of(e->children[i]));
        out.nodes += 1;
        out.folds |= is_fold(e);
        break;
      default:
        out.nodes = 1;
        for (const Expr child : e->children)
          out.add(child->pattern == Pattern::function && child != e->children.back()
                      ? with_argument(child, e->children.back())
                      : of(child));
    }
    return known_.emplace(e, std::move(out)).first->second;
  }

 private:
  // The function's body with its last parameter expanded.
  WrittenOut with_argument(Expr function, Expr argument) {
    const WrittenOut& body = of(function->children[0]);
    const auto own = static_cast<int64_t>(function->parameters.size());
    WrittenOut out;
    out.nodes = body.nodes;
    out.folds = body.folds;
    for (const auto& [use, count] : body.uses) {
      const auto [position, component] = use;
      if (position >= own) {
        out.uses[{position - own, component}] += count;
      } else if (position == 0) {
        const bool apart =
            component != whole && (argument->pattern == Pattern::zip || argument->pattern == Pattern::tuple);
        const WrittenOut& part = of(apart ? argument->children[static_cast<size_t>(component)] : argument);
        out.add(part, part.folds ? 1 : count);
      }
    }
    return out;
  }

  const std::string& name_;
  double each_;
  std::unordered_map<Expr, WrittenOut> known_;
};

// Regroupings of dimensions between a value and the elements that it reads: their number, and whether the last
// collapsed dimensions are still unsplit. `splits` is true if a split comes first. A border or a join nests the
// position.
struct Regrouped {
  int64_t times = 0, nestings = 0;
  bool collapsed = false, splits = false;
};

class Regroupings {
 public:
  Regrouped of(Expr e) {
    if (const auto found = known_.find(e); found != known_.end()) return found->second;
    Regrouped out;
    const bool applies = !e->children.empty() && e->children[0]->pattern == Pattern::function;
    if (applies && e->pattern != Pattern::let) {
      // Function bodies receive elements of the regrouped array.
      const Regrouped array = of(e->children.back()), body = of(e->children[0]->children[0]);
      out.times = array.times + body.times + (array.collapsed && body.splits ? 1 : 0);
      out.nestings = array.nestings + body.nestings;
      out.collapsed = body.collapsed || (array.collapsed && !body.splits);
      out.splits = array.splits || body.splits;
    } else {
      for (Expr child : e->children) {
        const Regrouped inner = of(child->pattern == Pattern::function ? child->children[0] : child);
        out.times = std::max(out.times, inner.times);
        out.nestings = std::max(out.nestings, inner.nestings);
        out.collapsed |= inner.collapsed;
        out.splits |= inner.splits;
      }
    }
    if (e->pattern == Pattern::pad || e->pattern == Pattern::join) ++out.nestings;
    if (e->pattern == Pattern::join) out.collapsed = true;
    if (e->pattern == Pattern::split) {
      out.times += out.collapsed ? 1 : 0;
      out.collapsed = false, out.splits = true;
    }
    return known_[e] = out;
  }

 private:
  std::unordered_map<Expr, Regrouped> known_;
};

}  // namespace

size_t own_nodes(Expr e) {
  constexpr size_t nodes_of_polynomial = 32;
  if (e->pattern != Pattern::call || e->function == Function::divide || e->function == Function::sqrt) return 1;
  return row(e->function).ulp > 0 ? nodes_of_polynomial : 1;
}

PositionDepth position_depth(Expr term) {
  const Regrouped found = Regroupings().of(term);
  return {found.times, found.nestings};
}

double written_out_nodes(Expr term, const std::string& name, double each) { return Counter(name, each).of(term).nodes; }

}  // namespace hoist
