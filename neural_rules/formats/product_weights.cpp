#include "neural_rules/formats/product_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ir/operators/operators.h"
#include "neural_rules/formats/formats.h"
#include "neural_rules/formats/rounding.h"
#include "neural_rules/functions/sums.h"
#include "neural_rules/model/flow.h"

namespace hoist {
namespace {

Result<const ValueStatistics*> statistics_of(const Statistics& statistics, const std::string& value) {
  auto found = statistics.find(value);
  if (found == statistics.end())
    return Diagnostic{value, "there are no statistics of this value", "calibrate the model first"};
  return &found->second;
}

// The factor of a contraction's sums (Gemm's alpha).
double factor_of(const Definition& layer) { return float_attribute(layer, "alpha", 1); }

// Mean and variance of the input of each term in a channel's sum.
class InputMoments {
 public:
  InputMoments(const Product& product, const ValueStatistics& input) : terms_(product.terms()) {
    const bool transposed = product.channel_axis == 1 && product.sum_axis == 0 && product.shape.size() > 2;
    const int64_t groups = transposed ? 1 : product.groups, inputs = product.shape[product.sum_axis];
    const bool by_channel = static_cast<int64_t>(input.channels.size()) == inputs * groups;
    const int64_t inner = terms_ / inputs;
    channels_a_group_ = std::max<int64_t>(product.channels() / groups, 1);
    for (int64_t group = 0; group < groups; ++group) {
      for (int64_t term = 0; term < terms_; ++term) {
        double mean = input.mean, mean_square = input.mean_square;
        if (by_channel) {
          const auto& channel = input.channels[static_cast<size_t>(group * inputs + term / inner)];
          mean = channel.mean;
          mean_square = channel.mean_square;
        }
        terms_of_groups_.push_back({mean, std::max(mean_square - mean * mean, 0.0)});
      }
    }
  }

  struct Term {
    double mean = 0, variance = 0;
  };
  /// The moments of the terms() inputs of an output channel.
  const Term* of_channel(int64_t channel) const {
    return terms_of_groups_.data() + channel / channels_a_group_ * terms_;
  }

