#include "neural_rules/product.h"

#include "neural_rules/flow.h"

namespace hoist {
namespace {

// Filters [O][C / groups][k...], or for a transposed convolution [C][O / groups][k...].
bool lay_out_filters(const Layer& layer, Product& product) {
  if (product.shape.size() < 3) return false;
  product.groups = integer_attribute(layer, "group", 1);
  const bool transposed = layer.operation == "ConvTranspose";
  product.channel_axis = transposed ? 1 : 0;
  product.sum_axis = transposed ? 0 : 1;
  product.sum_axes = transposed ? 1 : product.shape.size() - 1;
  return true;
}

bool lay_out_matrix(const Layer& layer, Product& product) {
  const size_t rank = product.shape.size();
  if (rank < 2) return false;
  const bool rows_are_channels = layer.operation == "Gemm" && integer_attribute(layer, "transB", 0) != 0;
  product.channel_axis = rows_are_channels ? rank - 2 : rank - 1;
  product.sum_axis = rows_are_channels ? rank - 1 : rank - 2;
  return true;
}

}  // namespace

int64_t Product::terms() const {
  int64_t count = 1;
  for (size_t i = 0; i < sum_axes; ++i) count *= shape[sum_axis + i];
  return count;
}

std::optional<Product> product_of(const Graph& graph, const Layer& layer) {
  const bool filters = layer.operation == "Conv" || layer.operation == "ConvTranspose";
  const bool matrix = layer.operation == "Gemm" || layer.operation == "MatMul";
  const Tensor* weights = constant_input(graph, layer, 1);
  if (!layer.domain.empty() || !(filters || matrix) || weights == nullptr || layer.outputs.empty()) return std::nullopt;
  if (weights->scalar() != Scalar::f32 || weights->size() == 0 || graph.constants.count(layer.inputs[0]) != 0)
    return std::nullopt;
  Product product;
  product.input = layer.inputs[0];
  product.weights = layer.inputs[1];
  product.output = layer.outputs[0];
  product.shape = weights->shape();
  if (!(filters ? lay_out_filters(layer, product) : lay_out_matrix(layer, product))) return std::nullopt;
  if (const Tensor* bias = constant_input(graph, layer, 2); bias != nullptr && bias->scalar() == Scalar::f32) {
    const bool by_channel =
        !bias->shape().empty() && bias->shape().back() == product.channels() && bias->size() == product.channels();
    if (by_channel) product.bias = layer.inputs[2];
  }
  return product;
}

int64_t position_of(const Product& product, int64_t channel, int64_t term) {
  std::vector<int64_t> index(product.shape.size(), 0);
  index[product.channel_axis] = channel;
  for (size_t i = product.sum_axes; i-- > 0;) {
    const int64_t extent = product.shape[product.sum_axis + i];
    index[product.sum_axis + i] = term % extent;
    term /= extent;
  }
  int64_t position = 0;
  for (size_t i = 0; i < index.size(); ++i) position = position * product.shape[i] + index[i];
  return position;
}

}  // namespace hoist
