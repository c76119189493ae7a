// The results of a definition as tiles see them: rows, columns and what their sums read, given its storage; and the
// tile that its knobs or an estimate choose for them.
#pragma once

#include <map>
#include <string>

#include "ir/program/program.h"
#include "ir/target/profile.h"
#include "lowering/layout/storage_plan.h"
#include "lowering/tiling/tile.h"

namespace hoist {

/// Of a definition that folds, or that has to be turned.
void choose_tile(const Program& program, const Definition& d, const std::map<std::string, Type>& types, bool transposed,
                 StoragePlan& plan, const Profile& profile);

/// Of a statement, whose tiles the work-items of one group share out: all its rows are alike. Work-items of GPUs
/// compute one element at a time.
Tile tile_of_statement(const Definition& d, const Storage& s, const Profile& profile);

}  // namespace hoist
