// Finds subterms that occur several times in a term and are printed once, in a `where`. Internal to printing.
//
// An occurrence in the term is identified by the node, the number of variables bound above it, and its owner: the
// innermost function on whose parameters it depends (or the whole term). Occurrences of one node with one owner have
// the same value, so they share one definition in the owner's body. A node gets a definition if it occurs twice and its
// text is long, so the printed size is at most a fixed multiple of the number of occurrences.
#pragma once

#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "ir/language/expression.h"

namespace hoist {

class Sharing {
 public:
  /// An enclosing function (number 0: the whole term) and the number of variables bound inside it.
  struct Step {
    int owner = 0;
    int depth = 0;
  };
  explicit Sharing(Expr root);

  /// The functions around the printer's current position, outermost first; the printer keeps the path up to date.
  const std::vector<Step>& path() const { return path_; }
  void set_path(std::vector<Step> path) { path_ = std::move(path); }
  /// Enters a function below `depth` variables.
  void enter(Expr function, int depth);
  /// The owner of a node below `depth` variables.
  int owner(Expr e, int depth) const { return owner_step(e, depth).owner; }
  /// True if this occurrence is printed as a definition of its owner.
  bool is_shared(Expr e, int depth) const;
  /// True if the node uses the free variable at this position.
  bool uses(Expr e, int64_t position) const;

  /// Node, owner, variables between the owner and the node (0 for closed nodes).
  using Key = std::tuple<Expr, int, int>;
  Key key(Expr e, int depth) const;

 private:
  struct Occurrence {
    int count = 0;
    int64_t size = 0;
    bool shared = false;
    int inside = -1;  ///< the number of a function; -1 for other terms
    std::vector<Key> children;
  };
  struct Order {  // by serial: only for look-up, never for output
    bool operator()(const Key& a, const Key& b) const {
      return std::tuple(std::get<0>(a)->serial, std::get<1>(a), std::get<2>(a)) <
             std::tuple(std::get<0>(b)->serial, std::get<1>(b), std::get<2>(b));
    }
  };
  Step owner_step(Expr e, int depth) const;
  void walk(Expr e, int depth, Occurrence* parent);
  int64_t measure(const Key& key);
  const std::vector<int64_t>& free_positions(Expr e) const;

  std::map<Key, Occurrence, Order> occurrences_;
  int owners_ = 1;
  std::vector<Step> path_ = {{0, 0}};
  mutable std::unordered_map<Expr, std::vector<int64_t>> free_;
};

}  // namespace hoist
