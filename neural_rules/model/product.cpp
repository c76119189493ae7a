#include "neural_rules/model/product.h"

#include <algorithm>

#include "neural_rules/model/definition.h"

namespace hoist {
int64_t Product::terms() const {
  int64_t count = 1;
  for (size_t i = 0; i < sum_axes; ++i) count *= shape[sum_axis + i];
  return count;
}

std::optional<Product> product_of(const Program& program, const Definition& layer) {
  const Expr call = layer.expression;
  if (call->pattern != Pattern::operator_call || call->operation->results != 1) return std::nullopt;
  const bool has_weights = std::any_of(call->children.begin(), call->children.end(), [&](Expr operand) {
    const Tensor* constant = find_constant(program, operand->name);
    return constant != nullptr && constant->scalar() == Scalar::f32 && constant->shape().size() >= 2;
  });
  if (!has_weights) return std::nullopt;
  const Expr term = term_of(program, layer);
  const auto& form = facts_of(term).product;
  const Tensor* weights = form ? find_constant(program, form->right) : nullptr;
  if (weights == nullptr || weights->scalar() != Scalar::f32 || weights->size() == 0 || weights->shape().size() < 2)
    return std::nullopt;
  if (program.constants.count(form->left) != 0) return std::nullopt;
  Product product;
  product.input = form->left;
  product.weights = form->right;
  product.output = layer.value;
  product.shape = weights->shape();
  product.images = form->output_dimension == 1 && sizes_of(term->type).size() > 2;
  product.channel_axis = form->channel_dimension;
  product.groups = form->groups;
  const auto is_summed = [&](size_t d) {
    return std::find(form->summed.begin(), form->summed.end(), d) != form->summed.end();
  };
  // Filters have input channels as the first dimension or directly after the output channels, even if there is only
  // one. The taps of a transposed convolution do not all contribute to one sum: dimensions after the first consecutive
  // ones are excluded.
  product.sum_axis = form->summed.front();
  if (product.images) product.sum_axis = product.channel_axis == 0 ? 1 : 0;
  product.sum_axes = 1;
  for (size_t d = product.sum_axis + 1; d < product.shape.size() && d != product.channel_axis; ++d) {
    if (!is_summed(d) && !(product.images && product.shape[d] == 1)) break;
    ++product.sum_axes;
  }
  product.whole_sums = form->summed.back() < product.sum_axis + product.sum_axes;
  product.stacked = !product.images && product.shape.size() > form->summed.size() + 1;
  product.reads_rows = form->left_summed == std::vector<size_t>{form->left_rank - 1};
  for (Expr operand : call->children) {
    const std::string& name = operand->name;
    const Tensor* bias = name == product.weights ? nullptr : find_constant(program, name);
    if (bias == nullptr || bias->scalar() != Scalar::f32 || bias->shape().empty()) continue;
    if (bias->shape().back() == product.channels() && bias->size() == product.channels()) product.bias = name;
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
