#include "neural_rules/equalisation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "neural_rules/flow.h"
#include "neural_rules/product.h"

namespace hoist {
namespace {

constexpr int most_rounds = 20;
// Ranges that differ by less than this share count as equal.
constexpr double tolerance = 1e-3;
constexpr int alphas = 20;

class Scaler {
 public:
  explicit Scaler(Graph& graph) : graph_(graph), flow_(flow_of(graph)) {}

  Graph& graph() { return graph_; }
  const Flow& flow() const { return flow_; }

  /// The value's only reader, or nothing where it has more or is an output.
  const Layer* only_reader(const std::string& value) const {
    auto readers = flow_.readers.find(value);
    if (flow_.outputs.count(value) != 0 || readers == flow_.readers.end() || readers->second.size() != 1)
      return nullptr;
    return &graph_.layers[readers->second[0]];
  }

  bool is_own(const std::string& constant) const {
    auto readers = flow_.readers.find(constant);
    return readers != flow_.readers.end() && readers->second.size() == 1 && flow_.outputs.count(constant) == 0 &&
           graph_.constants.count(constant) != 0;
  }

  /// Back from a value through layers that scale passes through to the layer that makes its channels; null where
  /// somebody else reads on the way.
  const Layer* maker_of(std::string value) const {
    for (auto made = flow_.producer.find(value); made != flow_.producer.end(); made = flow_.producer.find(value)) {
      const Layer& layer = graph_.layers[made->second];
      if (!passes_scale(layer)) return &layer;
      value = layer.inputs[0];
      if (only_reader(value) == nullptr) return nullptr;
    }
    return nullptr;
  }

  static bool passes_scale(const Layer& layer) {
    static const std::set<std::string> names = {"Relu",          "LeakyRelu",   "Identity",         "MaxPool",
                                                "GlobalMaxPool", "AveragePool", "GlobalAveragePool"};
    return layer.domain.empty() && names.count(layer.operation) != 0;
  }

  /// Multiplies element i of a constant by factor[channel(i)].
  template <class F>
  void multiply(const std::string& name, const std::vector<double>& factor, F channel) {
    Tensor& tensor = graph_.constants.at(name);
    for (int64_t i = 0; i < tensor.size(); ++i)
      tensor.set_float(i, tensor.float_at(i) * factor[static_cast<size_t>(channel(i))]);
  }

