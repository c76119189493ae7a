// How constants are stored: weights in panels of the columns of a tile, other constants in whole vectors.
#pragma once

#include <cstdint>
#include <string>

#include "ir/language/tensor.h"
#include "lowering/layout/storage.h"
#include "lowering/tiling/tile.h"

namespace hoist {

/// `panels`: a work-item reads one tile's columns and nothing else. `interleave`: it reads so many rows of them at
/// once.
Storage weights_storage(const std::string& name, Type type, int64_t output_dimension, const Tile& tile, bool panels,
                        int64_t interleave);

Storage constant_storage(const std::string& name, const Tensor& tensor, Type type, int64_t width);

}  // namespace hoist
