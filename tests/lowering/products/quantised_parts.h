// Graphs of layers between 8-bit values, for the tests of tables: from given layers, and at random.
#pragma once

#include <random>
#include <vector>

#include "tests/support/named_model.h"

namespace hoist {

Tensor one_byte(Scalar scalar, int64_t v);
Tensor one_float(double v);

/// x -> dequantise -> functions -> quantise -> y, all with one scale; x and y have 2 x 128 elements. The first input
/// and the output of each function are filled in: v0, v2, v3, ...
NamedModel quantised(const std::vector<NamedCall>& functions, Scalar in, Scalar out);

/// The same with up to eight functions over earlier values and constants; several values may be quantised, others are
/// unused. The same generator state gives the same graph.
NamedModel random_quantised(std::mt19937_64& random);

/// All inputs that such a graph can have.
Tensor every_byte(Scalar scalar);

}  // namespace hoist
