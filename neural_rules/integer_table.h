// Functions between 8-bit tensors as tables: DequantizeLinear, layers of one element each, QuantizeLinear become one
// look-up among 256 values. Exact: the table holds what those layers give for each of the 256 inputs. Works on layers,
// in ONNX's own operators (Cast and Gather), so that the result can be exported.
#pragma once

#include <functional>

#include "ir/graph.h"
#include "ir/result.h"

namespace hoist {

/// The first output of a layer for its first input; its other inputs are constants of the graph.
using EvaluateLayer = std::function<Result<Tensor>(const Layer& layer, const Tensor& first_input)>;

/// Replaces every chain whose scales and zero points are constants of one element and whose values between nobody else
/// reads; a chain without a layer between is left alone. `layer` "" means all chains, else the one whose function that
/// layer forms. Records an exact step for each, named after the last function layer. How many there were; what
/// `evaluate` reports is passed on, and the graph stays as it was then.
Result<int> use_integer_tables(Graph& graph, const EvaluateLayer& evaluate, const std::string& layer = "");

}  // namespace hoist
