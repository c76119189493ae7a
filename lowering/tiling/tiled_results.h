// The results of a definition as tiles cover them (rows, columns and the operands of their sums, given its storage),
// and the tile that the knobs or the estimate select.
#pragma once

#include <map>
#include <string>

#include "ir/program/program.h"
#include "ir/target/profile.h"
#include "lowering/layout/storage_plan.h"
#include "lowering/tiling/tile.h"

namespace hoist {

/// Selects the tile of a definition that folds or has to be transposed, and stores it in the plan.
void choose_tile(const Program& program, const Definition& d, const std::map<std::string, Type>& types, bool transposed,
                 StoragePlan& plan, const Profile& profile);

/// The tile of a statement, whose tiles are divided among the work-items of one group; all its rows are equivalent.
/// Work-items of GPUs compute one element at a time.
Tile tile_of_statement(const Definition& d, const Storage& s, const Profile& profile);

}  // namespace hoist
