// Random small models with their data, for the tests of passes: convolutions of all shapes, products, pools,
// elementwise layers with broadcasting, residual sums, concatenations, normalisations and views, with values that
// several layers read and outputs in the middle. The data are small whole numbers, so that sums of products are exact
// in f32 and a pass that reorders them still has to give the same number; `error` says how far a value may be off where
// they are not.
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
  /// By value: the difference that other orders of summation and fused or folded products explain (twice the forward
  /// error bound n u sum|terms|, handed on through the layers after it). 0 where all intermediate numbers are whole.
  std::map<std::string, double> error;
};

/// The same generator state gives the same model.
RandomGraph random_graph(std::mt19937_64& random);

/// The meaning of the graph: every value, layer by layer through the operator table alone.
Bindings values_of(const RandomGraph& random);

}  // namespace hoist
