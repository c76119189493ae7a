// Blocks of rows whose materialised arrays stay in the cache of one core: the scores of attention, for example, which
// softmax and the product with the values read while they are there.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/language/expression.h"
#include "ir/target/profile.h"
#include "lowering/tiling/open_extents.h"
#include "lowering/tiling/tile.h"

namespace hoist {

/// True for a let that materialises an array in private memory.
bool binds_materialised_row(Expr e);

/// Rows that lets around them give materialised arrays, in a nest of maps below views.
struct RowNest {
  std::vector<Path> around;  ///< the maps around the one over the rows, outermost first
  Path rows;                 ///< the map over the rows
};
/// The nest at the place of a term; empty if there is none.
std::optional<RowNest> row_nest(Expr term, Path place = {});
/// The row of such a nest; null if there is none.
Expr row_with_arrays(Expr term);

/// The bytes of the arrays that lets around a row materialise, each in whole vectors, for the typical sizes; 0 without
/// such lets.
int64_t materialised_bytes(Expr row, const Profile& profile, const OpenExtents& open = {});

/// An array [rows][columns] of a block whose elements are sums of so many steps.
struct SumsOfBlock {
  int64_t columns = 1, steps = 1;
};
/// The register tile of such an array.
Tile tile_of_block(int64_t rows, int64_t columns, const Profile& profile);

/// The number of rows that a work-group computes together: so many bytes per row fit into the cache of a core, and all
/// sums take the least time. Blocks have about equally many of all `rows`.
int64_t rows_of_block(int64_t rows, int64_t row_bytes, const std::vector<SumsOfBlock>& sums, const Profile& profile);

/// True if blocks of rows take less time than a kernel for each array: blocks have enough rows to reuse operands, and
/// an array of `stored_bytes` does not stay in the cache from one kernel to the next.
bool gains_by_blocks(int64_t rows, int64_t row_bytes, int64_t stored_bytes, const Profile& profile);

}  // namespace hoist
