// Ensembles of trees of the domain ai.onnx.ml. Their attributes hold tables, which become constants; a tree is walked
// by gathers from the tables of its nodes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "ir/operators/definitions/support.h"
#include "ir/operators/families.h"
#include "ir/operators/learning/scores.h"

namespace hoist::operators {
namespace {

enum Branch : uint8_t { no_more_than, below, at_least, above, equal_to, other_than, leaf };

struct Node {
  Branch branch = leaf;
  int64_t feature = 0;
  double value = 0;
  bool missing_is_true = false;
  int64_t yes = 0, no = 0;
};

// Trees in one list of nodes, with the contribution of each leaf to each target.
struct Forest {
  std::vector<Node> nodes;
  Shape roots;
  std::map<std::pair<int64_t, int64_t>, double> weights;  // weights by node and target
  int64_t targets = 1;
  std::string aggregate = "SUM";
  Floats base;

  // The length of the longest path. Links that lead out of the list or form a cycle are errors.
  Result<int64_t> depth() const {
    std::vector<int64_t> known(nodes.size(), -1);  // -2 while the subtree is visited
    for (int64_t root : roots) {
      std::vector<int64_t> open = {root};
      while (!open.empty()) {
        const int64_t at = open.back();
        if (at < 0 || at >= std::ssize(nodes))
          return fault(fmt::format("a branch leads to node {} of {}", at, nodes.size()));
        const Node& node = nodes[static_cast<size_t>(at)];
        int64_t& own = known[static_cast<size_t>(at)];
        if (node.branch == leaf) own = 0;
        if (own >= 0) {
          open.pop_back();
          continue;
        }
        const bool second = own == -2;
        int64_t below_it = 0;
        bool ready = true;
        for (int64_t next : {node.yes, node.no}) {
          if (next < 0 || next >= std::ssize(nodes))
            return fault(fmt::format("a branch leads to node {} of {}", next, nodes.size()));
          const int64_t depth_of = known[static_cast<size_t>(next)];
          if (depth_of == -2) return fault("the branches of a tree form a cycle");
          if (depth_of < 0) ready = false, open.push_back(next);
          below_it = std::max(below_it, depth_of);
        }
        if (ready)
          own = below_it + 1, open.pop_back();
        else if (!second)
          own = -2;
        else
          return fault("the branches of a tree form a cycle");
      }
    }
    int64_t deepest = 0;
    for (int64_t root : roots) deepest = std::max(deepest, known[static_cast<size_t>(root)]);
    return deepest;
  }

  Result<Nothing> check() const {
    if (targets < 1 || std::ssize(nodes) > most_table_entries / targets || nodes.empty() || roots.empty())
      return fault(fmt::format("{} nodes of {} trees for {} targets", nodes.size(), roots.size(), targets));
    if (!base.empty() && std::ssize(base) != targets && base.size() != 1)
      return fault(fmt::format("{} base values for {} targets", base.size(), targets));
    return Nothing{};
  }
};

Expr whole_table(const Shape& list) { return constant(Tensor::of(Scalar::i32, {std::ssize(list)}, list)); }

Number holds_at(Branch branch, const Number& v, const Number& limit) {
  switch (branch) {
    case below:
      return v < limit;
    case at_least:
      return v >= limit;
    case above:
      return v > limit;
    case equal_to:
      return v == limit;
    case other_than:
      return apply(Function::not_equal, v, limit);
    default:
      return v <= limit;
  }
}

// The tables of a forest's nodes, and the function from a node to its successor.
struct Walk {
  Scalar scalar = Scalar::f32;
  Expr values = nullptr, features = nullptr, yes = nullptr, no = nullptr, kinds = nullptr, missing = nullptr;
  std::set<Branch> used;
  bool any_missing = false;

