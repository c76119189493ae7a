// The operators that hoist can say as expressions, one row each, and the lowering of a single layer through its row.
// A lowered layer says what is computed, not how: maps without a mode, reductions and views, over arrays of scalars in
// ONNX's logical layout (a tensor of rank 0 is a scalar). The type of the expression is the shape inference. Extents
// are constants at this point. Whoever wants a whole graph lowered, with constants and shape arithmetic folded, uses
// lowering/program.h instead.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/expression.h"
#include "ir/graph.h"

namespace hoist {

/// One layer and what is known of its inputs.
struct OperatorContext {
  const Layer& layer;
  int64_t opset = 0;                     ///< of the layer's domain
  std::vector<Expr> inputs;              ///< parameters named by value; null where an optional input is left out
  std::vector<const Tensor*> constants;  ///< the input's value where it is known at compile time, else null
};

/// Which element types the first input of an operator may have.
enum class Takes : uint8_t { anything, numbers, floats, integers, booleans };
std::string_view name_of(Takes takes);

struct OperatorRow {
  std::string_view domain;        ///< "" is ai.onnx
  std::string_view name;          ///< ONNX op_type
  int since;                      ///< the first version of the domain whose meaning the row has
  int least_inputs, most_inputs;  ///< most_inputs -1: any number
  Takes takes;
  /// One expression per output of the layer ("" outputs included), in terms of the inputs.
  Result<std::vector<Expr>> (*lower)(const OperatorContext&);
  std::string_view meaning;  ///< the formula, or a note for people
  /// Where float test inputs may be drawn from, such that the operator is defined and well conditioned there.
  double low = -2, high = 2;
};

/// All rows, sorted by domain and name.
std::span<const OperatorRow> operator_table();
/// The row for a layer, or null: no such row, or one for later versions only. The domain "ai.onnx" is "".
const OperatorRow* find_operator(std::string_view domain, std::string_view name, int64_t opset);

/// The layer's outputs as expressions over its inputs' parameters. Errors: no row, wrong number or types of inputs, bad
/// attributes, shapes that do not fit, an input that has to be constant but is not; each names the layer.
Result<std::vector<Expr>> lower_layer(const OperatorContext& context);

}  // namespace hoist
