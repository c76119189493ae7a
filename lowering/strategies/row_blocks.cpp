// Rows that materialise arrays: a work-group computes blocks of them, one array after the other, in the cache of its
// core. Attention computes the scores of a block, then their exponentials, then the products with the values.
#include "lowering/tiling/row_blocks.h"

#include <algorithm>

#include "ir/properties/properties.h"
#include "lowering/strategies/loops.h"
#include "lowering/strategies/strategies.h"
#include "lowering/terms/terms.h"

namespace hoist {

using namespace loops;

namespace {

Path further(Path place, std::initializer_list<int> steps) {
  place.insert(place.end(), steps);
  return place;
}

// True for rows whose elements share folds: vectors compute one row after the other. Other arrays are computed in
// register tiles.
bool computed_by_rows(Expr rows) { return shares_folds(rows) || !folds(rows); }

// The number of steps of the longest fold in the term.
int64_t steps_of_folds(Expr term) {
  int64_t steps = 1;
  any_node(term, [&](Expr e) {
    if (e->pattern == Pattern::fold) steps = std::max(steps, e->children[2]->type->size.value());
    return false;
  });
  return steps;
}

// The materialised arrays and the result that are computed in register tiles.
std::vector<SumsOfBlock> sums_of_row(Expr row, const Profile& profile, const OpenExtents& open) {
  std::vector<SumsOfBlock> out;
  const auto add = [&](Expr value, int64_t columns) {
    if (!computed_by_rows(value)) out.push_back({columns, open.typical(steps_of_folds(value))});
  };
  for (; binds_materialised_row(row); row = row->children[1]->children[0])
    add(row->children[0], round_up(open.typical(row->children[0]->type->size.value()), profile.vector_width));
  add(row, open.typical(row->type->size.value()));
  return out;
}

// A block [R][C] that one work-item computes.
void map_block(Rewriter& r, Path place, const Profile& profile, const OpenExtents& open_sizes) {
  const Expr block = at(r.term(), place);
  const int64_t rows = extent(r.term(), place, 0), columns = extent(r.term(), place, 1);
  if (computed_by_rows(block)) return open_columns(r, open(r, "open-seq", place), profile.vector_width, open_sizes);
  const Tile tile = tile_of_block(rows, open_sizes.contain(columns) ? profile.vector_width : columns, profile);
  place = open(r, tile.cpu().shifted ? "open-shifted-tile-loop" : "open-tile-loop-by-columns", place,
               {{"R", tile.rows}, {"C", tile.columns}});
  place = open(r, "open-unroll", opened(r.term(), place));
  open_tile_columns(r, place, tile.width);
}

void map_row_blocks(Rewriter& r, const StrategyInput& input, const Profile& profile) {
  const RowNest nest = *row_nest(r.term(), input.inside);
  constexpr size_t group_dimensions = 2;  // besides the blocks
  for (size_t i = 0; i < nest.around.size(); ++i) {
    const size_t inside = nest.around.size() - i;  // loops from here to the blocks
    if (inside > group_dimensions)
      r.apply("map-to-seq", nest.around[i]);
    else
      r.apply("map-to-group", nest.around[i], {{"d", static_cast<int64_t>(inside)}});
  }
  const Expr row = at(r.term(), nest.rows)->children[0]->children[0];
  const int64_t rows = extent(r.term(), nest.rows, 0);
  int64_t together = rows_of_block(input.open.typical(rows), materialised_bytes(row, profile, input.open),
                                   sums_of_row(row, profile, input.open), profile);
  if (input.open.contain(rows)) together = input.open.block_rows(rows, together);
  Path place = open(r, "open-row-blocks", nest.rows, {{"R", together}});
  std::vector<Path> arrays;
  for (; r.apply("materialise-block", place); place = further(place, {1, 0})) arrays.push_back(further(place, {0}));
  for (const Path& array : arrays) {
    const int64_t columns = extent(r.term(), array, 1), missing = round_up(columns, profile.vector_width) - columns;
    Path value = array;
    if (missing > 0 && r.apply("materialise-whole-vectors", array, {{"k", missing}})) value.push_back(1);
    map_block(r, further(value, {0}), profile, input.open);
  }
  map_block(r, place, profile, input.open);
}

bool has_row_blocks(Expr term, const StrategyInput& input, const Profile& profile) {
  return !profile.gpu && input.materialised.empty() && row_nest(term, input.inside).has_value();
}

void vectorise_rows(Rewriter& r, const StrategyInput& input, const Profile& profile) {
  if (input.strict) return;
  Path place = further(row_nest(r.term(), input.inside)->rows, {0, 0});
  for (; binds_materialised_row(at(r.term(), place)); place = further(place, {1, 0}))
    vectorise_shared_folds(r, further(place, {0, 0}), profile, input.open);
  vectorise_shared_folds(r, place, profile, input.open);
}

}  // namespace

Strategy row_blocks() {
  return {"row-blocks", "CPU: a work-group computes blocks of rows, whose materialised arrays stay in its core's cache",
          has_row_blocks, map_row_blocks, vectorise_rows};
}

}  // namespace hoist