 private:
  int64_t terms_, channels_a_group_;
  std::vector<Term> terms_of_groups_;
};

// Calls f(position, channel, term) for all weights, including further matrices of a stack and further taps of a
// transposed filter.
template <class F>
void for_each_weight(const Product& product, F f) {
  int64_t inner = 1, terms = product.terms();
  for (size_t i = product.sum_axis + product.sum_axes; i < product.shape.size(); ++i) inner *= product.shape[i];
  int64_t term = 0, within = 0;
  layout_of(product, {}).for_each(element_count(product.shape), [&](int64_t i, int64_t channel) {
    f(static_cast<size_t>(i), static_cast<size_t>(channel), static_cast<size_t>(term));
    if (++within < inner) return;
    within = 0;
    if (++term == terms) term = 0;
  });
}

// b += E[W x] - E[W' x], in the units of the layer's bias input.
Tensor corrected_bias(const Program& program, const Definition& layer, const PreparedProduct& prepared,
                      const ValueStatistics& input) {
  const Product& product = prepared.product;
  const std::span<const float> weights = program.constants.at(product.weights).floats();
  const std::span<const float> rounded = prepared.packed.values.floats();
  const InputMoments moments(product, input);
  std::vector<double> bias(static_cast<size_t>(product.channels()));
  for_each_weight(product, [&](size_t i, size_t channel, size_t term) {
    const double difference = static_cast<double>(weights[i]) - rounded[i];
    bias[channel] += difference * moments.of_channel(static_cast<int64_t>(channel))[term].mean;
  });
  const double beta = float_attribute(layer, "beta", 1);
  for (size_t c = 0; c < bias.size(); ++c) {
    bias[c] *= factor_of(layer) / beta;
    if (!product.bias.empty()) bias[c] += program.constants.at(product.bias).float_at(static_cast<int64_t>(c));
  }
  return Tensor::of(Scalar::f32, {product.channels()}, bias);
}

// The output error caused by the weights: the mean over output channels of E[(sum of dw x)^2].
double weight_noise(const Program& program, const Definition& layer, const PreparedProduct& prepared,
                    const ValueStatistics& input) {
  const Product& product = prepared.product;
  const std::span<const float> weights = program.constants.at(product.weights).floats();
  const std::span<const float> rounded = prepared.packed.values.floats();
  const InputMoments moments(product, input);
  const auto channels = static_cast<size_t>(product.channels());
  std::vector<double> means(channels), variances(channels);
  for_each_weight(product, [&](size_t i, size_t channel, size_t term) {
    const double difference = static_cast<double>(rounded[i]) - weights[i];
    const InputMoments::Term& read = moments.of_channel(static_cast<int64_t>(channel))[term];
    means[channel] += difference * read.mean;
    variances[channel] += difference * difference * read.variance;
  });
  double sum = 0;
  for (size_t c = 0; c < channels; ++c) sum += variances[c] + (prepared.bias ? 0 : means[c] * means[c]);
  return factor_of(layer) * factor_of(layer) * sum / static_cast<double>(channels);
}

// Inputs, products and partial sums are each rounded to f16; the first partial sum is the first product.
double half_noise(const Program& program, const Product& product, const ValueStatistics& input) {
  const std::span<const float> weights = program.constants.at(product.weights).floats();
  const InputMoments moments(product, input);
  const auto channels = static_cast<size_t>(product.channels());
  std::vector<double> means(channels), variances(channels);
  double squares = 0;
  int64_t roundings = 0, sums = 0;
  for_each_weight(product, [&](size_t i, size_t channel, size_t term) {
    const double weight = weights[i];
    const InputMoments::Term& read = moments.of_channel(static_cast<int64_t>(channel))[term];
    if (term == 0) {
      means[channel] = variances[channel] = 0;
      ++sums;
    }
    means[channel] += weight * read.mean;
    variances[channel] += weight * weight * read.variance;
    const double product_square = weight * weight * (read.variance + read.mean * read.mean);
    squares += 2 * product_square;
    if (term != 0) squares += variances[channel] + means[channel] * means[channel];
    roundings += 2;
  });
  return (half_rounding_noise * squares + half_subnormal_noise * static_cast<double>(roundings)) /
         static_cast<double>(sums);
}

// Rounding the input to 8 bits over the calibrated range, propagated through the weights.
double dynamic_noise(const Definition& layer, const PreparedProduct& prepared, const ValueStatistics& input) {
  const Grid grid = grid_of(ValueFormat{Scalar::u8}, input);
  double squares = 0;
  for (const double w : prepared.packed.values.floats()) squares += w * w;
  return predicted_noise(grid, input) * factor_of(layer) * factor_of(layer) * squares /
         static_cast<double>(prepared.product.channels());
}

std::string type_text(const Tensor& tensor) {
  return fmt::format("[{}]{}", fmt::join(tensor.shape(), "]["), row(tensor.scalar()).name);
}

Result<Nothing> take_numbers(const Definition& layer, const Tensor& numbers, PackedWeights& packed) {
  const std::string hint = "compile without the record to make another one";
  if (numbers.scalar() != packed.numbers.scalar() || numbers.shape() != packed.numbers.shape()) {
    return Diagnostic{
        layer_name(layer),
        fmt::format("its rounded weights are {}, expected {}", type_text(numbers), type_text(packed.numbers)), hint};
  }
  const Range range = numbers_of(packed.format);
  int64_t bad = -1;
  packed.layout.for_each(numbers.size(), [&](int64_t i, int64_t scale) {
    const auto number = static_cast<double>(numbers.integer_at(i));
    if (number < range.low || number > range.high) bad = i;
    packed.values.set_float(i, packed.value_at(scale, number));
  });
  if (bad >= 0) {
    return Diagnostic{layer_name(layer),
                      fmt::format("rounded number {} is {}, {} goes from {} to {}", bad, numbers.integer_at(bad),
                                  row(packed.format.scalar).name, range.low, range.high),
                      hint};
  }
  packed.numbers = numbers;
  return Nothing{};
}

// Rounding is slow, so rounded weights in the statistics are reused.
Result<Nothing> round_with_data(const Definition& layer, const NeuralRule& rule, const Product& product,
                                const Tensor& weights, const ValueStatistics& input, PackedWeights& packed) {
  if (const auto rules = input.rounded.find(layer_name(layer)); rules != input.rounded.end()) {
    const auto known = rules->second.find(std::string(rule.name));
    if (known != rules->second.end()) return take_numbers(layer, *known->second, packed);
  }
  const auto moments = input.second_moments.find(layer_name(layer));
  if (moments == input.second_moments.end()) {
    return Diagnostic{layer_name(layer), "there are no second moments of the layer's input",
                      "have the calibrator collect them"};
  }
  round_adaptively(product, weights, *moments->second, packed);
  return Nothing{};
}

}  // namespace

std::optional<std::string> why_no_bias(const Program& program, const Definition& layer) {
  const OperatorCall& call = *layer.expression->operation;
  const OperatorRow* row = find_operator(call.domain, call.name, call.version);
  if (row == nullptr || row->most_inputs < 3) return call.name + " has no bias";
  const auto product = product_of(program, layer);
  if (product && product->groups > 1 && !product->whole_sums) return "the convolution is grouped";
  const bool has_bias = std::find(call.operands.begin(), call.operands.end(), 2) != call.operands.end();
  if (!has_bias) return std::nullopt;
  if (!product || product->bias.empty()) return "the bias is not a constant with one value for each output channel";
  if (float_attribute(layer, "beta", 1) == 0) return "the bias has no effect";
  return std::nullopt;
}

Result<PreparedProduct> prepare_product(const Program& program, const Definition& layer, const NeuralRule& rule,
                                        const Statistics& statistics) {
  PreparedProduct prepared{*product_of(program, layer), {}, {}};
  const Product& product = prepared.product;
  const ProductScheme& scheme = *rule.product;
  const Tensor& weights = program.constants.at(product.weights);
  prepared.packed = pack_weights(product, weights, scheme.weights);
  if (!scheme.adaptive && !scheme.corrected) return prepared;
  HOIST_TRY(const ValueStatistics* input, statistics_of(statistics, product.input));
  if (scheme.adaptive) HOIST_TRY_VOID(round_with_data(layer, rule, product, weights, *input, prepared.packed));
  if (scheme.corrected) prepared.bias = corrected_bias(program, layer, prepared, *input);
  return prepared;
}

Result<double> predicted_noise(const Program& program, const Site& site, const NeuralRule& rule,
                               const Statistics& statistics) {
  if (auto reason = why_not(rule, site, program)) return Diagnostic{site.key(), *reason, ""};
  if (site.kind == SiteKind::value) {
    HOIST_TRY(const ValueStatistics* seen, statistics_of(statistics, site.value));
    return predicted_noise(*rule.stored, *seen);
  }
  const auto& scheme = rule.product;
  if (!scheme) return Diagnostic{site.key(), "a rule for functions has a bound instead of noise", ""};
  const Definition& layer = *find_layer(program, site.layer);
  HOIST_TRY(const PreparedProduct prepared, prepare_product(program, layer, rule, statistics));
  HOIST_TRY(const ValueStatistics* input, statistics_of(statistics, site.input));
  double noise = weight_noise(program, layer, prepared, *input);
  if (auto moments = input->second_moments.find(layer_name(layer)); moments != input->second_moments.end()) {
    const double all =
        layer_error(prepared.product, program.constants.at(site.weights), prepared.packed, *moments->second);
    if (!prepared.bias) noise = factor_of(layer) * factor_of(layer) * all;
  }
  if (scheme->half) noise += factor_of(layer) * factor_of(layer) * half_noise(program, prepared.product, *input);
  if (scheme->activation == ActivationUse::dynamic) noise += dynamic_noise(layer, prepared, *input);
  return noise;
}

}  // namespace hoist
