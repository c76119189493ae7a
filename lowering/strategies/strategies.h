// The strategies by file; lowering/strategies/strategy.h has their table. Only strategy.h and these files include this
// header.
#pragma once

#include "lowering/strategies/strategy.h"

namespace hoist {

/// True if the term has a scatter at the place, below views and maps, that the strategy "scatters" can map.
bool maps_scatter(Expr term, const Path& inside);

Strategy statements();
Strategy scatters();
Strategy materialised_tiles();
Strategy materialised_planes();
Strategy row_blocks();
Strategy cpu_steps();
Strategy cpu_scans();
Strategy cpu_rows();
Strategy cpu_folded_rows();
Strategy cpu_register_tiles();
Strategy cpu_elements();
Strategy gpu_rows();
Strategy gpu_tiles();
Strategy gpu_sums();
Strategy gpu_folds();
Strategy gpu_turned_tiles();
Strategy gpu_elements();

}  // namespace hoist
