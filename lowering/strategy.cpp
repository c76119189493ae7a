#include "lowering/strategy.h"

#include <algorithm>
#include <optional>

#include "ir/properties.h"
#include "lowering/grouping.h"
#include "lowering/rules.h"
#include "lowering/statements.h"

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
void lower_folds(Rewriter& r, bool strict, bool interleaved) {
  if (!strict) r.apply_everywhere({"channels-inside-3d", "channels-inside-2d", "channels-inside-1d"});
  r.apply_everywhere({"reduce-map-fusion-to-fold"});
  r.apply_everywhere({"fold-joined-pairs"});
  r.apply_everywhere({"reduce-to-fold"});
  if (interleaved) r.apply_everywhere({"fold-dot"}, {}, 1);
  if (!strict) r.apply_everywhere({"multiply-add-to-fma"});
}

// The same where a rule that opens a loop has just been applied.
Path opened(Expr root, const Path& place) {
  auto body = opened_body(root, place);
  HOIST_CHECK(body.has_value(), "a rule that opens a loop has opened none");
  return *body;
}

void apply_rule(Rewriter& r, const std::string& rule, const Path& place, const RuleArguments& arguments = {}) {
  bool applied = r.apply(rule, place, arguments);
  HOIST_CHECK(applied, "the rule " + rule + " has to apply at " + text(place) + ": " +
                           why_not(*lowering_rules().find(rule), at(r.term(), place), arguments));
}

Path open(Rewriter& r, const std::string& rule, const Path& place, const RuleArguments& arguments = {}) {
  apply_rule(r, rule, place, arguments);
  return opened(r.term(), place);
}

// ---- CPUs: a work-item a group, vectors and register tiles

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

// Loops over the outermost dimensions that the mappings have no rule for, until `rank` are left.
Path open_outermost(Rewriter& r, Path place, int rank) {
  while (rank_at(r.term(), place) > rank) place = open(r, "open-seq", place);
  return place;
}

// All dimensions but the last `keep` become one dimension of work-groups.
Path open_leading(Rewriter& r, Path place, int keep, int dimension) {
  static const char* const rules[] = {"open-group", "open-joined-group", "open-joined-3-group", "open-joined-4-group"};
  place = open_outermost(r, place, keep + static_cast<int>(std::size(rules)));
  int leading = rank_at(r.term(), place) - keep;
  if (leading <= 0) return place;
  return open(r, rules[leading - 1], place, {{"d", dimension}});
}

