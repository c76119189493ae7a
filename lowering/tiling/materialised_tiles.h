// The elements of a term that share an array in private memory, as the results of a tile share Winograd's transform of
// the tile. The strategies `materialised-tiles` and `materialised-planes` assign them to one work-item. If an element's
// index in a dimension is used as (index / k, index % k), by the joins around the term, and the materialised array
// depends on the first part only, k adjacent elements share it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/language/expression.h"

namespace hoist {

/// For each dimension of the term the number of adjacent elements that share the materialised arrays: the extent if all
/// do, 1 if none do. Empty if the term materialises no private array, does so in the steps of a fold, or splits tiles.
std::optional<std::vector<int64_t>> materialised_tile(Expr term);

}  // namespace hoist
