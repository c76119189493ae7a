// CPUs: a work-item a group, vectors and register tiles.
#include <iterator>

#include "ir/properties.h"
#include "lowering/grouping.h"
#include "lowering/strategies/loops.h"
#include "lowering/strategies/strategies.h"

namespace hoist {

using namespace loops;

namespace {

int64_t missing(int64_t n, int64_t k) { return (n + k - 1) / k * k - n; }

// A picture that keeps its channels second (a model's output) is computed with channels innermost and transposed in
// private memory: storing vectors lane by lane costs as much as the convolution (56x56x64).
void map_register_tiles(Rewriter& r, const StrategyInput& input, const Profile&) {
  Path place = input.inside;
  const Tile& tile = input.tile;
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
void map_rows(Rewriter& r, const StrategyInput& input, const Profile& profile) {
  Path place = input.inside;
  if (rank_at(r.term(), place) == 1)
    place = open(r, "open-column-tiles", place, {{"C", extent(r.term(), place, 0)}, {"c", 0}});
  else
    place = open_leading(r, place, 1, 0);
  open_columns(r, place, profile.vector_width);
}

void map_elements(Rewriter& r, const StrategyInput& input, const Profile& profile) {
  Path place = input.inside;
  int rank = rank_at(r.term(), place);
  int64_t leading = 1;
  for (int i = 0; i + 2 < rank; ++i) leading *= extent(r.term(), place, i);
  place = open_leading(r, place, 2, 1);
  if (rank >= 2) place = leading >= 8 ? open(r, "open-seq", place) : open(r, "open-group", place, {{"d", 0}});
  open_columns(r, place, profile.vector_width);
}

}  // namespace

Strategy cpu_rows() {
  return {"rows", "CPU: a work-group a row, so that what its elements share is computed once",
          [](Expr term, const StrategyInput&, const Profile& profile) { return !profile.gpu && shares_folds(term); },
          map_rows};
}

Strategy cpu_register_tiles() {
  return {"register-tiles", "CPU: a work-group computes a tile of sums in registers",
          [](Expr, const StrategyInput& input, const Profile& profile) {
            return !profile.gpu && (input.folds || input.tile.channels_last);
          },
          map_register_tiles};
}

Strategy cpu_elements() {
  return {"elements", "CPU: loops over elements, the innermost in vectors",
          [](Expr, const StrategyInput&, const Profile& profile) { return !profile.gpu; }, map_elements};
}

}  // namespace hoist
