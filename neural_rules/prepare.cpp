#include "neural_rules/prepare.h"

#include <algorithm>

#include "neural_rules/flow.h"
#include "neural_rules/formats.h"
#include "neural_rules/rounding.h"

namespace hoist {
namespace {

Result<const ValueStatistics*> statistics_of(const Statistics& statistics, const std::string& value) {
  auto place = statistics.find(value);
  if (place == statistics.end())
    return Diagnostic{value, "there are no statistics of this value", "calibrate the model first"};
  return &place->second;
}

// What an activation does to a sum: Gemm scales it.
double factor_of(const Layer& layer) { return layer.operation == "Gemm" ? float_attribute(layer, "alpha", 1) : 1; }

// Mean and mean square of the number that each term of a channel's sum multiplies.
class InputMoments {
 public:
  InputMoments(const Product& product, const ValueStatistics& input) : product_(product), input_(input) {
    const int64_t terms = product.terms();
    const int64_t channels = product.shape[product.sum_axis] * (transposed() ? 1 : product.groups);
    by_channel_ = static_cast<int64_t>(input.channels.size()) == channels;
    inner_ = terms / product.shape[product.sum_axis];
  }

  double mean(int64_t channel, int64_t term) const { return by_channel_ ? at(channel, term).mean : input_.mean; }
  double mean_square(int64_t channel, int64_t term) const {
    return by_channel_ ? at(channel, term).mean_square : input_.mean_square;
  }

 private:
  bool transposed() const { return product_.channel_axis == 1 && product_.sum_axis == 0 && product_.shape.size() > 2; }

  const ValueStatistics::Channel& at(int64_t channel, int64_t term) const {
    int64_t input = term / inner_;
    if (!transposed()) {
      const int64_t group = channel / std::max<int64_t>(product_.channels() / product_.groups, 1);
      input += group * product_.shape[product_.sum_axis];
    }
    return input_.channels[static_cast<size_t>(input)];
  }

