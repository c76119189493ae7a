#include "neural_rules/model/equalisation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "ir/text/program_text.h"
#include "neural_rules/model/flow.h"
#include "neural_rules/model/product.h"

namespace hoist {
namespace {

constexpr int most_rounds = 20;
// Ranges with a smaller relative difference count as equal.
constexpr double tolerance = 1e-3;
constexpr int alphas = 20;
// Largest remaining share of the cost for which SmoothQuant is worth another calibration.
constexpr double automatic_share = 0.5;
// Limits the factors: channels that are nearly silent on calibration data may not be on other data.
constexpr double largest_factor = 32;

class Scaler {
 public:
  explicit Scaler(Program& program) : program_(program), flow_(flow_of(program)) {}

  const Flow& flow() const { return flow_; }

  const Definition& definition(size_t layer) const { return program_.definitions[flow_.places[layer]]; }

  /// The value's only consumer, or nothing if it has several or is an output.
  const Definition* only_consumer(const std::string& value) const {
    auto consumers = flow_.consumers.find(value);
    if (flow_.outputs.count(value) != 0 || consumers == flow_.consumers.end() || consumers->second.size() != 1)
      return nullptr;
    return &definition(consumers->second[0]);
  }

  bool is_own(const std::string& constant) const {
    auto consumers = flow_.consumers.find(constant);
    return consumers != flow_.consumers.end() && consumers->second.size() == 1 && flow_.outputs.count(constant) == 0 &&
           program_.constants.count(constant) != 0;
  }

  /// Traces a value back through layers that propagate the scale of its channels, to the layer that produces them; null
  /// if an intermediate value has another consumer.
  const Definition* maker_of(std::string value, bool images) const {
    for (auto made = flow_.producer.find(value); made != flow_.producer.end(); made = flow_.producer.find(value)) {
      const auto carried = carries(value, images);
      if (!carried) return &definition(made->second);
      value = *carried;
      if (only_consumer(value) == nullptr) return nullptr;
    }
    return nullptr;
  }

  /// The value whose channel scale the definition of `value` propagates, or nothing.
  std::optional<std::string> carries(const std::string& value, bool images) const {
    const auto definition = flow_.definitions.find(value);
    if (definition == flow_.definitions.end() || facts_of(definition->second).product) return std::nullopt;
    const size_t rank = sizes_of(definition->second->type).size();
    const size_t channels = images ? 1 : rank - 1;
    if (rank < 2) return std::nullopt;
    for (Expr p : parameters_of(definition->second)) {
      if (flow_.floats.count(p->name) == 0 || sizes_of(p->type).size() != rank) continue;
      if (carries_scale(definition->second, {{p->name, channels}}) == channels) return p->name;
    }
    return std::nullopt;
  }

  /// The constants that scale the channels of a normalisation layer, if together they scale the whole result. Each has
  /// one element per channel and no other use.
  std::vector<std::string> scaling_vectors(const Definition& layer, int64_t channels, bool images) const {
    const auto definition = flow_.definitions.find(layer.value);
    if (definition == flow_.definitions.end()) return {};
    const size_t rank = sizes_of(definition->second->type).size();
    std::vector<std::string> vectors;
    for (Expr operand : layer.expression->children) {
      const Tensor* constant = find_constant(program_, operand->name);
      if (constant != nullptr && constant->shape() == std::vector<int64_t>{channels}) vectors.push_back(operand->name);
    }
    const auto scales = [&](const std::vector<std::string>& names) {
      std::map<std::string, size_t> dimensions;
      for (const std::string& name : names) dimensions[name] = 0;
      return carries_scale(definition->second, dimensions) == (images ? 1 : rank - 1) &&
             std::all_of(names.begin(), names.end(), [&](const std::string& name) { return is_own(name); });
    };
    for (size_t i = 0; i < vectors.size(); ++i) {
      for (size_t k = i + 1; k < vectors.size(); ++k) {
        if (scales({vectors[i], vectors[k]})) return {vectors[i], vectors[k]};
      }
      if (scales({vectors[i]})) return {vectors[i]};
    }
    return {};
  }

