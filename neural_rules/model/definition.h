// The computations of layers as terms of the language: neural rules decide by properties of terms
// (ir/properties/properties.h), not by a list of operators. The terms' parameters are named after values.
#pragma once

#include <map>
#include <set>
#include <string>

#include "ir/program/program_builder.h"
#include "ir/properties/properties.h"

namespace hoist {

/// The call that computes the layer of this name, or null.
const Definition* find_layer(const Program& program, const std::string& layer);
/// An attribute of the definition's call, or `otherwise` without an attribute of that name and type.
double float_attribute(const Definition& layer, const std::string& name, double otherwise);

/// The term of a value, without operator calls and tuples.
Expr term_of(const Program& program, const Definition& definition);
/// The terms of all definitions except tuples, by value.
using Definitions = std::map<std::string, Expr>;
Definitions definitions_of(const Program& program);

/// The role of a layer in the data flow. view: an index function (Reshape, Transpose, Slice, ...). mover: results are
/// some of the inputs' elements, in a separate array (MaxPool, Concat). elementwise: fused into the kernel of its
/// operand. anchor: all other layers.
enum class LayerKind : uint8_t { view, mover, elementwise, anchor };

/// Memoised properties of a term.
struct TermFacts {
  LayerKind kind = LayerKind::anchor;
  std::set<std::string> moved;  ///< of a view or mover: the values whose elements it has
  bool joins = false;           ///< true for concatenations
  std::optional<ProductForm> product;
};
const TermFacts& facts_of(Expr term);

}  // namespace hoist
