// The results of a definition as tiles cover them (rows, columns and the operands of their sums, given its storage),
// and the tile that the knobs or the estimate select.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "ir/program/program.h"
#include "ir/program/storage.h"
#include "ir/target/profile.h"
#include "lowering/tiling/open_extents.h"
#include "lowering/tiling/tile.h"

namespace hoist {

/// The results that the tiles of a definition with this storage cover; empty for a definition on a GPU that is no
/// contraction. `transposed`: an image that must stay NCHW in memory.
std::optional<TiledResults> tiled_results(const Program& program, const Definition& d,
                                          const std::map<std::string, Type>& types, const Storage& s, bool transposed,
                                          const Profile& profile);
/// The results for which a tile is chosen. A tile has one vector of open columns, since it computes its tail.
CpuResults for_typical_sizes(CpuResults results, const OpenExtents& open, const Profile& profile);
/// The number of stored dimensions before the last one that tiles treat as columns too; 0 for a value that is stored in
/// another order, or with surroundings.
int64_t columns_collapsed(const Definition& d, const Storage& s);
/// The tile of a definition with these results: the tile of its knobs, or the estimated one.
Tile tile_of(const Definition& d, const TiledResults& results, const Storage& s, bool transposed,
             const Profile& profile);

/// The tile of a statement, whose tiles are divided among the work-items of one group; all its rows are equivalent.
/// Work-items of GPUs compute one element at a time.
Tile tile_of_statement(const Definition& d, const Storage& s, const Profile& profile);

}  // namespace hoist
