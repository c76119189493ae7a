// What a rewrite changed in a graph: the layers and constants that it added, and which inputs of which layers read
// something else now. Not a general graph comparison: layers of both graphs are matched by their names, and a layer
// whose outputs have other names now (a pooling that moves small numbers) counts as a new one.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace hoist {

/// Input `slot` of the layer reads `after` where `before` was read.
struct ChangedInput {
  std::string layer;
  size_t slot = 0;
  std::string before, after;  ///< value names of the graph before and of the one after
};

struct GraphDifference {
  std::vector<Layer> added;                 ///< in their order; names of the graph after
  std::map<std::string, Tensor> constants;  ///< that the graph before has not, or has with other content
  std::vector<ChangedInput> inputs;         ///< in the order of layers
  std::vector<Layer> replaced;              ///< layers that have another operator or attributes now, as they are now
  std::set<std::string> same;               ///< values that both have, under the same name

  bool empty() const { return added.empty() && inputs.empty() && replaced.empty(); }
};

/// Layers that are gone are not reported: a rewrite leaves no reader of theirs.
GraphDifference difference(const Graph& before, const Graph& after);

}  // namespace hoist
