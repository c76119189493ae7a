#include "lowering/strategy.h"

#include <algorithm>

#include "lowering/grouping.h"
#include "lowering/rules.h"

namespace hoist {
namespace {

Path then(Path path, std::initializer_list<int> more) {
  path.insert(path.end(), more);
  return path;
}

int64_t extent(Expr root, const Path& path, int dimension) {
  Type t = at(root, path)->type;
  for (int i = 0; i < dimension; ++i) t = t->element;
  return t->size.value();
}

int rank_at(Expr root, const Path& path) { return static_cast<int>(sizes_of(at(root, path)->type).size()); }

int64_t missing(int64_t n, int64_t k) { return (n + k - 1) / k * k - n; }

// Sums of products: the order of the sum follows how pictures are stored, products and sums fuse.
void lower_folds(Rewriter& r, bool strict) {
  if (!strict) r.apply_everywhere({"channels-inside-3d", "channels-inside-2d", "channels-inside-1d"});
  r.apply_everywhere({"reduce-map-fusion-to-fold"});
  r.apply_everywhere({"fold-joined-pairs"});
  r.apply_everywhere({"reduce-to-fold"});
  if (!strict) r.apply_everywhere({"multiply-add-to-fma"});
}

// The path of the innermost map that a rule has opened at `place`: below views, the function's body.
Path opened(Expr root, Path place) {
  for (;;) {
    Expr e = at(root, place);
    if (e->pattern == Pattern::map && e->mode != Mode::view) return then(place, {0, 0});
    HOIST_CHECK(!e->children.empty(), "a rule that opens a loop has opened none");
    // Views have their array first, maps have it last.
    place.push_back(e->pattern == Pattern::map ? 1 : 0);
  }
}

Path open(Rewriter& r, const std::string& rule, const Path& place, const RuleArguments& arguments = {}) {
  bool applied = r.apply(rule, place, arguments);
  HOIST_CHECK(applied, "the rule " + rule + " has to apply at " + text(place) + ": " +
                           why_not(*lowering_rules().find(rule), at(r.term(), place), arguments));
  return opened(r.term(), place);
}

// The columns of a register tile.
void open_tile_columns(Rewriter& r, const Path& place, int64_t width) {
  if (width > 1)
    open(r, "open-vectors", place, {{"k", width}});
  else
    open(r, "open-unroll", place);
}

// The innermost dimension of something that computes no folds.
void open_columns(Rewriter& r, const Path& place, int64_t width) {
  int64_t n = extent(r.term(), place, 0);
  int64_t k = width;
  while (k > 1 && n % k != 0) k /= 2;
  if (k > 1 && (k == width || n < width))
    open(r, "open-vector-loop", place, {{"k", k}});
  else if (width > 1 && n >= width)
    open(r, "open-vector-tiles", place, {{"k", width}});
  else
    open(r, "open-seq", place);
}

// All dimensions but the last `keep` become one dimension of work-groups.
Path open_leading(Rewriter& r, Path place, int keep, int dimension) {
  int leading = rank_at(r.term(), place) - keep;
  if (leading <= 0) return place;
  static const char* const rules[] = {"open-group",          "open-joined-group",   "open-joined-3-group",
                                      "open-joined-4-group", "open-joined-5-group", "open-joined-6-group"};
  HOIST_CHECK(leading <= 6, "lowering refuses values of more than largest_rank dimensions");
  return open(r, rules[leading - 1], place, {{"d", dimension}});
}

void map_folding_nest(Rewriter& r, Path place, const Tile& tile) {
  if (tile.channels_last) {
    static const char* const rules[] = {"open-channels-last-1d-group", "open-channels-last-2d-group",
                                        "open-channels-last-3d-group"};
    place = open(r, rules[rank_at(r.term(), place) - 3], place, {{"d", 1}});
  } else {
    place = open_leading(r, place, 2, 1);
  }
  if (rank_at(r.term(), place) == 2) {
    int64_t rows = extent(r.term(), place, 0), columns = extent(r.term(), place, 1);
    place = open(r, "open-tiles", place,
                 {{"R", tile.rows},
                  {"C", tile.columns},
                  {"r", missing(rows, tile.rows)},
                  {"c", missing(columns, tile.columns)}});
    place = opened(r.term(), place);  // the second of the two group loops
    place = open(r, "open-unroll", place);
  } else {
    int64_t columns = extent(r.term(), place, 0);
    place = open(r, "open-column-tiles", place, {{"C", tile.columns}, {"c", missing(columns, tile.columns)}});
  }
  open_tile_columns(r, place, tile.width);
}

// One work-group a row, so that what the row's elements share is computed once.
void map_row_nest(Rewriter& r, Path place, const Profile& profile) {
  if (rank_at(r.term(), place) == 1)
    place = open(r, "open-column-tiles", place, {{"C", extent(r.term(), place, 0)}, {"c", 0}});
  else
    place = open_leading(r, place, 1, 0);
  open_columns(r, place, profile.vector_width);
}

void map_plain_nest(Rewriter& r, Path place, const Profile& profile) {
  int rank = rank_at(r.term(), place);
  int64_t leading = 1;
  for (int i = 0; i + 2 < rank; ++i) leading *= extent(r.term(), place, i);
  place = open_leading(r, place, 2, 1);
  if (rank >= 2) place = leading >= 8 ? open(r, "open-seq", place) : open(r, "open-group", place, {{"d", 0}});
  open_columns(r, place, profile.vector_width);
}

}  // namespace

Derivation lower_to_kernel(const StrategyInput& input, const Profile& profile, Expr& low_level) {
  Rewriter r(lowering_rules(), input.term);
  lower_folds(r, input.strict);
  if (rank_at(r.term(), input.inside) > 0) {
    if (shares_folds(r.term()))
      map_row_nest(r, input.inside, profile);
    else if (input.folds)
      map_folding_nest(r, input.inside, input.tile);
    else
      map_plain_nest(r, input.inside, profile);
  }
  low_level = r.term();
  return r.derivation();
}

}  // namespace hoist
