#include "ir/graph.h"

namespace hoist {
namespace {

template <class T>
T attribute_or(const Layer& layer, const std::string& name, T otherwise) {
  auto place = layer.attributes.find(name);
  const T* value = place == layer.attributes.end() ? nullptr : std::get_if<T>(&place->second);
  return value == nullptr ? otherwise : *value;
}

}  // namespace

const Layer* find_layer(const Graph& graph, const std::string& name) {
  for (const Layer& layer : graph.layers) {
    if (layer.name == name) return &layer;
  }
  return nullptr;
}

const Tensor* constant_of(const Graph& graph, const std::string& value) {
  auto place = graph.constants.find(value);
  return place == graph.constants.end() ? nullptr : &place->second;
}

const Tensor* constant_input(const Graph& graph, const Layer& layer, size_t i) {
  return i < layer.inputs.size() ? constant_of(graph, layer.inputs[i]) : nullptr;
}

bool has_input(const Layer& layer, size_t i) { return i < layer.inputs.size() && !layer.inputs[i].empty(); }

int64_t integer_attribute(const Layer& layer, const std::string& name, int64_t otherwise) {
  return attribute_or(layer, name, otherwise);
}

double float_attribute(const Layer& layer, const std::string& name, double otherwise) {
  return attribute_or(layer, name, otherwise);
}

}  // namespace hoist
