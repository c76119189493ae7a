// Which elements of a term share an array that it keeps in private memory, as the results of a tile share what
// Winograd's transform makes of the tile's columns: the strategies `kept-tiles` and `kept-planes` give them to one
// work-item. Where an element's position in a dimension is read as (position / k, position % k), by the joins around
// the term, and the kept array stands in functions of the first alone, k neighbours share it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/language/expression.h"

namespace hoist {

/// For each dimension of the term, how many neighbours share the arrays that it keeps; its extent where all do, 1 where
/// none do. Nothing where the term keeps no array, keeps one in the steps of a fold, or cuts tiles in two.
std::optional<std::vector<int64_t>> kept_tile(Expr term);

}  // namespace hoist
