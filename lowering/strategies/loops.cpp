#include "lowering/strategies/loops.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

#include "ir/properties/properties.h"
#include "lowering/rules/rules.h"

namespace hoist::loops {

int64_t extent(Expr root, const Path& path, int dimension) {
  Type t = at(root, path)->type;
  for (int i = 0; i < dimension; ++i) t = t->element;
  return t->size.value();
}

int rank_at(Expr root, const Path& path) { return static_cast<int>(sizes_of(at(root, path)->type).size()); }

Path opened(Expr root, const Path& place) {
  auto body = opened_body(root, place);
  HOIST_CHECK(body.has_value(), "a rule that opens a loop has opened none");
  return *body;
}

Path open(Rewriter& r, const std::string& rule, const Path& place, const RuleArguments& arguments) {
  const bool applied = r.apply(rule, place, arguments);
  HOIST_CHECK(applied, "the rule " + rule + " has to apply at " + text(place) + ": " +
                           why_not(*lowering_rules().find(rule), at(r.term(), place), arguments));
  return opened(r.term(), place);
}

namespace {

// The first place below `here` that holds the term; `without`: terms that are known not to contain it.
std::optional<Path> place_of(Expr wanted, Expr e, Path& here, std::set<Expr>& without) {
  if (e == wanted) return here;
  if (without.count(e) != 0) return std::nullopt;
  for (size_t i = 0; i < e->children.size(); ++i) {
    here.push_back(static_cast<int>(i));
    if (auto found = place_of(wanted, e->children[i], here, without)) return found;
    here.pop_back();
  }
  without.insert(e);
  return std::nullopt;
}

void apply_wherever(Rewriter& r, const std::string& rule, Expr wanted, const RuleArguments& arguments) {
  constexpr int most_places = 63;
  for (int i = 0; i < most_places; ++i) {
    Path here;
    std::set<Expr> without;
    const auto place = place_of(wanted, r.term(), here, without);
    if (!place || !r.apply(rule, *place, arguments)) return;
  }
}

}  // namespace

bool apply_to_all(Rewriter& r, const std::string& rule, const Path& place, const RuleArguments& arguments) {
  const Expr wanted = at(r.term(), place);
  if (!r.apply(rule, place, arguments)) return false;
  apply_wherever(r, rule, wanted, arguments);
  return true;
}

bool apply_to_all_of_first(Rewriter& r, const std::string& rule, const RuleArguments& arguments) {
  const Expr before = r.term();
  const auto place = r.apply_first(rule, arguments);
  if (!place) return false;
  apply_wherever(r, rule, at(before, *place), arguments);
  return true;
}

void open_tile_columns(Rewriter& r, const Path& place, int64_t width) {
  if (width > 1)
    open(r, "open-vectors", place, {{"k", width}});
  else
    open(r, "open-unroll", place);
}

int64_t lanes_of(int64_t n, int64_t width) {
  if (n >= width) return width;
  int64_t k = width;
  while (n % k != 0) k /= 2;
  return k;
}

int64_t lanes_of_columns(int64_t n, int64_t width) {
  const int64_t dividing = lanes_of(n, width);
  if (dividing >= few_lanes) return dividing;
  int64_t back = width;
  while (back > n) back /= 2;
  return back >= few_lanes ? back : dividing;
}

void open_columns(Rewriter& r, const Path& place, int64_t width, const OpenExtents& open_sizes) {
  const int64_t n = extent(r.term(), place, 0), k = lanes_of_columns(open_sizes.typical(n), width);
  if (k > 1 && open_sizes.contain(n))
    open(r, "open-padded-vectors", place, {{"k", k}});
  else if (k > 1)
    open(r, n % k == 0 ? "open-vector-loop" : "open-vector-tiles", place, {{"k", k}});
  else
    open(r, "open-seq", place);
}

Path open_outermost(Rewriter& r, Path place, int rank) {
  while (rank_at(r.term(), place) > rank) place = open(r, "open-seq", place);
  return place;
}

Path collapse_columns(Rewriter& r, Path place, int64_t times) {
  static const char* const rules[] = {"collapse-columns", "collapse-columns-3", "collapse-columns-4",
                                      "collapse-columns-5", "collapse-columns-6"};
  for (; times > 0; --times) {
    const int rank = rank_at(r.term(), place);
    const std::string rule = rules[rank - 2];
    HOIST_CHECK(r.apply(rule, place), rule + " does not apply");
    place.push_back(rank == 2 ? 0 : 1);  // split has its array first, map last
  }
  return place;
}

Path open_leading(Rewriter& r, Path place, int keep, int dimension) {
  static const char* const rules[] = {"open-group", "open-collapsed-group", "open-collapsed-3-group",
                                      "open-collapsed-4-group"};
  place = open_outermost(r, place, keep + static_cast<int>(std::size(rules)));
  int leading = rank_at(r.term(), place) - keep;
  if (leading <= 0) return place;
  return open(r, rules[leading - 1], place, {{"d", dimension}});
}

namespace {

// Latency of a fold's step in cycles, correct within a factor of two on every CPU; only its being above 1 matters.
constexpr int64_t latency = 4;

// The length of the chain of a fold over n elements with k partial results in vectors of `width`: the vectors, the
// combination of the vectors of one step, halving down to a few lanes, the lanes in sequence, and the tail.
int64_t chain(int64_t n, int64_t k, int64_t width) {
  const int64_t vectors = k / width;
  int64_t lanes = width, halves = 0;
  for (; lanes > few_lanes; lanes /= 2) ++halves;
  return n / k * std::max(latency, vectors) + latency * (vectors - 1 + halves + lanes + n % k);
}

// The number of partial results with the shortest chain; 1 if the fold is best unchanged.
int64_t partial_results(int64_t n, int64_t width) {
  int64_t best = 1, shortest = latency * n;
  for (const int64_t vectors : {1, 2, 4}) {
    const int64_t k = vectors * width;
    if (k > n || chain(n, k, width) >= shortest) continue;
    best = k;
    shortest = chain(n, k, width);
  }
  return best;
}

void collect_folds(Expr e, Path& path, std::vector<Path>& out) {
  if (e->pattern == Pattern::fold) {
    if (folds_numbers(e)) out.push_back(path);
    if (!changes_in_place(e)) return;
  }
  for (size_t i = 0; i < e->children.size(); ++i) {
    path.push_back(static_cast<int>(i));
    collect_folds(e->children[i], path, out);
    path.pop_back();
  }
}

Path below(Path place, std::initializer_list<int> steps) {
  place.insert(place.end(), steps);
  return place;
}

// Regroups the fold at the place, or its largest part that whole vectors divide; false if the order of its operator is
// fixed.
bool form_partial_results(Rewriter& r, const Path& place, int64_t k, int64_t width) {
  // Folds of computed elements, which are sums, minima or maxima, or folds of plain elements by any operator that may
  // be regrouped.
  const auto in_lanes = [&](const char* rule) { return r.apply(rule, place, {{"k", k}}); };
  if (!in_lanes("fold-lanes-float") && !in_lanes("fold-lanes-max") && !in_lanes("fold-lanes-min")) {
    if (!r.apply("fold-to-reduce", place)) return false;
    if (!r.apply("reduce-lanes-float", place, {{"k", k}})) return false;
  }
  const Path step = below(place, {2, 0, 0});  // the map over the partial results
  const auto combine = [&](int64_t lanes) {
    r.apply("reduce-strided-float", place, {{"k", lanes}});
    r.apply("reduce-to-fold", below(place, {2, 0, 0}));
    r.apply("fold-to-unroll", below(place, {2, 0, 0}));
    r.apply("map-to-vec", below(place, {2}));
    r.apply("to-private", below(place, {2}));
  };
  if (k > width) {
    r.apply("vectorise-unroll", step, {{"k", width}});
    combine(width);
  } else {
    r.apply("map-to-vec", step);
  }
  // Halving takes fewer steps than combining lanes in sequence.
  for (int64_t lanes = width / 2; lanes >= few_lanes; lanes /= 2) combine(lanes);
  return r.apply("reduce-to-fold", place) && r.apply("fold-of-materialised", place) &&
         r.apply("fold-to-unroll", below(place, {1, 0}));
}

}  // namespace

bool folds_numbers(Expr fold) {
  return fold->type->is_scalar() && fold->type->scalar != Scalar::boolean &&
         fold->children[2]->type->size.is_constant();
}

void vectorise_folds(Rewriter& r, int64_t width, const OpenExtents& open_sizes, const Path& within) {
  std::vector<Path> folds;
  Path path = within;
  collect_folds(at(r.term(), within), path, folds);
  for (const Path& place : folds) {
    const int64_t n = extent(r.term(), below(place, {2}), 0);
    int64_t lanes = width;
    while (lanes > std::max(n, few_lanes)) lanes /= 2;
    const bool is_open = open_sizes.contain(n);
    const int64_t k = is_open ? lanes : lanes > 1 ? partial_results(n, lanes) : 1;
    if (k == 1) continue;
    // The tail begins after the part that whole vectors divide.
    if (n % k == 0) {
      form_partial_results(r, place, k, lanes);
    } else if (r.apply("fold-split-at", place, {{"k", n - n % k}})) {
      form_partial_results(r, below(place, {1}), k, lanes);
      if (n % k <= few_lanes && !is_open) r.apply("fold-to-unroll", place);
    }
  }
}

}  // namespace hoist::loops