  const Product& product_;
  const ValueStatistics& input_;
  bool by_channel_ = false;
  int64_t inner_ = 1;
};

// Runs over all weights, those of other matrices of a stack and places of a transposed filter included: f(position,
// channel, term).
template <class F>
void for_each_weight(const Product& product, F f) {
  const ScaleLayout channels = layout_of(product, {});
  int64_t inner = 1, terms = product.terms();
  for (size_t i = product.sum_axis + product.sum_axes; i < product.shape.size(); ++i) inner *= product.shape[i];
  const int64_t all = element_count(product.shape);
  for (int64_t i = 0; i < all; ++i) f(i, channels.index(i), i / inner % terms);
}

// b += E[W x] - E[W' x], in the units of the layer's bias input.
Tensor corrected_bias(const Graph& graph, const Layer& layer, const PreparedProduct& prepared,
                      const ValueStatistics& input) {
  const Product& product = prepared.product;
  const Tensor& weights = graph.constants.at(product.weights);
  const InputMoments moments(product, input);
  std::vector<double> bias(static_cast<size_t>(product.channels()));
  for_each_weight(product, [&](int64_t i, int64_t channel, int64_t term) {
    bias[static_cast<size_t>(channel)] +=
        (weights.float_at(i) - prepared.packed.values.float_at(i)) * moments.mean(channel, term);
  });
  const double beta = layer.operation == "Gemm" ? float_attribute(layer, "beta", 1) : 1;
  for (size_t c = 0; c < bias.size(); ++c) {
    bias[c] *= factor_of(layer) / beta;
    if (!product.bias.empty()) bias[c] += graph.constants.at(product.bias).float_at(static_cast<int64_t>(c));
  }
  return Tensor::of(Scalar::f32, {product.channels()}, bias);
}

// The error of the weights at the output: the mean over output channels of E[(sum of dw x)^2].
double weight_noise(const Graph& graph, const Layer& layer, const PreparedProduct& prepared,
                    const ValueStatistics& input) {
  const Product& product = prepared.product;
  const Tensor& weights = graph.constants.at(product.weights);
  const InputMoments moments(product, input);
  const auto channels = static_cast<size_t>(product.channels());
  std::vector<double> means(channels), variances(channels);
  for_each_weight(product, [&](int64_t i, int64_t channel, int64_t term) {
    const double difference = prepared.packed.values.float_at(i) - weights.float_at(i);
    const double mean = moments.mean(channel, term);
    means[static_cast<size_t>(channel)] += difference * mean;
    variances[static_cast<size_t>(channel)] +=
        difference * difference * std::max(moments.mean_square(channel, term) - mean * mean, 0.0);
  });
  double sum = 0;
  for (size_t c = 0; c < channels; ++c) sum += variances[c] + (prepared.bias ? 0 : means[c] * means[c]);
  return factor_of(layer) * factor_of(layer) * sum / static_cast<double>(channels);
}

// Rounding the input to 8 bits over the range that calibration saw, carried through the weights.
double dynamic_noise(const Layer& layer, const PreparedProduct& prepared, const ValueStatistics& input) {
  const Grid grid = grid_of(*find_value_format("u8"), input);
  double squares = 0;
  for (int64_t i = 0; i < prepared.packed.values.size(); ++i)
    squares += prepared.packed.values.float_at(i) * prepared.packed.values.float_at(i);
  return predicted_noise(grid, input) * factor_of(layer) * factor_of(layer) * squares /
         static_cast<double>(prepared.product.channels());
}

}  // namespace

std::optional<std::string> why_no_bias(const Graph& graph, const Layer& layer) {
  if (layer.operation == "MatMul") return "MatMul has no bias";
  const auto product = product_of(graph, layer);
  if (product && product->groups > 1 && layer.operation == "ConvTranspose") return "the convolution is grouped";
  const bool has_bias = layer.inputs.size() > 2 && !layer.inputs[2].empty();
  if (!has_bias) return std::nullopt;
  if (!product || product->bias.empty()) return "the bias is not one constant number an output channel";
  if (layer.operation == "Gemm" && float_attribute(layer, "beta", 1) == 0) return "the bias does not count";
  return std::nullopt;
}

Result<PreparedProduct> prepare_product(const Graph& graph, const Layer& layer, const ProductScheme& scheme,
                                        const Statistics& statistics) {
  PreparedProduct prepared{*product_of(graph, layer), {}, {}};
  const Product& product = prepared.product;
  const Tensor& weights = graph.constants.at(product.weights);
  prepared.packed = pack_weights(product, weights, *find_weight_format(scheme.weights));
  if (!scheme.adaptive && !scheme.corrected) return prepared;
  HOIST_TRY(const ValueStatistics* input, statistics_of(statistics, product.input));
  if (scheme.adaptive) {
    auto moments = input->second_moments.find(layer.name);
    if (moments == input->second_moments.end()) {
      return Diagnostic{layer.name, "there are no second moments of what this layer reads",
                        "have the calibrator collect them"};
    }
    round_adaptively(product, weights, *moments->second, prepared.packed);
  }
  if (scheme.corrected) prepared.bias = corrected_bias(graph, layer, prepared, *input);
  return prepared;
}

Result<double> predicted_noise(const Graph& graph, const Site& site, const NeuralRule& rule,
                               const Statistics& statistics) {
  if (auto reason = why_not(rule, site, graph)) return Diagnostic{site.key(), *reason, ""};
  if (site.kind == SiteKind::value) {
    HOIST_TRY(const ValueStatistics* seen, statistics_of(statistics, site.value));
    return predicted_noise(grid_of(*find_value_format(rule.name), *seen), *seen);
  }
  const ProductScheme* scheme = find_scheme(rule.name);
  if (scheme == nullptr) return Diagnostic{site.key(), "a rule for functions has a bound, no noise", ""};
  const Layer& layer = *find_layer(graph, site.layer);
  HOIST_TRY(const PreparedProduct prepared, prepare_product(graph, layer, *scheme, statistics));
  HOIST_TRY(const ValueStatistics* input, statistics_of(statistics, site.input));
  double noise = weight_noise(graph, layer, prepared, *input);
  if (auto moments = input->second_moments.find(layer.name); moments != input->second_moments.end()) {
    const double all =
        layer_error(prepared.product, graph.constants.at(site.weights), prepared.packed, *moments->second);
    if (!prepared.bias) noise = factor_of(layer) * factor_of(layer) * all;
  }
  if (scheme->activation == ActivationUse::dynamic) noise += dynamic_noise(layer, prepared, *input);
  return noise;
}

}  // namespace hoist
