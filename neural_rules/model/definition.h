// What layers compute, as terms of the language: neural rules ask terms what a layer is (ir/properties/properties.h),
// and no list of operators. Terms are over parameters named by values.
#pragma once

#include <map>
#include <set>
#include <string>

#include "ir/program/program_builder.h"
#include "ir/properties/properties.h"

namespace hoist {

/// The call that computes a layer of the model, by the layer's name; null when there is none.
const Definition* find_layer(const Program& program, const std::string& layer);
/// An attribute of the definition's call, or `otherwise` where it has none of that name and type.
double float_attribute(const Definition& layer, const std::string& name, double otherwise);

/// What a value is computed as, without operator calls and tuples.
Expr term_of(const Program& program, const Definition& definition);
/// By value, the terms of all definitions but tuples.
using Definitions = std::map<std::string, Expr>;
Definitions definitions_of(const Program& program);

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
