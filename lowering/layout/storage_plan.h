// The choice of a storage for every value of a program, and of the tiles that depend on it.
#pragma once

#include <map>
#include <set>
#include <string>

#include "ir/target/profile.h"
#include "lowering/layout/storage.h"
#include "lowering/tiling/tile.h"

namespace hoist {

/// Storage for every value of the program: inputs, outputs, constants, definitions, and the arrays in local memory that
/// definitions keep (statements.h).
struct StoragePlan {
  std::map<std::string, Storage> values;
  /// Of the definitions that are computed in tiles, and of all in a launch of several statements, by value.
  std::map<std::string, Tile> tiles;
  std::map<std::string, TiledResults> tiled;  ///< what those of definitions were chosen for
  /// Of definitions that read or write pictures as the model has them, whether they do so with channels innermost, by
  /// the knobs below, where they may do either.
  std::map<std::string, KnobValues> layouts;
};

/// Knobs of a definition: whether it computes an output of the model with channels innermost, and whether it reads an
/// input of the model from a copy that has them there.
inline constexpr char output_layout_knob[] = "output_channels_last", input_layout_knob[] = "input_channels_last";

/// Chooses all storage. Where a model input is read with a border, or a part of a concatenation cannot be computed in
/// its place, a copy is added to the program; concatenations whose parts all have their place go.
StoragePlan choose_storage(Program& program, const Profile& profile);

/// The layout that the definition's knob names, or the estimate where it has none. The plan records the choice.
bool chosen_layout(const Definition& d, const char* knob, bool estimate, StoragePlan& plan);

/// The values that host steps read or write. Their arrays are row-major, without borders or padding.
std::set<std::string> values_on_host(const Program& program);

}  // namespace hoist