  // A leaf leads to itself.
  Expr next(Expr row, Expr node) const {
    const Number v = convert(scalar, index(index(node, features), row)), limit = index(node, values);
    Number taken = literal_integer(Scalar::boolean, 0);
    bool first = true;
    for (Branch branch : used) {
      const Number found = holds_at(branch, v, limit);
      taken = first ? found : choose(Number(index(node, kinds)) == static_cast<double>(branch), found, taken);
      first = false;
    }
    if (any_missing) taken = choose(apply(Function::is_nan, v), Number(index(node, missing)) == 1.0, taken);
    return choose(taken, index(node, yes), index(node, no)).e;
  }
};

Result<Walk> walk_of(const Forest& forest, Scalar scalar, int64_t features) {
  Walk out;
  out.scalar = scalar;
  Floats values;
  Shape feature_of, yes, no, missing, kinds;
  for (size_t i = 0; i < forest.nodes.size(); ++i) {
    const Node& node = forest.nodes[i];
    const auto own = static_cast<int64_t>(i);
    const bool ends = node.branch == leaf;
    if (!ends && (node.feature < 0 || node.feature >= features))
      return fault(fmt::format("a node tests feature {} of {}", node.feature, features));
    values.push_back(node.value);
    feature_of.push_back(ends ? 0 : node.feature);
    yes.push_back(ends ? own : node.yes);
    no.push_back(ends ? own : node.no);
    missing.push_back(node.missing_is_true);
    kinds.push_back(node.branch);
    if (!ends) out.used.insert(node.branch), out.any_missing = out.any_missing || node.missing_is_true;
  }
  out.values = table(scalar, values);
  out.features = whole_table(feature_of), out.yes = whole_table(yes), out.no = whole_table(no);
  out.kinds = whole_table(kinds), out.missing = whole_table(missing);
  return out;
}

// The contributions of leaves to a target, [trees], become one number.
class Aggregate {
 public:
  Aggregate(const Forest& forest, Scalar scalar)
      : scalar_(scalar),
        sums_(forest.aggregate == "SUM" || forest.aggregate == "AVERAGE"),
        most_(forest.aggregate == "MAX"),
        share_(forest.aggregate == "AVERAGE" ? 1 / static_cast<double>(forest.roots.size()) : 1) {}

  // The contribution of a leaf without a weight.
  double none() const {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    return sums_ ? 0 : most_ ? -infinity : infinity;
  }

  Number of(Expr given) const {
    const Number total =
        sums_ ? Number(sum(given))
              : Number(reduce(most_ ? Function::maximum : Function::minimum, literal(scalar_, none()), given));
    return share_ != 1 ? total * share_ : total;
  }

