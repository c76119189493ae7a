// A graph to which parts of rewritten graphs are added under names of their own. For graphs that hold several versions
// of a layer at once (switchboard.h). The layers of the graph that it starts from stay and keep their names.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "neural_rules/difference.h"
#include "neural_rules/site.h"

namespace hoist {

struct SiteRule;

class Graft {
 public:
  /// What to read where a grafted layer reads a value of the original graph.
  using Resolver = std::function<std::string(const std::string&)>;

  explicit Graft(const Graph& graph);

  Graph& graph() { return out_; }
  void add(Layer layer);
  bool has_layer(const std::string& name) const { return places_.count(name) != 0; }
  Layer& layer(const std::string& name);                 ///< in the new graph
  const Layer& original(const std::string& name) const;  ///< as it was

  /// The value of the rewritten graph that `change` leads to, with all that computes it, each name after `prefix`. The
  /// name of it in the new graph; values that both graphs have are resolved.
  std::string value(const std::string& prefix, const GraphDifference& change, const std::string& name,
                    const Resolver& resolve);

  /// Layers in topological order, those that no output needs left out.
  Graph finish();

 private:
  Graph original_;
  Graph out_;
  std::map<std::string, size_t> places_;
};

/// The layers that a rule computes in another way as a whole, reading what the rule gives them: products and functions,
/// and those with another operator. Products are among them where only their weights change, since constants are packed
/// for a kernel and what a switch selects is not.
std::vector<Layer> replaced_by(const Graph& graph, const Site& site, const SiteRule& rule);

}  // namespace hoist
