// Names that a graph has for nothing yet: for rewrites that add layers and constants to it. Only for neural_rules.
#pragma once

#include <set>
#include <string>

#include "ir/graph.h"

namespace hoist {

class FreshNames {
 public:
  explicit FreshNames(const Graph& graph);
  /// The name, or one that begins with it: neither a value nor a layer of the graph, nor given before.
  std::string fresh(const std::string& name);

 private:
  std::set<std::string> names_;
};

}  // namespace hoist