 private:
  Scalar scalar_;
  bool sums_, most_;
  double share_;
};

// [rows][features] to [rows][targets].
Result<Expr> scores_of(const Forest& forest, Expr x) {
  const Scalar scalar = computed_in(x);
  const int64_t features = extents(x)[1], targets = forest.targets;
  HOIST_TRY_VOID(forest.check());
  HOIST_TRY(const int64_t longest, forest.depth());
  HOIST_TRY(const Walk walk, walk_of(forest, scalar, features));
  const Aggregate aggregate(forest, scalar);
  Floats leaves(forest.nodes.size() * static_cast<size_t>(targets), aggregate.none());
  for (const auto& [place, weight] : forest.weights)
    leaves[static_cast<size_t>(place.first * targets + place.second)] = weight;
  const Expr leaf_table = reshape(table(scalar, leaves), {std::ssize(forest.nodes), targets});
  const Expr root_table = whole_table(forest.roots);
  const Floats& base = forest.base;
  const Expr added = table(scalar, base.empty()       ? Floats(static_cast<size_t>(targets), 0)
                                   : base.size() == 1 ? Floats(static_cast<size_t>(targets), base[0])
                                                      : base);
  return map(
      [&](Expr row) {
        Expr ends = map(
            [&](Expr root) {
              if (longest == 0) return root;
              // A loop, so that the kernel stays small however deep the trees are.
              return fold([&](Expr node, Expr) { return walk.next(row, node); }, root, iota(longest, Scalar::i32));
            },
            root_table);
        return map_zip({iota(targets, Scalar::i32), added}, [&](const std::vector<Expr>& p) {
          const Expr given = map([&](Expr end) { return index(p[0], index(end, leaf_table)); }, ends);
          return (aggregate.of(given) + p[1]).e;
        });
      },
      x);
}

// The nodes of versions before 5, by tree and node number; `kind` is "target" or "class".
Result<Forest> forest_of(const OperatorContext& c, const std::string& kind) {
  Forest forest;
  HOIST_TRY(Shape trees, integers_attribute(c, "nodes_treeids", {}));
  HOIST_TRY(Shape numbers, integers_attribute(c, "nodes_nodeids", {}));
  HOIST_TRY(Shape features, integers_attribute(c, "nodes_featureids", {}));
  HOIST_TRY(Shape yes, integers_attribute(c, "nodes_truenodeids", {}));
  HOIST_TRY(Shape no, integers_attribute(c, "nodes_falsenodeids", {}));
  HOIST_TRY(Shape missing, integers_attribute(c, "nodes_missing_value_tracks_true", {}));
  HOIST_TRY(Floats values, floats_attribute(c, "nodes_values"));
  HOIST_TRY(auto modes, strings_attribute(c, "nodes_modes"));
  HOIST_TRY(forest.base, floats_attribute(c, "base_values"));
  const size_t n = modes.size();
  for (size_t size : {trees.size(), numbers.size(), features.size(), yes.size(), no.size(), values.size()}) {
    if (size != n)
      return fault(
          fmt::format("the lists of nodes differ in length: {} modes, {} entries of another attribute", n, size));
  }
  if (!missing.empty() && missing.size() != n)
    return fault(fmt::format("{} missing_value_tracks_true for {} nodes", missing.size(), n));
  std::map<std::pair<int64_t, int64_t>, int64_t> places;
  for (size_t i = 0; i < n; ++i) {
    if (!places.emplace(std::pair(trees[i], numbers[i]), static_cast<int64_t>(i)).second)
      return fault(fmt::format("node {} of tree {} appears twice", numbers[i], trees[i]));
  }
  constexpr std::array<std::string_view, 7> names = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                                     "BRANCH_EQ",  "BRANCH_NEQ", "LEAF"};
  std::set<int64_t> begun;
  for (size_t i = 0; i < n; ++i) {
    const auto name = std::find(names.begin(), names.end(), modes[i]);
    if (name == names.end()) return fault(fmt::format("a node has the mode {}", modes[i]));
    Node node{static_cast<Branch>(name - names.begin()), features[i], values[i], !missing.empty() && missing[i] != 0};
    for (auto [to, number] : {std::pair(&node.yes, yes[i]), std::pair(&node.no, no[i])}) {
      if (node.branch == leaf) continue;
      auto found = places.find({trees[i], number});
      if (found == places.end()) return fault(fmt::format("tree {} has no node {}", trees[i], number));
      *to = found->second;
    }
    forest.nodes.push_back(node);
    if (begun.insert(trees[i]).second) forest.roots.push_back(static_cast<int64_t>(i));
  }
  HOIST_TRY(Shape leaf_trees, integers_attribute(c, kind + "_treeids", {}));
  HOIST_TRY(Shape leaf_numbers, integers_attribute(c, kind + "_nodeids", {}));
  HOIST_TRY(Shape ids, integers_attribute(c, kind + "_ids", {}));
  HOIST_TRY(Floats weights, floats_attribute(c, kind + "_weights"));
  if (leaf_numbers.size() != leaf_trees.size() || ids.size() != leaf_trees.size() ||
      weights.size() != leaf_trees.size())
    return fault(fmt::format("{} tree numbers and {} node numbers for {} weights", leaf_trees.size(),
                             leaf_numbers.size(), weights.size()));
  for (size_t i = 0; i < ids.size(); ++i) {
    auto found = places.find({leaf_trees[i], leaf_numbers[i]});
    if (found == places.end()) return fault(fmt::format("tree {} has no node {}", leaf_trees[i], leaf_numbers[i]));
    if (ids[i] < 0 || ids[i] > INT32_MAX) return fault(fmt::format("a weight is for {} {}", kind, ids[i]));
    auto [place, fresh] = forest.weights.emplace(std::pair(found->second, ids[i]), weights[i]);
    if (!fresh) place->second += weights[i];
  }
  return forest;
}

Result<Nothing> check_targets(const Forest& forest) {
  for (const auto& [place, weight] : forest.weights) {
    if (place.second >= forest.targets)
      return fault(fmt::format("a weight is for target {} of {}", place.second, forest.targets));
  }
  return Nothing{};
}

Lowered lower_tree_regressor(const OperatorContext& c) {
  HOIST_TRY(Expr x, feature_rows(c.inputs[0]));
  HOIST_TRY(Forest forest, forest_of(c, "target"));
  HOIST_TRY(forest.targets, integer_attribute(c, "n_targets", 1));
  HOIST_TRY(forest.aggregate, choice_attribute(c, "aggregate_function", "SUM", {"SUM", "AVERAGE", "MIN", "MAX"}));
  HOIST_TRY(std::string transform, transform_attribute(c));
  HOIST_TRY_VOID(check_targets(forest));
  HOIST_TRY(Expr scores, scores_of(forest, x));
  return one(finished(transform, scores));
}

// How two classes share the score of the leaves, as in onnxruntime, since the standard leaves it open. If leaves name
// only the first class, their sum is the score of the second class, a share of 1 if no weight is negative. A single
// base value belongs to the first class.
struct TwoClasses {
  bool one_score = false;  ///< leaves name the first class alone
  bool of_second = false;  ///< leaves name the second class alone, and there are no base values
  bool shares = true;      ///< no weight is negative

