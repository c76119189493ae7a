// A program of operator calls in a form that is easy to edit: layers that name what they read, without types, in any
// order while it is being edited. Neural rules rewrite this form; import_graph.h goes from a program to it and back.
// Invariants at both ends: value names are unique; each value is a model input, a constant or the output of one earlier
// layer. Not for what only looks at a model: a program has types, and definitions say what operators are.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/program_builder.h"
#include "ir/tensor.h"

namespace hoist {

using Layer = NamedCall;

struct Graph {
  std::string name;
  int64_t opset = newest_version;
  std::vector<ValueInfo> inputs;
  std::vector<ValueInfo> outputs;
  std::map<std::string, Tensor> constants;
  std::vector<Layer> layers;
  std::map<std::string, ValueInfo> types;  ///< of the values of the program that it was made from
  std::vector<ProgramStep> steps;          ///< what was done to whole layers since the model was read
  std::vector<std::string> notes;
  std::vector<ModelLayer> evaluated;  ///< layers of the model whose outputs are constants
  uint64_t hash = 0;                  ///< of the model's bytes
};

const Layer* find_layer(const Graph& graph, const std::string& name);  ///< null when there is none

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
