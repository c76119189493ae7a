// Models in quantise-dequantise form compute on floats that are 8-bit numbers times a scale. A product of two such
// arrays is the exact sum of integer products times one factor, and this is what it becomes here: dequantise layers in
// front of Conv, Gemm and MatMul go, ConvInteger or MatMulInteger with a factor and a bias behind it comes. Equal in
// real arithmetic, so of the rounding class; whatever follows, a quantise layer for one, sees floats as before.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "lowering/program.h"

namespace hoist {
namespace {

// ---- Signed to unsigned activations --------------------------------------------------------------------------------

// x in [-128, 127] with zero point z is x + 128 with zero point z + 128: dot instructions multiply unsigned numbers by
// signed ones. Values that only quantise and dequantise layers see can change without anybody noticing.
class UnsignedValues {
 public:
  explicit UnsignedValues(Graph& graph) : graph_(graph) {
    for (const ValueInfo& output : graph.outputs) other_readers_.insert(output.name);
    for (Layer& layer : graph.layers) {
      for (size_t i = 0; i < layer.inputs.size(); ++i) {
        if (is_operator(layer, "DequantizeLinear") && i == 0 && signed_zero_point(layer))
          dequantised_[layer.inputs[0]].push_back(&layer);
        else
          other_readers_.insert(layer.inputs[i]);
      }
    }
  }

  void run() {
    for (Layer& layer : graph_.layers) {
      if (!is_operator(layer, "QuantizeLinear") || !signed_zero_point(layer) || layer.outputs.empty()) continue;
      const std::string& value = layer.outputs[0];
      auto readers = dequantised_.find(value);
      if (other_readers_.count(value) != 0 || readers == dequantised_.end()) continue;
      change(layer);
      for (Layer* reader : readers->second) change(*reader);
      graph_.inferred.erase(value);
      graph_.steps.push_back({"signed-to-unsigned", layer.name, RuleClass::exact,
                              fmt::format("{} is stored as unsigned numbers, 128 larger", value)});
    }
  }

 private:
  bool signed_zero_point(const Layer& layer) const {
    const Tensor* zero = constant_input(graph_, layer, 2);
    return zero != nullptr && zero->scalar() == Scalar::i8 && zero->size() == 1;
  }

  void change(Layer& layer) {
    const Tensor& zero = graph_.constants.at(layer.inputs[2]);
    const std::string name = layer.inputs[2] + ".unsigned";
    if (graph_.constants.count(name) == 0) {
      Tensor moved(Scalar::u8, zero.shape());
      moved.set_integer(0, zero.integer_at(0) + 128);
      graph_.constants[name] = moved;
    }
    layer.inputs[2] = name;
    if (is_operator(layer, "QuantizeLinear")) layer.attributes.erase("output_dtype");
  }

  Graph& graph_;
  std::map<std::string, std::vector<Layer*>> dequantised_;
  std::set<std::string> other_readers_;
};

// ---- Products ------------------------------------------------------------------------------------------------------

// An activation in 8 bits with one scale, or a constant in 8 signed bits with one scale for all or for each output.
struct Quantised {
  std::string value, zero_point;  ///< zero_point "" where it is zero
  std::vector<double> scales;
};

class IntegerProducts {
 public:
  explicit IntegerProducts(Graph& graph) : graph_(graph) {
    for (const Layer& layer : graph.layers) {
      for (const std::string& output : layer.outputs) producer_[output] = &layer;
    }
  }

  void run() {
    std::vector<Layer> layers;
    for (const Layer& layer : graph_.layers) {
      if (!rewrite(layer, layers)) layers.push_back(layer);
    }
    graph_.layers = std::move(layers);
    drop_dequantisers();
  }

 private:
  // Dequantise layers that only products read are part of these now.
  void drop_dequantisers() {
    std::set<std::string> read;
    for (const Layer& layer : graph_.layers) read.insert(layer.inputs.begin(), layer.inputs.end());
    for (const ValueInfo& output : graph_.outputs) read.insert(output.name);
    std::erase_if(graph_.layers, [&](const Layer& layer) {
      auto products = absorbed_.find(layer.name);
      if (products == absorbed_.end() || read.count(layer.outputs[0]) != 0) return false;
      for (const std::string& product : products->second) {
        graph_.steps.push_back({"dequantise-product", product, RuleClass::rounding,
                                fmt::format("{} is part of the factor behind the sums", layer.name), layer.name});
      }
      return true;
    });
  }

