// The imported model: a program of named layers, still operators, in topological order. The frontend makes it,
// lowering turns every layer into an expression. Invariants: value names are unique; each value is a model input, an
// initialiser or the output of one earlier layer; dimension sizes of values may be unknown until lowering infers them,
// model inputs are fully known.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/operator_call.h"
#include "ir/program.h"
#include "ir/tensor.h"

namespace hoist {

struct Layer {
  std::string name;       ///< unique in the graph; ONNX's node name, or made from the operator and its place
  std::string operation;  ///< ONNX op_type: "Conv"
  std::string domain;     ///< "" is ai.onnx
  Attributes attributes;
  std::vector<std::string> inputs;   ///< value names; "" where an optional input is left out
  std::vector<std::string> outputs;  ///< value names; "" where an optional output is not wanted
};

struct ValueInfo {
  std::string name;
  Scalar scalar = Scalar::f32;
  std::vector<int64_t> shape;
  bool rank_known = true;  ///< false for an output whose shape the model leaves out altogether; `shape` is empty then
};

using GraphStep = ProgramStep;

struct Graph {
  std::string name;
  int64_t opset = 0;                        ///< of ai.onnx after version conversion
  std::vector<ValueInfo> inputs;            ///< without initialisers; shapes are complete
  std::vector<ValueInfo> outputs;           ///< shapes may hold -1 where the model leaves them open
  std::map<std::string, Tensor> constants;  ///< initialisers by value name
  std::vector<Layer> layers;                ///< topological order
  /// What onnx's own shape inference says of values, a cross-check only; -1 for unknown extents.
  std::map<std::string, ValueInfo> inferred;
  std::vector<GraphStep> steps;    ///< what was done to whole layers since the model was read
  std::vector<std::string> notes;  ///< for the user: "dimension N of input x is taken to be 1; use --dim N=..."
  uint64_t hash = 0;               ///< of the model's bytes, external data included
};

const Layer* find_layer(const Graph& graph, const std::string& name);  ///< null when there is none
/// Is the layer this operator of ONNX itself?
bool is_operator(const Layer& layer, const std::string& operation);

/// The initialiser of that name; null where the value is computed, or "".
const Tensor* constant_of(const Graph& graph, const std::string& value);
/// The same of a layer's input; null also where the layer has fewer.
const Tensor* constant_input(const Graph& graph, const Layer& layer, size_t i);
/// Is the input there and not left out?
bool has_input(const Layer& layer, size_t i);

/// An attribute, or `otherwise` where the layer has none of that name and type.
int64_t integer_attribute(const Layer& layer, const std::string& name, int64_t otherwise);
double float_attribute(const Layer& layer, const std::string& name, double otherwise);

}  // namespace hoist