 private:
  Graph& graph_;
  Flow flow_;
};

// The input channel that a weight multiplies.
int64_t input_channel(const Product& p, int64_t i) {
  int64_t inner = 1;
  for (size_t k = p.sum_axis + 1; k < p.shape.size(); ++k) inner *= p.shape[k];
  const int64_t within = i / inner % p.shape[p.sum_axis];
  if (p.groups == 1) return within;
  const int64_t output = i / (inner * p.shape[p.sum_axis]);
  return output / (p.channels() / p.groups) * p.shape[p.sum_axis] + within;
}

int64_t input_channels(const Product& p) { return p.shape[p.sum_axis] * p.groups; }

int64_t output_channel(const Product& p, int64_t i) {
  int64_t inner = 1;
  for (size_t k = p.channel_axis + 1; k < p.shape.size(); ++k) inner *= p.shape[k];
  return i / inner % p.channels();
}

// Products whose channels can be scaled on either side: one matrix or filter bank, constants of their own.
std::optional<Product> scalable(const Scaler& scaler, const Graph& graph, const Layer& layer) {
  auto product = product_of(graph, layer);
  if (!product || layer.operation == "ConvTranspose" || !scaler.is_own(product->weights)) return std::nullopt;
  if (layer.operation == "MatMul" && product->shape.size() > 2) return std::nullopt;
  if (integer_attribute(layer, "transA", 0) != 0) return std::nullopt;
  return product;
}

// The bias follows the outputs' scale, so it has to be there to be changed or not at all.
bool bias_follows(const Scaler& scaler, const Layer& layer, const Product& product) {
  if (layer.inputs.size() < 3 || layer.inputs[2].empty()) return true;
  return !product.bias.empty() && scaler.is_own(product.bias);
}

std::vector<double> largest_weights(const Tensor& weights, int64_t channels, const Product& product,
                                    int64_t (*channel)(const Product&, int64_t)) {
  std::vector<double> largest(static_cast<size_t>(channels));
  for (int64_t i = 0; i < weights.size(); ++i) {
    double& most = largest[static_cast<size_t>(channel(product, i))];
    most = std::max(most, std::abs(weights.float_at(i)));
  }
  return largest;
}

std::vector<double> inverse(std::vector<double> factor) {
  for (double& f : factor) f = 1 / f;
  return factor;
}

void scale_outputs(Scaler& scaler, const Product& product, const std::vector<double>& factor) {
  scaler.multiply(product.weights, factor, [&](int64_t i) { return output_channel(product, i); });
  if (!product.bias.empty()) scaler.multiply(product.bias, factor, [](int64_t i) { return i; });
}

void scale_inputs(Scaler& scaler, const Product& product, const std::vector<double>& factor) {
  scaler.multiply(product.weights, factor, [&](int64_t i) { return input_channel(product, i); });
}

// A pair of products and the channels between them.
struct Pair {
  const Layer *first_layer, *second_layer;
  Product first, second;
};

std::vector<Pair> pairs_of(const Scaler& scaler, const Graph& graph) {
  std::vector<Pair> pairs;
  for (const Layer& layer : graph.layers) {
    auto second = scalable(scaler, graph, layer);
    if (!second || scaler.only_reader(second->input) == nullptr) continue;
    const Layer* before = scaler.maker_of(second->input);
    auto first = before == nullptr ? std::nullopt : scalable(scaler, graph, *before);
    if (!first || scaler.only_reader(first->output) == nullptr) continue;
    // A bias that is no vector of channels, or a product of matrices behind a picture, cannot follow.
    if (!bias_follows(scaler, *before, *first) || first->channels() != input_channels(*second)) continue;
    if ((before->operation == "Conv") != (layer.operation == "Conv")) continue;
    pairs.push_back({before, &layer, *first, *second});
  }
  return pairs;
}

// Whether anything moved by more than the tolerance.
bool equalise_pair(Scaler& scaler, const Pair& pair) {
  const Graph& graph = scaler.graph();
  const auto made =
      largest_weights(graph.constants.at(pair.first.weights), pair.first.channels(), pair.first, output_channel);
  const auto read =
      largest_weights(graph.constants.at(pair.second.weights), input_channels(pair.second), pair.second, input_channel);
  std::vector<double> factor(made.size(), 1);
  bool moved = false;
  for (size_t c = 0; c < made.size(); ++c) {
    if (made[c] <= 0 || read[c] <= 0) continue;
    factor[c] = std::sqrt(read[c] / made[c]);
    moved = moved || std::abs(factor[c] - 1) > tolerance;
  }
  if (!moved) return false;
  scale_outputs(scaler, pair.first, factor);
  scale_inputs(scaler, pair.second, inverse(factor));
  return true;
}

// ---- Smoothing -----------------------------------------------------------------------------------------------------

// The constants by which channels of a value can be scaled where it is made: [channels] each, or the weights and bias
// of a product.
struct Source {
  const Layer* layer = nullptr;
  std::optional<Product> product;
  std::vector<std::string> vectors;
};

std::optional<Source> source_of(const Scaler& scaler, const Graph& graph, const std::string& value, int64_t channels,
                                bool pictures) {
  Source source;
  source.layer = scaler.maker_of(value);
  if (source.layer == nullptr) return std::nullopt;
  if (auto product = scalable(scaler, graph, *source.layer)) {
    const bool picture = source.layer->operation == "Conv";
    if (picture != pictures || product->channels() != channels || !bias_follows(scaler, *source.layer, *product))
      return std::nullopt;
    source.product = product;
    return source;
  }
  // Both scale along the dimension in which the readers have their channels.
  if (source.layer->operation != (pictures ? "BatchNormalization" : "LayerNormalization")) return std::nullopt;
  for (size_t i = 1; i < std::min<size_t>(source.layer->inputs.size(), 3); ++i) {
    const std::string& name = source.layer->inputs[i];
    if (name.empty()) continue;
    if (!scaler.is_own(name) || graph.constants.at(name).shape() != std::vector<int64_t>{channels}) return std::nullopt;
    source.vectors.push_back(name);
  }
  return source.vectors.empty() ? std::nullopt : std::optional(source);
}

// All readers as products over the same dimension of the value, that of its statistics; or nothing.
std::vector<Product> product_readers(const Scaler& scaler, const Graph& graph, const std::string& value,
                                     bool pictures) {
  std::vector<Product> products;
  auto readers = scaler.flow().readers.find(value);
  if (readers == scaler.flow().readers.end() || scaler.flow().outputs.count(value) != 0) return {};
  for (size_t reader : readers->second) {
    auto product = scalable(scaler, graph, graph.layers[reader]);
    const bool picture = graph.layers[reader].operation == "Conv";
    if (!product || product->input != value || picture != pictures) return {};
    products.push_back(*product);
  }
  return products;
}

std::vector<double> smoothing_factors(const ValueStatistics& input, const std::vector<double>& weights, double alpha) {
  std::vector<double> factor(weights.size(), 1);
  for (size_t c = 0; c < weights.size(); ++c) {
    const double x = std::max(-input.channels[c].low, input.channels[c].high);
    if (x > 0 && weights[c] > 0) factor[c] = std::pow(weights[c], 1 - alpha) / std::pow(x, alpha);
  }
  // Only ratios matter to the rounding; their geometric mean of 1 keeps numbers where they were.
  double logarithm = 0;
  for (double f : factor) logarithm += std::log(f);
  const double common = std::exp(-logarithm / static_cast<double>(factor.size()));
  for (double& f : factor) f *= common;
  return factor;
}

// What rounding to 8 bits costs at the outputs of the products when channels are multiplied by the factors: step^2 / 12
// of the activation through the weights, and that of each output channel's weights through the activation.
double rounding_cost(const Graph& graph, const std::vector<Product>& products, const ValueStatistics& input,
                     const std::vector<double>& factor) {
  double low = 0, high = 0;
  for (size_t c = 0; c < factor.size(); ++c) {
    low = std::min(low, input.channels[c].low * factor[c]);
    high = std::max(high, input.channels[c].high * factor[c]);
  }
  const double step = (high - low) / 255;
  double cost = 0;
  for (const Product& product : products) {
    const Tensor& weights = graph.constants.at(product.weights);
    std::vector<double> largest(static_cast<size_t>(product.channels())), power(largest.size());
    for (int64_t i = 0; i < weights.size(); ++i) {
      const auto c = static_cast<size_t>(input_channel(product, i));
      const auto o = static_cast<size_t>(output_channel(product, i));
      const double w = weights.float_at(i) / factor[c];
      cost += step * step / 12 * w * w;
      largest[o] = std::max(largest[o], std::abs(w));
      power[o] += input.channels[c].mean_square * factor[c] * factor[c];
    }
    for (size_t o = 0; o < largest.size(); ++o) cost += std::pow(largest[o] / 127, 2) / 12 * power[o];
  }
  return cost;
}

bool smooth_value(Scaler& scaler, const std::string& value, const ValueStatistics& input) {
  Graph& graph = scaler.graph();
  const bool pictures = input.channel_axis == 1;
  const std::vector<Product> products = product_readers(scaler, graph, value, pictures);
  const auto channels = static_cast<int64_t>(input.channels.size());
  if (products.empty() || channels == 0) return false;
  std::vector<double> largest(input.channels.size());
  for (const Product& product : products) {
    if (input_channels(product) != channels) return false;
    const auto own = largest_weights(graph.constants.at(product.weights), channels, product, input_channel);
    for (size_t c = 0; c < own.size(); ++c) largest[c] = std::max(largest[c], own[c]);
  }
  const auto source = source_of(scaler, graph, value, channels, pictures);
  if (!source) return false;
  const std::vector<double> as_is(largest.size(), 1);
  std::vector<double> best = as_is;
  double least = rounding_cost(graph, products, input, as_is), chosen = 0;
  for (int i = 1; i <= alphas; ++i) {
    const double alpha = static_cast<double>(i) / alphas;
    const std::vector<double> factor = smoothing_factors(input, largest, alpha);
    const double cost = rounding_cost(graph, products, input, factor);
    if (cost >= least) continue;
    least = cost;
    best = factor;
    chosen = alpha;
  }
  if (best == as_is) return false;
  if (source->product) scale_outputs(scaler, *source->product, best);
  for (const std::string& vector : source->vectors) scaler.multiply(vector, best, [](int64_t i) { return i; });
  for (const Product& product : products) scale_inputs(scaler, product, inverse(best));
  graph.steps.push_back({"smoothing", source->layer->name, RuleClass::rounding,
                         fmt::format("channels of {} divided, alpha = {}", value, chosen), ""});
  return true;
}

}  // namespace

std::vector<std::string> equalise(Graph& graph) {
  Scaler scaler(graph);
  const std::vector<Pair> pairs = pairs_of(scaler, graph);
  std::set<std::string> changed;
  for (int round = 0; round < most_rounds; ++round) {
    bool moved = false;
    for (const Pair& pair : pairs) {
      if (!equalise_pair(scaler, pair)) continue;
      moved = true;
      changed.insert({pair.first_layer->name, pair.second_layer->name});
    }
    if (!moved) break;
  }
  std::vector<std::string> layers;
  for (const Layer& layer : graph.layers) {
    if (changed.count(layer.name) == 0) continue;
    layers.push_back(layer.name);
    graph.steps.push_back({"equalisation", layer.name, RuleClass::rounding, "channels scaled between layers", ""});
  }
  return layers;
}

std::vector<std::string> smooth(Graph& graph, const Statistics& statistics) {
  Scaler scaler(graph);
  std::vector<std::string> smoothed;
  for (const auto& [value, input] : statistics) {
    if (smooth_value(scaler, value, input)) smoothed.push_back(value);
  }
  return smoothed;
}

}  // namespace hoist