  const Layer* dequantiser(const std::string& value) const {
    auto place = producer_.find(value);
    return place != producer_.end() && is_operator(*place->second, "DequantizeLinear") ? place->second : nullptr;
  }

  std::optional<Quantised> activation(const std::string& value) const {
    const Layer* layer = dequantiser(value);
    if (layer == nullptr || constant_of(graph_, layer->inputs[0]) != nullptr) return std::nullopt;
    const Tensor* scale = constant_input(graph_, *layer, 1);
    const Tensor* zero = constant_input(graph_, *layer, 2);
    if (scale == nullptr || scale->scalar() != Scalar::f32 || scale->size() != 1 || zero == nullptr)
      return std::nullopt;
    if (zero->size() != 1 || (zero->scalar() != Scalar::u8 && zero->scalar() != Scalar::i8)) return std::nullopt;
    return Quantised{layer->inputs[0], layer->inputs[2], {scale->float_at(0)}};
  }

  // `axis`: the dimension of the output channels.
  std::optional<Quantised> weights(const std::string& value, size_t axis) const {
    const Layer* layer = dequantiser(value);
    if (layer == nullptr) return std::nullopt;
    const Tensor* numbers = constant_of(graph_, layer->inputs[0]);
    const Tensor* scale = constant_input(graph_, *layer, 1);
    if (numbers == nullptr || numbers->scalar() != Scalar::i8 || numbers->shape().size() <= axis) return std::nullopt;
    if (scale == nullptr || scale->scalar() != Scalar::f32 || integer_attribute(*layer, "block_size", 0) != 0)
      return std::nullopt;
    if (has_input(*layer, 2)) {
      const Tensor* zero = constant_input(graph_, *layer, 2);
      for (int64_t i = 0; zero != nullptr && i < zero->size(); ++i) {
        if (zero->integer_at(i) != 0) return std::nullopt;
      }
      if (zero == nullptr) return std::nullopt;
    }
    const auto rank = static_cast<int64_t>(numbers->shape().size());
    int64_t along = integer_attribute(*layer, "axis", 1);
    if (along < 0) along += rank;
    const bool each = scale->size() == numbers->shape()[axis] && along == static_cast<int64_t>(axis);
    if (scale->size() != 1 && !each) return std::nullopt;
    Quantised out{layer->inputs[0], "", {}};
    for (int64_t i = 0; i < scale->size(); ++i) out.scales.push_back(scale->float_at(i));
    return out;
  }

  // Can no sum of products leave i32? `axis` is that of the outputs; an activation is at most 255 from its zero point.
  bool sums_fit(const Tensor& numbers, size_t axis) const {
    const int64_t outputs = numbers.shape()[axis];
    int64_t inner = 1;
    for (size_t i = axis + 1; i < numbers.shape().size(); ++i) inner *= numbers.shape()[i];
    std::vector<int64_t> sums(static_cast<size_t>(outputs), 0);
    for (int64_t i = 0; i < numbers.size(); ++i)
      sums[static_cast<size_t>(i / inner % outputs)] += std::abs(numbers.integer_at(i));
    // Both the sum of stored numbers and its correction by the zero point have to fit.
    return std::all_of(sums.begin(), sums.end(), [](int64_t sum) { return sum * 255 * 2 < INT32_MAX; });
  }

  std::string fresh_constant(const std::string& name, Tensor tensor) {
    graph_.constants[name] = std::move(tensor);
    return name;
  }

  // The layers that take the sums to floats: cast, factor, bias. `ones` dimensions follow that of the outputs.
  void finish(const Layer& layer, const std::string& sums, const std::vector<double>& factors, int64_t ones,
              const std::string& bias, std::vector<Layer>& out) {
    std::vector<int64_t> shape;
    if (factors.size() > 1) {
      shape.assign(static_cast<size_t>(ones) + 1, 1);
      shape[0] = static_cast<int64_t>(factors.size());
    }
    Tensor factor(Scalar::f32, shape);
    for (size_t i = 0; i < factors.size(); ++i) factor.set_float(static_cast<int64_t>(i), factors[i]);
    const std::string factor_name = fresh_constant(layer.name + ".factor", factor);
    const std::string as_floats = layer.name + ".floats",
                      scaled = bias.empty() ? layer.outputs[0] : layer.name + ".scaled";
    constexpr int64_t onnx_f32 = 1;
    out.push_back({layer.name + ".floats", "Cast", "", {{"to", onnx_f32}}, {sums}, {as_floats}});
    out.push_back({layer.name + ".scaled", "Mul", "", {}, {as_floats, factor_name}, {scaled}});
    if (bias.empty()) return;
    std::string added = bias;
    if (ones > 0) {
      Tensor target(Scalar::i64, {ones + 1});
      for (int64_t i = 0; i <= ones; ++i) target.set_integer(i, i == 0 ? -1 : 1);
      added = layer.name + ".bias_by_channel";
      out.push_back({added, "Reshape", "", {}, {bias, fresh_constant(layer.name + ".bias_shape", target)}, {added}});
    }
    out.push_back({layer.name + ".biased", "Add", "", {}, {scaled, added}, {layer.outputs[0]}});
  }

