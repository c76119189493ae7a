// The choice of a storage for every value of a program, and of the tiles that depend on it.
#pragma once

#include <map>
#include <set>
#include <string>

#include "ir/target/profile.h"
#include "lowering/layout/storage.h"
#include "lowering/tiling/open_extents.h"
#include "lowering/tiling/tile.h"

namespace hoist {

/// The storage of every value of the program: inputs, outputs, constants, definitions, and statements (arrays in local
/// memory, statements.h).
struct StoragePlan {
  std::map<std::string, Storage> values;
  /// Tiles of definitions that are computed in tiles, and of all statements, by value.
  std::map<std::string, Tile> tiles;
  std::map<std::string, TiledResults> tiled;  ///< the results for which the tiles of definitions were chosen
  /// The choice of NHWC or NCHW loops by definitions that read model inputs or write model outputs as images and may
  /// use either, by the knobs below.
  std::map<std::string, KnobValues> layouts;
};

/// Knobs of a definition: 1 if it computes a model output in NHWC, and if it reads a model input from an NHWC copy.
inline constexpr char output_layout_knob[] = "output_channels_last", input_layout_knob[] = "input_channels_last";

/// Chooses all storage. Adds copies of model inputs that are read with a border and of parts of concatenations that
/// cannot be computed in place; removes the concatenations.
StoragePlan choose_storage(Program& program, const Profile& profile, const OpenExtents& open = {});

/// The layout of the definition's knob, or the estimate without one. The plan records the choice.
bool chosen_layout(const Definition& d, const char* knob, bool estimate, StoragePlan& plan);

/// The values that host ops read or write. Their arrays are row-major, without borders or padding.
std::set<std::string> values_on_host(const Program& program);

}  // namespace hoist
