// Results that share an array in private memory: a work-item computes a tile of them, as in Winograd's transforms, or a
// channel plane.
#include "lowering/tiling/materialised_tiles.h"

#include "lowering/strategies/loops.h"
#include "lowering/strategies/strategies.h"
#include "lowering/terms/terms.h"

namespace hoist {

using namespace loops;

namespace {

// Results that share a materialised array: all of the first of three dimensions, or rows and columns of NHWC or NCHW
// images.
struct SharedTile {
  const char *group, *global;  ///< the rules that open the loop over tiles, on a CPU and on a GPU
  RuleArguments arguments = {};
  int rank = 1;  ///< rank of a tile
};

std::optional<SharedTile> shared_tile(Expr result) {
  const auto tile = materialised_tile(result);
  const std::vector<int64_t> shape = shape_of(result->type);
  if (!tile) return std::nullopt;
  const std::vector<int64_t>& t = *tile;
  if (t.size() == 3 && t[0] == result->type->size.value() && t[1] == 1 && t[2] == 1)
    return SharedTile{"open-first-innermost-group", "open-first-innermost-global"};
  if (t.size() != 4 || t[0] != 1) return std::nullopt;
  const auto in_images = [&](const char* group, const char* global, size_t rows) {
    const int64_t down = t[rows], across = t[rows + 1];
    return SharedTile{group,
                      global,
                      {{"R", down},
                       {"C", across},
                       {"i", round_up(shape[rows], down) - shape[rows]},
                       {"j", round_up(shape[rows + 1], across) - shape[rows + 1]}},
                      2};
  };
  if (t[3] == 1) return in_images("open-image-tiles-group", "open-image-tiles-global", 1);
  if (t[1] == 1) return in_images("open-image-tiles-nchw-group", "open-image-tiles-nchw-global", 2);
  return std::nullopt;
}

bool shares_tiles(Expr term, const StrategyInput& input, const Profile&) {
  return !input.folds && input.materialised.empty() && shared_tile(at(term, input.inside)).has_value();
}

void map_materialised_tiles(Rewriter& r, const StrategyInput& input, const Profile& profile) {
  const SharedTile tile = *shared_tile(at(r.term(), input.inside));
  Path place = open(r, profile.gpu ? tile.global : tile.group, input.inside, tile.arguments);
  if (!profile.gpu) {
    open_columns(r, place, profile.vector_width, input.open);
    while (rank_at(r.term(), place) > tile.rank) place = opened(r.term(), place);
  }
  for (int i = 0; i < tile.rank; ++i) place = open(r, "open-unroll", place);
}

// A channel plane whose results share a materialised array, as in depthwise layers that read it in phases: a work-group
// computes one.
bool shares_planes(Expr term, const StrategyInput& input, const Profile& profile) {
  if (profile.gpu || !input.folds || !input.materialised.empty() || input.tile.channels_last) return false;
  const Expr inside = at(term, input.inside);
  const std::vector<int64_t> shape = shape_of(inside->type);
  return shape.size() == 4 && materialised_tile(inside) == std::vector<int64_t>{1, 1, shape[2], shape[3]};
}

void materialise_in_vectors(Rewriter& r, const StrategyInput&, const Profile& profile) {
  if (profile.vector_width > 1) apply_to_all_of_first(r, "materialised-rows-in-vectors", {{"k", profile.vector_width}});
}

void map_materialised_planes(Rewriter& r, const StrategyInput& input, const Profile&) {
  const Tile& tile = input.tile;
  Path place = open_leading(r, input.inside, 2, 1);
  place = open(r, tile.cpu().shifted ? "open-shifted-tile-loop" : "open-tile-loop", place,
               {{"R", tile.rows}, {"C", tile.columns}});
  place = open(r, "open-unroll", opened(r.term(), place));
  open_tile_columns(r, place, tile.width);
}

}  // namespace

Strategy materialised_planes() {
  return {"materialised-planes",
          "CPU: a work-group computes the results of a channel plane, which share an array in private memory",
          shares_planes, map_materialised_planes, materialise_in_vectors};
}

Strategy materialised_tiles() {
  return {"materialised-tiles",
          "a work-item computes the results that share an array in private memory, channels in vectors", shares_tiles,
          map_materialised_tiles};
}

}  // namespace hoist