  void record(const Layer& layer) {
    for (size_t i = 0; i < 2; ++i) absorbed_[dequantiser(layer.inputs[i])->name].push_back(layer.name);
    graph_.steps.push_back({"dequantise-product", layer.name, RuleClass::rounding,
                            "exact sums of integer products, scaled once, instead of sums of dequantised numbers"});
  }

  static std::vector<double> products(double activation, const std::vector<double>& weights, double factor = 1) {
    std::vector<double> out;
    for (double w : weights) out.push_back(activation * w * factor);
    return out;
  }

  bool rewrite(const Layer& layer, std::vector<Layer>& out) {
    if (!layer.domain.empty() || layer.inputs.size() < 2 || layer.outputs.size() != 1) return false;
    if (layer.operation == "Conv") return rewrite_convolution(layer, out);
    if (layer.operation == "Gemm" || layer.operation == "MatMul") return rewrite_matrix_product(layer, out);
    return false;
  }

  bool rewrite_convolution(const Layer& layer, std::vector<Layer>& out) {
    auto x = activation(layer.inputs[0]);
    auto w = weights(layer.inputs[1], 0);
    if (!x || !w || !sums_fit(graph_.constants.at(w->value), 0)) return false;
    const std::string sums = layer.name + ".sums";
    out.push_back({layer.name, "ConvInteger", "", layer.attributes, {x->value, w->value, x->zero_point}, {sums}});
    const auto spatial = static_cast<int64_t>(graph_.constants.at(w->value).shape().size()) - 2;
    finish(layer, sums, products(x->scales[0], w->scales), spatial, has_input(layer, 2) ? layer.inputs[2] : "", out);
    record(layer);
    return true;
  }

  bool rewrite_matrix_product(const Layer& layer, std::vector<Layer>& out) {
    const bool gemm = layer.operation == "Gemm";
    const bool turned = gemm && integer_attribute(layer, "transB", 0) != 0;
    auto x = activation(layer.inputs[0]);
    auto w = weights(layer.inputs[1], turned ? 0 : 1);
    if (!x || !w || graph_.constants.at(w->value).shape().size() != 2) return false;
    if (gemm &&
        (integer_attribute(layer, "transA", 0) != 0 || (has_input(layer, 2) && float_attribute(layer, "beta", 1) != 1)))
      return false;
    const Tensor& numbers = graph_.constants.at(w->value);
    if (!sums_fit(numbers, turned ? 0 : 1)) return false;
    std::string columns = w->value;
    if (turned) {
      const int64_t n = numbers.shape()[0], k = numbers.shape()[1];
      Tensor transposed(Scalar::i8, {k, n});
      for (int64_t i = 0; i < n * k; ++i) transposed.set_integer(i % k * n + i / k, numbers.integer_at(i));
      columns = fresh_constant(layer.name + ".columns", std::move(transposed));
    }
    const std::string sums = layer.name + ".sums";
    out.push_back({layer.name, "MatMulInteger", "", {}, {x->value, columns, x->zero_point}, {sums}});
    finish(layer, sums, products(x->scales[0], w->scales, gemm ? float_attribute(layer, "alpha", 1) : 1), 0,
           has_input(layer, 2) ? layer.inputs[2] : "", out);
    record(layer);
    return true;
  }