  /// Multiplies element i of a constant by factor[channel(i)].
  template <class F>
  void multiply(const std::string& name, const std::vector<double>& factor, F channel) {
    Tensor& tensor = program_.constants.at(name);
    for (int64_t i = 0; i < tensor.size(); ++i)
      tensor.set_float(i, tensor.float_at(i) * factor[static_cast<size_t>(channel(i))]);
  }

 private:
  Program& program_;
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

// Contractions whose channels can be scaled on either side: one matrix or filter bank, with constants that have no
// other use.
std::optional<Product> scalable(const Scaler& scaler, const Program& program, const Definition& layer) {
  auto product = product_of(program, layer);
  if (!product || !product->whole_sums || product->stacked || !scaler.is_own(product->weights)) return std::nullopt;
  return product->images || product->reads_rows ? product : std::nullopt;
}

// The bias scales with the outputs, so it must be absent or a constant that may be changed.
bool bias_follows(const Scaler& scaler, const Definition& layer, const Product& product) {
  const std::vector<int64_t>& operands = layer.expression->operation->operands;
  if (std::find(operands.begin(), operands.end(), 2) == operands.end()) return true;
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

// The constants that scale the channels of a value at its producer: vectors [channels], or the weights and bias of a
// contraction.
struct Source {
  const Definition* layer = nullptr;
  std::optional<Product> product;
  std::vector<std::string> vectors;
};

std::optional<Source> source_of(const Scaler& scaler, const Program& program, const std::string& value,
                                int64_t channels, bool images) {
  Source source;
  source.layer = scaler.maker_of(value, images);
  if (source.layer == nullptr) return std::nullopt;
  if (auto product = scalable(scaler, program, *source.layer)) {
    if (product->images != images || product->channels() != channels || !bias_follows(scaler, *source.layer, *product))
      return std::nullopt;
    source.product = product;
    return source;
  }
  source.vectors = scaler.scaling_vectors(*source.layer, channels, images);
  return source.vectors.empty() ? std::nullopt : std::optional(source);
}

// All consumers, as contractions over the same dimension of the value; empty if a consumer is another layer.
std::vector<Product> product_consumers(const Scaler& scaler, const Program& program, const std::string& value,
                                       bool images) {
  std::vector<Product> products;
  auto consumers = scaler.flow().consumers.find(value);
  if (consumers == scaler.flow().consumers.end() || scaler.flow().outputs.count(value) != 0) return {};
  for (size_t consumer : consumers->second) {
    auto product = scalable(scaler, program, scaler.definition(consumer));
    if (!product || product->input != value || product->images != images) return {};
    products.push_back(*product);
  }
  return products;
}

std::vector<double> smoothquant_factors(const ValueStatistics& input, const std::vector<double>& weights,
                                        double alpha) {
  std::vector<double> factor(weights.size(), 1);
  for (size_t c = 0; c < weights.size(); ++c) {
    const double x = std::max(-input.channels[c].low, input.channels[c].high);
    if (x > 0 && weights[c] > 0) factor[c] = std::pow(weights[c], 1 - alpha) / std::pow(x, alpha);
  }
  // Only ratios affect the rounding; a geometric mean of 1 keeps the magnitude of values.
  double logarithm = 0;
  for (double f : factor) logarithm += std::log(f);
  const double common = std::exp(-logarithm / static_cast<double>(factor.size()));
  for (double& f : factor) f = std::clamp(f * common, 1 / largest_factor, largest_factor);
  return factor;
}

// The weights of a contraction by input channel and output channel, which many factors are tried with.
struct ChannelWeights {
  size_t outputs = 0, groups = 1, inputs = 0;  ///< inputs of a group
  double taps = 1;                             ///< number of weights between an input and an output
  std::vector<double> squares;                 ///< sums by input channel
  std::vector<float> largest;                  ///< magnitudes [outputs][inputs]

  size_t first_input(size_t output) const { return output / (outputs / groups) * inputs; }
};

ChannelWeights by_channels(const Program& program, const Product& product) {
  const Tensor& weights = program.constants.at(product.weights);
  ChannelWeights out;
  out.outputs = static_cast<size_t>(product.channels());
  out.groups = static_cast<size_t>(product.groups);
  out.inputs = static_cast<size_t>(product.shape[product.sum_axis]);
  out.squares.resize(static_cast<size_t>(input_channels(product)));
  out.largest.resize(out.outputs * out.inputs);
  const int64_t count = weights.size();
  out.taps = static_cast<double>(count) / static_cast<double>(out.largest.size());
  for (int64_t i = 0; i < count; ++i) {
    const auto c = static_cast<size_t>(input_channel(product, i));
    const auto o = static_cast<size_t>(output_channel(product, i));
    const auto w = static_cast<float>(weights.float_at(i));
    out.squares[c] += static_cast<double>(w) * w;
    float& largest = out.largest[o * out.inputs + c - out.first_input(o)];
    largest = std::max(largest, std::abs(w));
  }
  return out;
}

// The error of rounding to 8 bits at the contractions' outputs if channels are multiplied by the factors: step^2 / 12
// of the activation, propagated through the weights, and of each output channel's weights, propagated through the
// activation.
double rounding_cost(const std::vector<ChannelWeights>& products, const ValueStatistics& input,
                     const std::vector<double>& factor) {
  double low = 0, high = 0;
  std::vector<double> inverses, squares;
  for (size_t c = 0; c < factor.size(); ++c) {
    low = std::min(low, input.channels[c].low * factor[c]);
    high = std::max(high, input.channels[c].high * factor[c]);
    inverses.push_back(1 / factor[c]);
    squares.push_back(input.channels[c].mean_square * factor[c] * factor[c]);
  }
  const double step = (high - low) / 255;
  double cost = 0;
  for (const ChannelWeights& weights : products) {
    for (size_t c = 0; c < factor.size(); ++c)
      cost += step * step / 12 * weights.squares[c] * inverses[c] * inverses[c];
    for (size_t o = 0; o < weights.outputs; ++o) {
      const float* of_output = weights.largest.data() + o * weights.inputs;
      const size_t first = weights.first_input(o);
      double largest = 0, power = 0;
      for (size_t c = 0; c < weights.inputs; ++c) {
        largest = std::max(largest, of_output[c] * inverses[first + c]);
        power += squares[first + c];
      }
      cost += std::pow(largest / 127, 2) / 12 * power * weights.taps;
    }
  }
  return cost;
}

// A value whose channels can be scaled: its producer and its consumers.
struct Scalable {
  Source source;
  std::vector<Product> consumers;
  int64_t channels = 0;
  bool images = false;  ///< channels are the second dimension, not the last
};

std::optional<Scalable> scalable_value(const Scaler& scaler, const Program& program, const std::string& value) {
  const auto consumers = scaler.flow().consumers.find(value);
  if (consumers == scaler.flow().consumers.end()) return std::nullopt;
  Scalable out;
  const auto consumer = product_of(program, scaler.definition(consumers->second[0]));
  out.images = consumer && consumer->images;
  out.consumers = product_consumers(scaler, program, value, out.images);
  if (out.consumers.empty()) return std::nullopt;
  out.channels = input_channels(out.consumers[0]);
  for (const Product& product : out.consumers) {
    if (input_channels(product) != out.channels) return std::nullopt;
  }
  auto source = source_of(scaler, program, value, out.channels, out.images);
  if (!source) return std::nullopt;
  out.source = std::move(*source);
  return out;
}

std::vector<std::string> constants_of(const Scalable& at) {
  std::vector<std::string> out = at.source.vectors;
  if (at.source.product) out.push_back(at.source.product->weights);
  if (at.source.product && !at.source.product->bias.empty()) out.push_back(at.source.product->bias);
  for (const Product& product : at.consumers) out.push_back(product.weights);
  return out;
}

void scale(Scaler& scaler, const Scalable& at, const std::vector<double>& factor) {
  if (at.source.product) scale_outputs(scaler, *at.source.product, factor);
  for (const std::string& vector : at.source.vectors) scaler.multiply(vector, factor, [](int64_t i) { return i; });
  for (const Product& product : at.consumers) scale_inputs(scaler, product, inverse(factor));
}

// Values with one contraction as producer and one as only consumer, in the order of the program.
std::vector<Scalable> between_products(const Scaler& scaler, const Program& program) {
  std::vector<Scalable> out;
  for (size_t i = 0; i < scaler.flow().calls.size(); ++i) {
    const auto consumer = scalable(scaler, program, scaler.definition(i));
    auto at = consumer ? scalable_value(scaler, program, consumer->input) : std::nullopt;
    if (at && at->source.product && at->consumers.size() == 1) out.push_back(std::move(*at));
  }
  return out;
}

// Empty if all channels are balanced within the tolerance.
std::vector<double> equalising_factors(const Program& program, const Scalable& at) {
  const Product &first = *at.source.product, &second = at.consumers[0];
  const auto made = largest_weights(program.constants.at(first.weights), at.channels, first, output_channel);
  const auto read = largest_weights(program.constants.at(second.weights), at.channels, second, input_channel);
  std::vector<double> factor(made.size(), 1);
  bool moved = false;
  for (size_t c = 0; c < made.size(); ++c) {
    if (made[c] <= 0 || read[c] <= 0) continue;
    factor[c] = std::sqrt(read[c] / made[c]);
    moved = moved || std::abs(factor[c] - 1) > tolerance;
  }
  return moved ? factor : std::vector<double>{};
}

// The factors of the smallest cost, or nothing if they leave more than `share` of the cost.
std::optional<std::vector<double>> best_smoothquant(const Program& program, const Scalable& at,
                                                    const ValueStatistics& input, double share) {
  if (static_cast<int64_t>(input.channels.size()) != at.channels || at.images != (input.channel_axis == 1))
    return std::nullopt;
  std::vector<ChannelWeights> products;
  std::vector<double> largest(input.channels.size());
  for (const Product& product : at.consumers) {
    const ChannelWeights& weights = products.emplace_back(by_channels(program, product));
    for (size_t o = 0; o < weights.outputs; ++o) {
      for (size_t c = 0; c < weights.inputs; ++c) {
        double& most = largest[weights.first_input(o) + c];
        most = std::max<double>(most, weights.largest[o * weights.inputs + c]);
      }
    }
  }
  const std::vector<double> as_is(largest.size(), 1);
  std::optional<std::vector<double>> best;
  const double before = rounding_cost(products, input, as_is);
  double least = before;
  for (int i = 1; i <= alphas; ++i) {
    std::vector<double> factor = smoothquant_factors(input, largest, static_cast<double>(i) / alphas);
    const double cost = rounding_cost(products, input, factor);
    if (cost >= least || cost > share * before) continue;
    least = cost;
    best = std::move(factor);
  }
  return best;
}

}  // namespace

Result<ChannelScaling> parse_channel_scaling(std::string_view name) {
  if (name == "auto") return ChannelScaling::automatic;
  if (name == "off") return ChannelScaling::off;
  if (name == "equalise") return ChannelScaling::equalise;
  if (name == "smoothquant") return ChannelScaling::smoothquant;
  return Diagnostic{"--scale-channels", "is " + std::string(name), "it is auto, off, equalise or smoothquant"};
}

ChannelFactors equalisation(const Program& program) {
  Program scratch = program;
  Scaler scaler(scratch);
  const std::vector<Scalable> values = between_products(scaler, scratch);
  ChannelFactors out;
  for (int round = 0; round < most_rounds; ++round) {
    bool moved = false;
    for (const Scalable& at : values) {
      const std::vector<double> factor = equalising_factors(scratch, at);
      if (factor.empty()) continue;
      moved = true;
      scale(scaler, at, factor);
      std::vector<double>& all = out[at.consumers[0].input];
      all.resize(factor.size(), 1);
      for (size_t c = 0; c < factor.size(); ++c) all[c] *= factor[c];
    }
    if (!moved) break;
  }
  return out;
}

ChannelFactors smoothquant(const Program& program, const Statistics& statistics, double share) {
  Program scratch = program;
  Scaler scaler(scratch);
  ChannelFactors out;
  for (const auto& [value, input] : statistics) {
    const auto at = scalable_value(scaler, scratch, value);
    auto factor = at ? best_smoothquant(scratch, *at, input, share) : std::nullopt;
    if (!factor) continue;
    scale(scaler, *at, *factor);
    out[value] = std::move(*factor);
  }
  return out;
}

ChannelFactors channel_factors(const Program& program, const Statistics& statistics, ChannelScaling how) {
  if (how == ChannelScaling::off) return {};
  if (how == ChannelScaling::equalise) return equalisation(program);
  return smoothquant(program, statistics, how == ChannelScaling::automatic ? automatic_share : 1);
}

Result<Nothing> scale_channels(Program& program, const ChannelFactors& factors) {
  Scaler scaler(program);
  for (const auto& [value, factor] : factors) {
    const auto problem = [&, name = value](const std::string& what) { return Diagnostic{"value " + name, what, ""}; };
    const auto at = scalable_value(scaler, program, value);
    if (!at) return problem("has no channels that can be scaled");
    if (static_cast<int64_t>(factor.size()) != at->channels)
      return problem(fmt::format("has {} channels, not {}", at->channels, factor.size()));
    if (!std::all_of(factor.begin(), factor.end(), [](double f) { return f > 0 && std::isfinite(f); }))
      return problem("has a factor that is not a positive number");
    scale(scaler, *at, factor);
    const auto [least, most] = std::minmax_element(factor.begin(), factor.end());
    ProgramStep step = replayed_step(std::string(channel_scaling_step));
    step.value = value;
    step.layer = layer_name(*at->source.layer);
    step.rule_class = RuleClass::rounding;
    step.note = fmt::format(
        "channels of {} are multiplied by {:.3g} to {:.3g} and divided by the same at their uses, to fit 8 bits better",
        value, *least, *most);
    const std::string name = ValueNames(program).make(value + "/factors");
    step.parameters["factors"] = name;
    const Tensor factors_tensor = Tensor::of(Scalar::f64, {at->channels}, factor);
    step.constants.push_back({name, type_of(factors_tensor), constant_hash(factors_tensor), factors_tensor});
    for (const std::string& constant : constants_of(*at)) {
      auto withheld = program.withheld.find(constant);
      if (withheld != program.withheld.end()) withheld->second.clear();  // its hash becomes known when a step states it
      StepConstant changed = step_constant(program, constant);
      changed.value.reset();
      step.constants.push_back(std::move(changed));
    }
    program.steps.push_back(std::move(step));
  }
  return Nothing{};
}

Result<Nothing> repeat_scaling(Program& program, const ProgramStep& step) {
  const auto named = step.parameters.find("factors");
  const auto factors = std::find_if(step.constants.begin(), step.constants.end(), [&](const StepConstant& constant) {
    return named != step.parameters.end() && constant.name == named->second;
  });
  if (factors == step.constants.end() || !factors->value || !is_float(factors->value->scalar()))
    return Diagnostic{"", "the step does not state its factors", ""};
  std::vector<double> numbers;
  for (int64_t i = 0; i < factors->value->size(); ++i) numbers.push_back(factors->value->float_at(i));
  return scale_channels(program, {{step.value, std::move(numbers)}});
}

}  // namespace hoist
