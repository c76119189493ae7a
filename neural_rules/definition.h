// What layers compute, as terms of the language: neural rules ask terms what a layer is (ir/properties.h), and no list
// of operators. Terms are over parameters named by values.
#pragma once

#include <map>
#include <set>
#include <string>

#include "ir/graph.h"
#include "ir/properties.h"

namespace hoist {

/// By output value: its definition, without operator calls. Values that decide shapes have none, being attributes.
using Definitions = std::map<std::string, Expr>;
Definitions definitions_of(const Graph& graph);
/// Of one layer. Fast where the graph has the types of what it reads.
Definitions definitions_of(const Graph& graph, const Layer& layer);

/// What a layer is to the flow of numbers.
/// view: an index function (Reshape, Transpose, Slice, ...). mover: its results are some of its inputs' numbers, but an
/// array of its own (MaxPool, Concat). elementwise: joins the kernel of what it reads. anchor: everything else.
enum class LayerKind : uint8_t { view, mover, elementwise, anchor };

/// What is asked of a term again and again.
struct TermFacts {
  LayerKind kind = LayerKind::anchor;
  std::set<std::string> moved;  ///< of a view or mover: whose numbers it has
  bool joins = false;           ///< it concatenates
  std::optional<ProductForm> product;
};
const TermFacts& facts_of(Expr term);

}  // namespace hoist