  Graph& graph_;
  std::map<std::string, const Layer*> producer_;              ///< into the graph's layers until they are replaced
  std::map<std::string, std::vector<std::string>> absorbed_;  ///< dequantise layer -> products that read it
};

// ---- Quantising ----------------------------------------------------------------------------------------------------

// x / scale is x times the reciprocal, which divides once, at compile time.
void multiply_by_reciprocals(Graph& graph) {
  std::vector<Layer> layers;
  for (const Layer& layer : graph.layers) {
    const Tensor* scale = constant_input(graph, layer, 1);
    const bool known = is_operator(layer, "QuantizeLinear") && layer.outputs.size() == 1 && scale != nullptr &&
                       scale->scalar() == Scalar::f32 && scale->size() == 1;
    // An initialiser that is quantised stays as it is: it is evaluated at compile time, once.
    if (!known || constant_of(graph, layer.inputs[0]) != nullptr || scale->float_at(0) == 1) {
      layers.push_back(layer);
      continue;
    }
    const std::string reciprocal = layer.name + ".reciprocal", steps = layer.name + ".steps", one = layer.name + ".one";
    graph.constants[reciprocal] = Tensor::of(Scalar::f32, {}, std::vector<double>{1 / scale->float_at(0)});
    graph.constants[one] = Tensor::of(Scalar::f32, scale->shape(), std::vector<double>{1});
    Layer quantise = layer;
    quantise.inputs[0] = steps;
    quantise.inputs[1] = one;
    layers.push_back({steps, "Mul", "", {}, {layer.inputs[0], reciprocal}, {steps}});
    layers.push_back(std::move(quantise));
    graph.steps.push_back(
        {"quantise-by-reciprocal", layer.name, RuleClass::rounding, "multiplies by 1 / scale instead of dividing"});
  }
  graph.layers = std::move(layers);
}

// ---- Whole words ---------------------------------------------------------------------------------------------------

// Dot instructions take four numbers at a time: inputs and weights of a product get channels of zeros where their
// number is no multiple of four. What is quantised is zero where it is its zero point.
class WholeWords {
 public:
  explicit WholeWords(Graph& graph) : graph_(graph) {}

  void run() {
    std::vector<Layer> layers;
    for (Layer& layer : graph_.layers) {
      if (is_operator(layer, "ConvInteger")) pad(layer, 1, 1, layers);
      if (is_operator(layer, "MatMulInteger")) pad(layer, -1, -2, layers);
      layers.push_back(layer);
    }
    graph_.layers = std::move(layers);
  }

 private:
  // The factor's dimension that products are summed along, and that of the weights; negative ones count from the last,
  // as the two may have batch dimensions of their own.
  void pad(Layer& layer, int64_t axis, int64_t from_weights, std::vector<Layer>& layers) {
    const Tensor* weights = constant_input(graph_, layer, 1);
    const Tensor* zero = constant_input(graph_, layer, 2);
    if (weights == nullptr || weights->scalar() != Scalar::i8 || zero == nullptr || zero->scalar() != Scalar::u8)
      return;
    if (zero->size() != 1 || has_input(layer, 3)) return;
    const auto rank = static_cast<int64_t>(weights->shape().size());
    // A vector of weights has no columns.
    const int64_t along = from_weights >= 0 ? from_weights : std::max<int64_t>(rank + from_weights, 0);
    if (along >= rank) return;
    const auto weights_axis = static_cast<size_t>(along);
    if (integer_attribute(layer, "group", 1) != 1) return;
    const int64_t channels = weights->shape()[weights_axis], missing = (4 - channels % 4) % 4;
    if (missing == 0) return;
    const std::string padded = layer.name + ".words", pads = layer.name + ".pads", value = layer.name + ".zero";
    Tensor amounts(Scalar::i64, {2});
    amounts.set_integer(1, missing);
    graph_.constants[pads] = amounts;
    graph_.constants[value] = zero->reshaped({});
    graph_.constants[padded + ".axes"] = Tensor::of(Scalar::i64, {1}, std::vector<int64_t>{axis});
    layers.push_back({padded, "Pad", "", {}, {layer.inputs[0], pads, value, padded + ".axes"}, {padded}});
    graph_.constants[padded + ".weights"] = with_zeros(*weights, weights_axis, missing);
    layer.inputs[0] = padded;
    layer.inputs[1] = padded + ".weights";
  }

  static Tensor with_zeros(const Tensor& weights, size_t axis, int64_t more) {
    std::vector<int64_t> shape = weights.shape();
    int64_t inner = 1;
    for (size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
    const int64_t old_run = shape[axis] * inner;
    shape[axis] += more;
    const int64_t new_run = shape[axis] * inner;
    Tensor out(weights.scalar(), shape);
    for (int64_t i = 0; i < weights.size(); ++i)
      out.set_integer(i / old_run * new_run + i % old_run, weights.integer_at(i));
    return out;
  }

  Graph& graph_;
};

}  // namespace

void store_unsigned(Graph& graph) { UnsignedValues(graph).run(); }

void use_integer_products(Graph& graph) {
  IntegerProducts(graph).run();
  multiply_by_reciprocals(graph);
  WholeWords(graph).run();
}

}  // namespace hoist
