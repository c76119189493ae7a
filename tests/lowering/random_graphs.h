// Random small models with data, for the tests of passes: convolutions of all shapes, matmuls, pools, elementwise
// layers with broadcasting, residual sums, concatenations, normalisations and views, with values that several layers
// read and intermediate outputs. The data are small integers, so that contractions are exact in f32 and reordered sums
// stay equal; `error` bounds the difference for other values.
#pragma once

#include <map>
#include <random>
#include <string>

#include "ir/evaluate/evaluate.h"
#include "tests/support/named_model.h"

namespace hoist {

struct RandomGraph {
  NamedModel graph;
  Bindings inputs;
  /// By value: the difference that reordered sums and fused or folded multiplications explain (twice the forward error
  /// bound n u sum|terms|, propagated through later layers). 0 if all intermediate values are integers.
  std::map<std::string, double> error;
};

/// The same generator state gives the same model.
RandomGraph random_graph(std::mt19937_64& random);

/// The meaning of the graph: every value, computed layer by layer by the operator table.
Bindings values_of(const RandomGraph& random);

}  // namespace hoist
