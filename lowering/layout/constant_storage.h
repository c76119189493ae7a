// The storage of constants: weights in panels of the columns of a tile, other constants in whole vectors.
#pragma once

#include <cstdint>
#include <string>

#include "ir/language/tensor.h"
#include "lowering/layout/storage.h"
#include "lowering/tiling/tile.h"

namespace hoist {

/// The order of dimensions of weights: [O][I][k...] -> [k...][I][O], and the same for [I][O][k...], as an NHWC image is
/// read. `filters`: the first of the other dimensions holds input channels, which an image has innermost.
std::vector<int64_t> weights_order(size_t rank, int64_t output_dimension, bool filters);

/// `panels`: one panel per tile of columns, so that a work-item reads a single panel. `interleave`: the number of rows
/// that it reads at once. `filters` as above.
Storage weights_storage(const std::string& name, Type type, int64_t output_dimension, bool filters, const Tile& tile,
                        bool panels, int64_t interleave);

Storage constant_storage(const std::string& name, const Tensor& tensor, Type type, int64_t width);

}  // namespace hoist