void map_folding_nest(Rewriter& r, Path place, const Tile& tile) {
  if (tile.channels_last) {
    static const char* const rules[] = {"open-channels-last-1d", "open-channels-last-2d-group",
                                        "open-channels-last-3d-group"};
    place = open(r, rules[rank_at(r.term(), place) - 3], place, {{"d", 1}});
  } else {
    place = open_leading(r, place, 2, 1);
  }
  if (rank_at(r.term(), place) == 2) {
    place = open(r, "open-tiles", place, {{"R", tile.rows}, {"C", tile.columns}});
    place = opened(r.term(), place);  // the second of the two group loops
    if (tile.channels_last && tile.width > 1) {
      open(r, "open-transposed-tile", place, {{"k", tile.width}});
      return;
    }
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

// ---- GPUs: work-items side by side, neighbours at neighbouring elements

// A work-item for every element.
void map_elements_to_items(Rewriter& r, Path place) {
  static const char* const rules[] = {"open-global",          "open-joined-global",   "open-joined-3-global",
                                      "open-joined-4-global", "open-joined-5-global", "open-joined-6-global"};
  place = open_outermost(r, place, static_cast<int>(std::size(rules)));
  open(r, rules[rank_at(r.term(), place) - 1], place, {{"d", 0}});
}

// The innermost fold over pairs of numbers, where the operands of a product meet; empty if there is none.
std::optional<Path> innermost_product(Expr e, const Path& here) {
  for (size_t i = 0; i < e->children.size(); ++i) {
    if (auto found = innermost_product(e->children[i], then(here, {static_cast<int>(i)}))) return found;
  }
  if (e->pattern != Pattern::fold || e->children[2]->pattern != Pattern::zip) return std::nullopt;
  Type element = e->children[2]->type->element;
  bool scalars = std::all_of(element->parts.begin(), element->parts.end(), [](Type t) { return t->is_scalar(); });
  return scalars ? std::optional(here) : std::nullopt;
}

// A product: a work-group computes a tile, its work-items keep theirs in registers and share operands.
void map_product_to_groups(Rewriter& r, Path place, const Tile& tile) {
  if (tile.depth > 0) {
    if (auto product = innermost_product(r.term(), {})) r.apply("fold-blocks", *product, {{"k", tile.depth}});
  }
  if (tile.channels_last) {
    static const char* const rules[] = {"open-channels-last-1d", "open-channels-last-2d", "open-channels-last-3d"};
    place = open(r, rules[tile.rows_joined], place, {{"d", 1}});
  } else {
    place = open_leading(r, place, 2 + static_cast<int>(tile.rows_joined), 1);
  }
  static const char* const rules[] = {"open-tiles", "open-joined-row-tiles", "open-joined-3-row-tiles"};
  place = open(r, rules[tile.rows_joined], place, {{"R", tile.rows}, {"C", tile.columns}});
  place = opened(r.term(), place);  // the second of the two group loops
  if (tile.width > 1) {
    open(r, "open-work-items", place, {{"p", tile.item_rows}, {"q", tile.items_across}, {"k", tile.width}});
  } else {
    open(r, "open-work-item-scalars", place, {{"p", tile.item_rows}, {"q", tile.items_across}});
  }
}

// A work-group a row, its elements among the work-items.
void map_rows_to_groups(Rewriter& r, Path place, const Profile& profile) {
  if (rank_at(r.term(), place) == 1)
    place = open(r, "open-column-tiles", place, {{"C", extent(r.term(), place, 0)}, {"c", 0}});
  else
    place = open_leading(r, place, 1, 0);
  int64_t columns = extent(r.term(), place, 0), items = std::min({columns, profile.maximum_group, int64_t{256}});
  open(r, "open-local", place, {{"q", items}});
}

// ---- Several statements: the work-items of one group share out each of them in turn

// A CPU runs a group on one core, item after item: more than one only cuts the kernel into pieces between barriers,
// across which drivers keep every item's registers in memory.
int64_t items_of_group(const Profile& profile) {
  return profile.gpu ? std::min<int64_t>(profile.maximum_group, 256) : 1;
}

// So many work-items that none has more pieces than it must.
int64_t sharers(int64_t pieces, int64_t items) {
  const int64_t each = (pieces + items - 1) / items;
  return (pieces + each - 1) / each;
}

// Every element is a work-item's, or where a row's elements share a fold, every row if there are enough of them.
void share_elements(Rewriter& r, Path place, int64_t items, const Profile& profile) {
  if (shares_folds(at(r.term(), place)) && rank_at(r.term(), place) > 1) {
    place = open_outermost(r, place, 2);
    const int64_t rows = extent(r.term(), place, 0);
    if (rows >= items) {
      place = open(r, "open-local", place, {{"q", sharers(rows, items)}});
      place = opened(r.term(), place);  // the work-items inside of the loop
      open_columns(r, place, profile.vector_width);
      return;
    }
    place = open(r, "open-seq", place);
  }
  static const char* const rules[] = {"open-local", "open-joined-local", "open-joined-3-local", "open-joined-4-local"};
  place = open_outermost(r, place, static_cast<int>(std::size(rules)));
  int64_t elements = 1;
  for (int i = 0; i < rank_at(r.term(), place); ++i) elements *= extent(r.term(), place, i);
  open(r, rules[rank_at(r.term(), place) - 1], place, {{"q", sharers(elements, items)}});
}

// Every register tile is a work-item's: they share out bands of rows, or what stands side by side where that is more.
void share_tiles(Rewriter& r, Path place, const Tile& tile, int64_t items) {
  place = open_outermost(r, place, 2);
  if (rank_at(r.term(), place) == 1) {
    const int64_t columns = extent(r.term(), place, 0);
    place = open(r, "open-local-vectors", place,
                 {{"C", tile.columns}, {"q", sharers((columns + tile.columns - 1) / tile.columns, items)}});
    place = opened(r.term(), place);
  } else {
    const int64_t bands = (extent(r.term(), place, 0) + tile.rows - 1) / tile.rows;
    const int64_t across = (extent(r.term(), place, 1) + tile.columns - 1) / tile.columns;
    const bool rows = bands >= across;
    place = open(r, rows ? "open-local-bands" : "open-local-tiles", place,
                 {{"R", tile.rows}, {"C", tile.columns}, {"q", sharers(rows ? bands : across, items)}});
    place = opened(r.term(), place);  // the second of three loops
    place = opened(r.term(), place);
    place = open(r, "open-unroll", place);
  }
  open_tile_columns(r, place, tile.width);
}

void map_statements(Rewriter& r, const StrategyInput& input, const Profile& profile) {
  const int64_t items = items_of_group(profile);
  for (size_t i = 0; i <= input.kept.size(); ++i) {
    const bool last = i == input.kept.size();
    const Path place = last ? input.inside : statement_place(i, input.kept.size());
    if (rank_at(r.term(), place) == 0) continue;
    if (profile.gpu || shares_folds(at(r.term(), place)))
      share_elements(r, place, items, profile);
    else
      share_tiles(r, place, last ? input.tile : input.kept[i], items);
  }
}

void map_to_gpu(Rewriter& r, const StrategyInput& input, const Profile& profile) {
  bool product = input.folds && input.tile.items_across > 1 && rank_at(r.term(), input.inside) >= 2;
  if (shares_folds(r.term()))
    map_rows_to_groups(r, input.inside, profile);
  else if (product)
    map_product_to_groups(r, input.inside, input.tile);
  else
    map_elements_to_items(r, input.inside);
}

void map_to_cpu(Rewriter& r, const StrategyInput& input, const Profile& profile) {
  if (shares_folds(r.term()))
    map_row_nest(r, input.inside, profile);
  else if (input.folds || input.tile.channels_last)
    map_folding_nest(r, input.inside, input.tile);
  else
    map_plain_nest(r, input.inside, profile);
}

}  // namespace

std::optional<Path> opened_body(Expr root, Path place) {
  for (;;) {
    Expr e = at(root, place);
    if (e == nullptr) return std::nullopt;
    if (e->pattern == Pattern::map && e->mode != Mode::view) return then(place, {0, 0});
    if (e->children.empty()) return std::nullopt;
    // Views have their array first, maps have it last.
    place.push_back(e->pattern == Pattern::map ? 1 : 0);
  }
}

void apply_strategy(Rewriter& r, const StrategyInput& input, const Profile& profile) {
  lower_folds(r, input.strict, input.interleaved);
  if (!input.kept.empty()) return map_statements(r, input, profile);
  if (rank_at(r.term(), input.inside) == 0) return;
  if (profile.gpu)
    map_to_gpu(r, input, profile);
  else
    map_to_cpu(r, input, profile);
}

Derivation lower_to_kernel(const StrategyInput& input, const Profile& profile, Expr& low_level) {
  Rewriter r(lowering_rules(), input.term);
  apply_strategy(r, input, profile);
  low_level = r.term();
  return r.derivation();
}

}  // namespace hoist
