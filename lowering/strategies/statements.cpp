// Several statements in one launch: the work-items of one group share each statement in turn. On CPUs the group has one
// work-item: with more, PoCL keeps each item's accumulators in memory from barrier to barrier (lower quartiles on a
// busy machine: an autoencoder of ten contractions takes 38 to 68 us with one work-item and 45 to 122 us with 2 to 16;
// four convolutions of 16x16x16 take 424 us with one and 654 us with two).
#include "lowering/terms/statements.h"

#include <algorithm>
#include <iterator>

#include "ir/properties/properties.h"
#include "lowering/strategies/loops.h"
#include "lowering/strategies/strategies.h"

namespace hoist {

using namespace loops;

namespace {

// A CPU runs a group on one core, item after item: several items only split the kernel into pieces between barriers,
// across which drivers keep every item's registers in memory.
int64_t items_of_group(const Profile& profile) {
  return profile.gpu ? std::min<int64_t>(profile.maximum_group, 256) : 1;
}

// The number of work-items with which no item gets more pieces than necessary.
int64_t sharers(int64_t pieces, int64_t items) {
  const int64_t each = (pieces + items - 1) / items;
  return (pieces + each - 1) / each;
}

// Work-items share the elements, or, if a row's elements share a fold, the rows if there are enough.
void share_elements(Rewriter& r, Path place, int64_t items, const Profile& profile, const OpenExtents& open_sizes) {
  if (shares_folds(at(r.term(), place)) && rank_at(r.term(), place) > 1) {
    place = open_outermost(r, place, 2);
    const int64_t rows = extent(r.term(), place, 0);
    if (rows >= items) {
      place = open(r, "open-local", place, {{"q", sharers(rows, items)}});
      place = opened(r.term(), place);  // the work-items inside of the loop
      open_columns(r, place, profile.vector_width, open_sizes);
      return;
    }
    place = open(r, "open-seq", place);
  }
  static const char* const rules[] = {"open-local", "open-collapsed-local", "open-collapsed-3-local",
                                      "open-collapsed-4-local"};
  place = open_outermost(r, place, static_cast<int>(std::size(rules)));
  int64_t elements = 1;
  for (int i = 0; i < rank_at(r.term(), place); ++i) elements *= extent(r.term(), place, i);
  open(r, rules[rank_at(r.term(), place) - 1], place, {{"q", sharers(elements, items)}});
}

// Work-items share the register tiles: bands of rows, or the tiles of a band if there are more of those.
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
  for (size_t i = 0; i <= input.materialised.size(); ++i) {
    const bool last = i == input.materialised.size();
    const Path place = last ? input.inside : statement_place(i, input.materialised.size());
    if (rank_at(r.term(), place) == 0) continue;
    if (profile.gpu || shares_folds(at(r.term(), place)))
      share_elements(r, place, items, profile, input.open);
    else
      share_tiles(r, place, last ? input.tile : input.materialised[i], items);
  }
}

}  // namespace

Strategy statements() {
  return {"statements",
          "one work-group computes the statements of a launch in order; its work-items share each statement",
          [](Expr, const StrategyInput& input, const Profile&) { return !input.materialised.empty(); }, map_statements};
}

}  // namespace hoist
