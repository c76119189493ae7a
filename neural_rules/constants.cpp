#include "neural_rules/constants.h"

#include <algorithm>
#include <optional>
#include <set>

#include "neural_rules/flow.h"

namespace hoist {
namespace {

// Extents that multiply to `size`, one of which may be -1 and is found from the others.
std::optional<std::vector<int64_t>> completed(std::vector<int64_t> shape, int64_t size) {
  int64_t known = 1;
  int64_t* open = nullptr;
  for (int64_t& extent : shape) {
    if (extent < -1 || (extent == -1 && open != nullptr)) return std::nullopt;
    if (extent == -1)
      open = &extent;
    else if (__builtin_mul_overflow(known, extent, &known))
      return std::nullopt;
  }
  if (open != nullptr) {
    if (known == 0 || size % known != 0) return std::nullopt;
    *open = size / known;
    known = size;
  }
  return known == size ? std::optional(shape) : std::nullopt;
}

std::optional<std::vector<int64_t>> reshaped(const Layer& layer, const Tensor& data, const Tensor& asked) {
  if (asked.scalar() != Scalar::i64 || asked.shape().size() != 1) return std::nullopt;
  std::vector<int64_t> shape = asked.as_integers();
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 0 || integer_attribute(layer, "allowzero", 0) != 0) continue;
    if (i >= data.shape().size()) return std::nullopt;
    shape[i] = data.shape()[i];
  }
  return completed(shape, data.size());
}

std::optional<std::vector<int64_t>> flattened(const Layer& layer, const Tensor& data) {
  const auto rank = static_cast<int64_t>(data.shape().size());
  int64_t axis = integer_attribute(layer, "axis", 1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis > rank) return std::nullopt;
  std::vector<int64_t> shape = {1, 1};
  for (int64_t i = 0; i < rank; ++i) shape[i < axis ? 0 : 1] *= data.shape()[static_cast<size_t>(i)];
  return shape;
}

// The shape that the layer gives a constant, or nothing where it does anything else.
std::optional<std::vector<int64_t>> new_shape(const Graph& graph, const Layer& layer) {
  const Tensor* data = constant_input(graph, layer, 0);
  if (data == nullptr || !layer.domain.empty() || layer.outputs.size() != 1) return std::nullopt;
  if (layer.operation == "Identity") return data->shape();
  if (layer.operation == "Flatten") return flattened(layer, *data);
  if (layer.operation != "Reshape") return std::nullopt;
  const Tensor* asked = constant_input(graph, layer, 1);
  return asked == nullptr ? std::nullopt : reshaped(layer, *data, *asked);
}

}  // namespace

void fold_constant_shapes(Graph& graph) {
  const Flow flow = flow_of(graph);
  std::set<std::string> gone;
  for (const Layer& layer : graph.layers) {
    const auto shape = new_shape(graph, layer);
    if (!shape) continue;
    const std::string& value = layer.outputs[0];
    auto readers = flow.readers.find(value);
    if (flow.outputs.count(value) != 0 || readers == flow.readers.end()) continue;
    graph.constants[value] = graph.constants.at(layer.inputs[0]).reshaped(*shape);
    gone.insert(layer.name);
    const std::string& reader = graph.layers[readers->second[0]].name;
    graph.steps.push_back({"constant-shape", reader, RuleClass::exact, value + " is a constant", {layer.name}});
  }
  std::erase_if(graph.layers, [&](const Layer& layer) { return gone.count(layer.name) != 0; });
}

}  // namespace hoist