  // The score above which the second class is chosen: a probability of 1/2.
  double threshold(const std::string& transform) const { return shares && transform != "LOGISTIC" ? 0.5 : 0; }
};

TwoClasses two_classes(Forest& forest) {
  std::set<int64_t> named;
  TwoClasses out;
  for (const auto& [place, weight] : forest.weights) {
    named.insert(place.second);
    out.shares = out.shares && weight >= 0;
  }
  out.one_score = named == std::set<int64_t>{0};
  if (out.one_score) {
    forest.targets = 1;
    if (forest.base.size() == 2) forest.base.pop_back();
  } else if (forest.base.size() == 1) {
    forest.base = named.count(0) != 0 ? Floats{forest.base[0], 0} : Floats{};
  }
  out.of_second = named == std::set<int64_t>{1} && forest.base.empty();
  return out;
}

Lowered lower_tree_classifier(const OperatorContext& c) {
  HOIST_TRY(Expr x, feature_rows(c.inputs[0]));
  HOIST_TRY(Forest forest, forest_of(c, "class"));
  HOIST_TRY(const Tensor labels, labels_of(c, "classlabels_int64s"));
  HOIST_TRY(std::string transform, transform_attribute(c));
  forest.targets = labels.size();
  HOIST_TRY_VOID(check_targets(forest));
  const TwoClasses two = labels.size() == 2 ? two_classes(forest) : TwoClasses{};
  HOIST_TRY(Expr scores, scores_of(forest, x));
  // Materialised: the transformation of a row reads each score several times, and trees should be walked once.
  scores = in_memory(scores);
  const Expr chosen = map(
      [&](Expr row) {
        if (!two.one_score && !two.of_second) return label_at(place_of_largest(row), labels);
        const Number second = Number(at_position(two.one_score ? 0 : 1, row)) > two.threshold(transform);
        return label_at(cast(Scalar::i64, second.e), labels);
      },
      scores);
  const Expr result = map(
      [&](Expr row) {
        if (!two.one_score) return transformed(transform, row);
        const Number score = at_position(0, row);
        return scores_of_two(transform, two.shares ? 1.0 - score : -score, score);
      },
      scores);
  const auto as_float = [](Expr v) { return convert(Scalar::f32, v); };
  return std::vector<Expr>{chosen, map_at(2, as_float, result)};
}

// The lists of the attributes of version 5: separate lists of nodes and leaves, and sets of values.
struct TreeLists {
  Shape features, yes, no, yes_is_leaf, no_is_leaf, missing, roots, leaf_targets;
  Floats splits, modes, leaf_weights, members;
};

Result<TreeLists> tree_lists(const OperatorContext& c) {
  TreeLists l;
  HOIST_TRY(l.features, integers_attribute(c, "nodes_featureids", {}));
  HOIST_TRY(l.yes, integers_attribute(c, "nodes_truenodeids", {}));
  HOIST_TRY(l.no, integers_attribute(c, "nodes_falsenodeids", {}));
  HOIST_TRY(l.yes_is_leaf, integers_attribute(c, "nodes_trueleafs", {}));
  HOIST_TRY(l.no_is_leaf, integers_attribute(c, "nodes_falseleafs", {}));
  HOIST_TRY(l.missing, integers_attribute(c, "nodes_missing_value_tracks_true", {}));
  HOIST_TRY(l.roots, integers_attribute(c, "tree_roots", {}));
  HOIST_TRY(l.leaf_targets, integers_attribute(c, "leaf_targetids", {}));
  HOIST_TRY(l.splits, floats_attribute(c, "nodes_splits"));
  HOIST_TRY(l.modes, floats_attribute(c, "nodes_modes"));
  HOIST_TRY(l.leaf_weights, floats_attribute(c, "leaf_weights"));
  HOIST_TRY(l.members, floats_attribute(c, "membership_values"));
  const size_t n = l.features.size();
  for (size_t size :
       {l.yes.size(), l.no.size(), l.yes_is_leaf.size(), l.no_is_leaf.size(), l.splits.size(), l.modes.size()}) {
    if (size != n)
      return fault(
          fmt::format("the lists of nodes differ in length: {} features, {} entries of another attribute", n, size));
  }
  if (!l.missing.empty() && l.missing.size() != n)
    return fault(fmt::format("{} missing_value_tracks_true for {} nodes", l.missing.size(), n));
  if (l.leaf_targets.size() != l.leaf_weights.size())
    return fault(fmt::format("{} targets and {} weights of leaves", l.leaf_targets.size(), l.leaf_weights.size()));
  return l;
}

// Version 5: each value of a set becomes a comparison.
Lowered lower_tree_ensemble(const OperatorContext& c) {
  HOIST_TRY(Expr x, feature_rows(c.inputs[0]));
  HOIST_TRY(const TreeLists lists, tree_lists(c));
  const auto& [features, yes, no, yes_is_leaf, no_is_leaf, missing, roots, leaf_targets, splits, modes, leaf_weights,
               members] = lists;
  const size_t n = features.size();
  Forest forest;
  HOIST_TRY(forest.targets, integer_attribute(c, "n_targets", 1));
  HOIST_TRY(int64_t aggregate, integer_attribute(c, "aggregate_function", 1));
  HOIST_TRY(int64_t transform, integer_attribute(c, "post_transform", 0));
  constexpr std::array<std::string_view, 4> aggregates = {"AVERAGE", "SUM", "MIN", "MAX"};
  constexpr std::array<std::string_view, 5> transforms = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  if (aggregate < 0 || aggregate >= std::ssize(aggregates) || transform < 0 || transform >= std::ssize(transforms))
    return fault(fmt::format("aggregate_function is {}, post_transform {}", aggregate, transform));
  forest.aggregate = aggregates[static_cast<size_t>(aggregate)];
  // Nodes first, then leaves, then the further values of sets.
  const auto place_of = [&](int64_t number, int64_t is_leaf) {
    return is_leaf != 0 ? number + static_cast<int64_t>(n) : number;
  };
  for (size_t i = 0; i < n; ++i) {
    Node node{no_more_than,
              features[i],
              splits[i],
              !missing.empty() && missing[i] != 0,
              place_of(yes[i], yes_is_leaf[i]),
              place_of(no[i], no_is_leaf[i])};
    const auto mode = static_cast<int64_t>(modes[i]);
    if (mode < 0 || mode > 6) return fault(fmt::format("a node has the mode {}", mode));
    node.branch = mode == 6 ? equal_to : static_cast<Branch>(mode);
    for (auto [number, is_leaf] : {std::pair(yes[i], yes_is_leaf[i]), std::pair(no[i], no_is_leaf[i])}) {
      const int64_t most = is_leaf != 0 ? std::ssize(leaf_weights) : static_cast<int64_t>(n);
      if (number < 0 || number >= most) return fault(fmt::format("a branch leads to {} of {}", number, most));
    }
    forest.nodes.push_back(node);
  }
  for (size_t i = 0; i < leaf_weights.size(); ++i) {
    if (leaf_targets[i] < 0) return fault(fmt::format("a leaf is for target {}", leaf_targets[i]));
    forest.weights[{static_cast<int64_t>(n + i), leaf_targets[i]}] = leaf_weights[i];
    forest.nodes.push_back({});
  }
  // Sets are in the order in which the trees are walked, the true branch first, each followed by a NaN.
  size_t next_member = 0;
  std::vector<bool> seen(n, false);
  const std::vector<Node> nodes = forest.nodes;
  for (int64_t root : roots) {
    if (root < 0 || root >= static_cast<int64_t>(n))
      return fault(fmt::format("a tree begins at node {} of {}", root, n));
    const auto at_root = static_cast<size_t>(root);
    // A tree with a single leaf is encoded as a node whose two branches lead to the same leaf.
    const bool single = yes_is_leaf[at_root] != 0 && no_is_leaf[at_root] != 0 && yes[at_root] == no[at_root];
    forest.roots.push_back(single ? place_of(yes[at_root], 1) : root);
    if (single) continue;
    for (Shape open = {root}; !open.empty();) {
      const int64_t at = open.back();
      open.pop_back();
      if (at >= static_cast<int64_t>(n)) continue;
      const auto i = static_cast<size_t>(at);
      if (seen[i]) return fault(fmt::format("two branches lead to node {}", at));
      seen[i] = true;
      open.push_back(nodes[i].no), open.push_back(nodes[i].yes);
      if (static_cast<int64_t>(modes[i]) != 6) continue;
      Floats set;
      while (next_member < members.size() && !std::isnan(members[next_member])) set.push_back(members[next_member++]);
      if (next_member++ >= members.size()) return fault("membership_values end before the sets of all nodes");
      if (set.empty()) set.push_back(std::numeric_limits<double>::quiet_NaN());
      size_t last = i;
      for (size_t k = 0; k < set.size(); ++k) {
        if (k > 0) {
          forest.nodes.push_back(nodes[i]);
          forest.nodes[last].no = std::ssize(forest.nodes) - 1;
          last = forest.nodes.size() - 1;
        }
        forest.nodes[last].value = set[k];
      }
    }
  }
  HOIST_TRY_VOID(check_targets(forest));
  HOIST_TRY(Expr scores, scores_of(forest, x));
  return one(finished(std::string(transforms[static_cast<size_t>(transform)]), scores, element_of(x)));
}

// clang-format off
constexpr auto tree_rows = std::to_array<OperatorRow>({
  {"ai.onnx.ml", "TreeEnsembleRegressor", 1, 1, 1, Takes::numbers, lower_tree_regressor,
   "the contributions of the leaves that each row reaches; in C++, since the trees are attributes"},
  {"ai.onnx.ml", "TreeEnsembleClassifier", 1, 1, 1, Takes::numbers, lower_tree_classifier,
   "scores of classes by trees and the class with the largest score; in C++, since the trees are attributes"},
  {"ai.onnx.ml", "TreeEnsemble", 5, 1, 1, Takes::floats, lower_tree_ensemble,
   "the contributions of the leaves that each row reaches; in C++, since the trees are attributes"},
});
// clang-format on

}  // namespace

std::span<const OperatorRow> tree_operators() { return tree_rows; }

}  // namespace hoist::operators
