#include "tests/lowering/random_graphs.h"

#include <algorithm>
#include <cmath>

#include "ir/operators/operators.h"

namespace hoist {
namespace {

using Shape = std::vector<int64_t>;

constexpr double unit = 1.0 / (1 << 24);       // half an ulp of f32 at one
constexpr double whole_limit = 1 << 22;        // sums of integers stay exact below this
constexpr int64_t most_elements = 2000;        // limit of the elements of any value
constexpr int64_t most_products = 300 * 1000;  // per layer

struct Value {
  std::string name;
  Shape shape;
  double magnitude = 0;  // bound of all elements and of all partial sums
  double error = 0;
  bool whole = true;  // all intermediate values are integers below whole_limit
  double terms = 1;   // number of terms of the longest sum so far
};

class Generator {
 public:
  explicit Generator(std::mt19937_64& random) : random_(random) {}

  RandomGraph run() {
    out_.graph.name = "random";
    out_.graph.opset = 21;
    int64_t inputs = 1 + pick(2);
    for (int64_t i = 0; i < inputs; ++i) input();
    int64_t layers = 2 + pick(7);
    for (int64_t tries = 0; static_cast<int64_t>(out_.graph.layers.size()) < layers && tries < 100; ++tries) grow();
    choose_outputs();
    return std::move(out_);
  }

 private:
  int64_t pick(int64_t count) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(count)); }
  bool chance(int percent) { return pick(100) < percent; }
  int64_t between(int64_t low, int64_t high) { return low + pick(high - low + 1); }

  Tensor numbers(const Shape& shape, int64_t low, int64_t high) {
    Tensor t(Scalar::f32, shape);
    for (int64_t i = 0; i < t.size(); ++i) t.set_float(i, static_cast<double>(between(low, high)));
    return t;
  }
  Tensor integers(const Shape& values) {
    return Tensor::of(Scalar::i64, {static_cast<int64_t>(values.size())}, values);
  }

  std::string fresh(const std::string& stem) { return stem + std::to_string(++names_); }
  std::string constant(const Tensor& tensor) {
    std::string name = fresh("c");
    out_.graph.constants[name] = tensor;
    return name;
  }
  // A constant, given or computed from one.
  std::string weights(const Tensor& tensor) {
    std::string name = constant(tensor);
    return chance(20) && !tensor.shape().empty() ? layer("Neg", {name}, {}, {}, tensor.shape(), false) : name;
  }

  void input() {
    static const std::vector<Shape> least = {{1, 1}, {1, 1, 5}, {1, 1, 4, 4}, {1, 1, 4, 4}, {1, 1, 3, 3, 3}};
    static const std::vector<Shape> most = {{5, 20}, {2, 9, 12}, {2, 6, 9, 9}, {1, 18, 6, 6}, {1, 4, 5, 4, 4}};
    size_t kind = static_cast<size_t>(pick(5));
    Value v;
    v.name = fresh("x");
    for (size_t i = 0; i < least[kind].size(); ++i) v.shape.push_back(between(least[kind][i], most[kind][i]));
    v.magnitude = 2;
    out_.graph.inputs.push_back({v.name, Scalar::f32, v.shape});
    out_.inputs[v.name] = numbers(v.shape, -2, 2);
    values_.push_back(v);
  }

  // Adds a layer and returns its result's name; `known` is the information on the result besides name and shape.
  std::string layer(const std::string& operation, std::vector<std::string> inputs,
                    std::map<std::string, Attribute> attributes, Value known, const Shape& shape, bool use = true) {
    NamedCall l;
    l.name = fresh(operation + "_");
    l.operation = operation;
    l.attributes = std::move(attributes);
    l.inputs = std::move(inputs);
    l.outputs = {fresh("y")};
    known.name = l.outputs[0];
    known.shape = shape;
    if (use) {
      values_.push_back(known);
      out_.error[known.name] = known.error;
    }
    out_.graph.layers.push_back(l);
    return known.name;
  }

  // A sum of `terms` products of an element of x and a value of at most `factor`, plus a value of at most 2.
  Value summed(const Value& x, int64_t terms, double factor) {
    Value v = x;
    auto n = static_cast<double>(terms);
    v.magnitude = x.magnitude * n * factor + 2;
    v.terms = std::max(x.terms, n + 1);
    v.whole = x.whole && v.magnitude < whole_limit;
    v.error = v.whole ? 0 : x.error * n * factor + 2 * (n + 1) * unit * v.magnitude;
    return v;
  }
  // The result of a layer that keeps integers exact and rounds other values a few times.
  static Value rounded(Value v, double gain = 1) {
    v.whole = v.whole && v.magnitude < whole_limit;
    v.error = v.whole ? 0 : v.error * gain + 8 * unit * v.magnitude;
    return v;
  }

  void grow() {
    const Value x = values_[static_cast<size_t>(chance(60) ? static_cast<int64_t>(values_.size()) - 1
                                                           : pick(static_cast<int64_t>(values_.size())))];
    bool image = x.shape.size() >= 3 && x.shape.size() <= 5;
    switch (pick(14)) {
      case 0:
      case 1:
        return image ? convolution(x) : product(x);
      case 2:
        return image ? pool(x) : product(x);
      case 3:
        return image ? batch_norm(x) : general_product(x);
      case 4:
        return product(x);
      case 5:
      case 6:
        return unary(x);
      case 7:
      case 8:
        return binary(x);
      case 9:
        return concatenation(x);
      case 10:
        return softmax(x);
      case 11:
        return transposition(x);
      case 12:
        return chance(50) ? reshape(x) : reduction(x);
      default:
        return chance(50) ? slice(x) : padding(x);
    }
  }

  void convolution(const Value& x) {
    size_t rank = x.shape.size() - 2;
    int64_t channels = x.shape[1], groups = 1;
    if (chance(25)) groups = channels;
    if (chance(15) && channels % 2 == 0) groups = 2;
    int64_t filters = groups * between(1, chance(15) && groups == 1 ? 19 : 3);
    Shape weight_shape = {filters, channels / groups}, out = {x.shape[0], filters}, kernel, strides, dilations, pads;
    pads.assign(2 * rank, 0);
    bool point = chance(25);
    for (size_t i = 0; i < rank; ++i) {
      kernel.push_back(point ? 1 : between(1, 3));
      strides.push_back(chance(30) ? 2 : 1);
      dilations.push_back(chance(20) ? 2 : 1);
      int64_t span = (kernel[i] - 1) * dilations[i] + 1;
      pads[i] = pick(std::min<int64_t>(span, 3));
      pads[rank + i] = chance(70) ? pads[i] : pick(std::min<int64_t>(span, 3));
      int64_t room = x.shape[i + 2] + pads[i] + pads[rank + i] - span;
      if (room < 0) return;
      out.push_back(room / strides[i] + 1);
      weight_shape.push_back(kernel[i]);
    }
    int64_t terms = element_count(weight_shape) / filters;
    Value known = summed(x, terms, 1);
    if (known.magnitude > whole_limit || element_count(out) > most_elements ||
        element_count(out) * terms > most_products)
      return;
    // Winograd's form, also of the phases of dilated windows, rounds integers.
    if (rank == 2 && groups == 1 && kernel == Shape{3, 3} && strides == Shape{1, 1}) {
      known.whole = false;
      known.error += 1700 * static_cast<double>(channels + 24) * unit * known.magnitude;
    }
    std::vector<std::string> inputs = {x.name, weights(numbers(weight_shape, -1, 1))};
    if (chance(60)) inputs.push_back(constant(numbers({filters}, -2, 2)));
    std::string result = layer(
        "Conv", inputs,
        {{"kernel_shape", kernel}, {"strides", strides}, {"dilations", dilations}, {"pads", pads}, {"group", groups}},
        known, out);
    if (chance(25)) batch_norm(values_.back());
    if (chance(40)) unary(values_.back());
    if (chance(20) && out == x.shape) sum(values_.back(), x);
  }

  void pool(const Value& x) {
    size_t rank = x.shape.size() - 2;
    bool mean = chance(50);
    Value known = x;
    if (mean) known.whole = false;
    Shape out = {x.shape[0], x.shape[1]};
    if (chance(20)) {
      out.resize(x.shape.size(), 1);
      int64_t terms = element_count(x.shape) / (x.shape[0] * x.shape[1]);
      known.error += mean ? 2 * static_cast<double>(terms + 4) * unit * x.magnitude : 0;
      layer(mean ? "GlobalAveragePool" : "GlobalMaxPool", {x.name}, {}, known, out);
      return;
    }
    Shape kernel, strides, pads(2 * rank, 0);
    int64_t terms = 1;
    for (size_t i = 0; i < rank; ++i) {
      kernel.push_back(between(1, 3));
      strides.push_back(between(1, 2));
      pads[i] = pick(kernel[i]);
      pads[rank + i] = pick(kernel[i]);
      int64_t room = x.shape[i + 2] + pads[i] + pads[rank + i] - kernel[i];
      if (room < 0) return;
      out.push_back(room / strides[i] + 1);
      terms *= kernel[i];
    }
    std::map<std::string, Attribute> attributes = {{"kernel_shape", kernel}, {"strides", strides}, {"pads", pads}};
    if (mean) attributes["count_include_pad"] = pick(2);
    known.error += mean ? 2 * static_cast<double>(terms + 4) * unit * x.magnitude : 0;
    layer(mean ? "AveragePool" : "MaxPool", {x.name}, attributes, known, out);
  }

  void batch_norm(const Value& x) {
    if (x.magnitude * 4 > whole_limit) return;
    Shape channels = {x.shape[1]};
    Tensor scale = numbers(channels, 1, 2), variance = numbers(channels, 1, 1);
    bool exact = chance(60);
    // The factor is scale / sqrt(variance): an integer, or one that rounds.
    for (int64_t i = 0; i < channels[0]; ++i) variance.set_float(i, !exact ? 3 : chance(50) ? 0.25 : 1);
    Value known = x;
    known.magnitude = x.magnitude * 4 + 10;
    known.whole = x.whole && exact && known.magnitude < whole_limit;
    // If it is folded into the preceding weights, each product and the bias are rounded once more.
    known.error = known.whole ? 0 : x.error * 4 + 4 * (x.terms + 8) * unit * known.magnitude;
    layer("BatchNormalization",
          {x.name, constant(scale), constant(numbers(channels, -2, 2)), constant(numbers(channels, -2, 2)),
           constant(variance)},
          {{"epsilon", exact ? 0.0 : 1e-5}}, known, x.shape);
  }

  void product(const Value& x) {
    if (x.shape.size() < 2) return;
    int64_t terms = x.shape.back(), columns = between(1, chance(30) ? 35 : 6);
    Shape out = x.shape;
    out.back() = columns;
    bool gemm = x.shape.size() == 2 && chance(60), scaled = gemm && chance(30);
    Value known = summed(x, terms, scaled ? 2 : 1);
    if (known.magnitude > whole_limit || element_count(out) > most_elements) return;
    if (!gemm) {
      layer("MatMul", {x.name, weights(numbers({terms, columns}, -1, 1))}, {}, known, out);
      return;
    }
    int64_t turned = pick(2);
    std::vector<std::string> inputs = {
        x.name, weights(numbers(turned != 0 ? Shape{columns, terms} : Shape{terms, columns}, -1, 1))};
    if (chance(70)) {
      static const int64_t forms = 3;
      const Shape bias[forms] = {{columns}, {x.shape[0], columns}, {1}};
      inputs.push_back(constant(numbers(bias[pick(forms)], -2, 2)));
    }
    layer("Gemm", inputs, {{"transB", turned}, {"alpha", scaled ? 2.0 : 1.0}}, known, out);
  }

  // Both operands are computed: x times the transpose of another value of the same shape.
  void general_product(const Value& x) {
    if (x.shape.size() != 2) return;
    const Value y = *std::find_if(values_.begin(), values_.end(), [&](const Value& v) { return v.shape == x.shape; });
    Value known = summed(x, x.shape[1], y.magnitude);
    known.whole = known.whole && y.whole;
    known.error = known.whole ? 0
                              : static_cast<double>(x.shape[1]) * (x.error * y.magnitude + y.error * x.magnitude) +
                                    4 * static_cast<double>(x.shape[1] + 2) * unit * known.magnitude;
    if (known.magnitude > whole_limit) return;
    layer("Gemm", {x.name, y.name}, {{"transB", int64_t{1}}}, known, {x.shape[0], x.shape[0]});
  }

  void unary(const Value& x) {
    static const char* const exact[] = {"Relu", "Relu", "Neg", "Abs"};
    if (chance(75)) {
      layer(exact[pick(4)], {x.name}, {}, x, x.shape);
      return;
    }
    Value known = x;
    known.magnitude = 1;
    known.whole = false;
    layer("Sigmoid", {x.name}, {}, rounded(known), x.shape);
  }

  void sum(const Value& x, const Value& y) {
    Value known = x;
    known.magnitude += y.magnitude;
    known.error += y.error;
    known.whole = x.whole && y.whole;
    layer("Add", {x.name, y.name}, {}, rounded(known), x.shape);
  }

  void binary(const Value& x) {
    const Value y = values_[static_cast<size_t>(pick(static_cast<int64_t>(values_.size())))];
    if (y.shape == x.shape && chance(80)) return sum(x, y);
    // A constant that broadcasts: some extents are one, leading dimensions may be missing.
    Shape shape = x.shape;
    for (int64_t& n : shape) n = chance(50) ? 1 : n;
    shape.erase(shape.begin(), shape.begin() + pick(static_cast<int64_t>(shape.size()) + 1));
    std::string other = constant(numbers(shape, -2, 2));
    static const char* const operations[] = {"Add", "Sub", "Mul", "Max", "Min"};
    int64_t which = pick(5);
    Value known = x;
    known.magnitude = which == 2 ? x.magnitude * 2 : x.magnitude + 2;
    if (known.magnitude > whole_limit) return;
    std::vector<std::string> inputs = {x.name, other};
    if (chance(30)) std::swap(inputs[0], inputs[1]);
    layer(operations[which], inputs, {}, rounded(known, 2), x.shape);
  }

  void concatenation(const Value& x) {
    int64_t axis = pick(static_cast<int64_t>(x.shape.size())), total = 0;
    std::vector<std::string> parts;
    Value known = x;
    for (int64_t n = 2 + pick(2); n > 0; --n) {
      const Value& other = values_[static_cast<size_t>(pick(static_cast<int64_t>(values_.size())))];
      Shape like = x.shape;
      if (other.shape.size() == like.size()) like[static_cast<size_t>(axis)] = other.shape[static_cast<size_t>(axis)];
      const Value& part = other.shape == like ? other : x;
      parts.push_back(part.name);
      total += part.shape[static_cast<size_t>(axis)];
      known.magnitude = std::max(known.magnitude, part.magnitude);
      known.error = std::max(known.error, part.error);
      known.whole = known.whole && part.whole;
    }
    Shape out = x.shape;
    out[static_cast<size_t>(axis)] = total;
    if (element_count(out) > most_elements) return;
    int64_t written = chance(30) ? axis - static_cast<int64_t>(x.shape.size()) : axis;
    layer("Concat", parts, {{"axis", written}}, known, out);
  }

  void softmax(const Value& x) {
    if (x.shape.empty()) return;
    int64_t axis = chance(60) ? -1 : pick(static_cast<int64_t>(x.shape.size()));
    size_t at = axis < 0 ? x.shape.size() - 1 : static_cast<size_t>(axis);
    Value known = x;
    known.magnitude = 1;
    known.whole = false;
    // exp turns an absolute error into a relative one, and the sum is over a row.
    known.error = 2 * x.error + (2 * static_cast<double>(x.shape[at]) + 16 + 4 * x.magnitude) * unit;
    layer("Softmax", {x.name}, {{"axis", axis}}, known, x.shape);
  }

  void transposition(const Value& x) {
    Shape order, out;
    for (size_t i = 0; i < x.shape.size(); ++i) order.push_back(static_cast<int64_t>(i));
    std::shuffle(order.begin(), order.end(), random_);
    for (int64_t i : order) out.push_back(x.shape[static_cast<size_t>(i)]);
    layer("Transpose", {x.name}, {{"perm", order}}, x, out);
  }

  void reshape(const Value& x) {
    Shape out = x.shape;
    if (chance(40)) {
      out = {x.shape.empty() ? 1 : x.shape[0], -1};
    } else if (out.size() >= 2 && (chance(50) || out.size() > 4)) {
      size_t i = static_cast<size_t>(pick(static_cast<int64_t>(out.size()) - 1));
      out[i] *= out[i + 1];
      out.erase(out.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    } else if (!out.empty()) {
      size_t i = static_cast<size_t>(pick(static_cast<int64_t>(out.size())));
      int64_t k = out[i] % 2 == 0 ? 2 : 1;
      out[i] /= k;
      out.insert(out.begin() + static_cast<std::ptrdiff_t>(i), k);
    }
    std::string wanted = constant(integers(out));
    for (int64_t& n : out) n = n < 0 ? element_count(x.shape) / out[0] : n;
    layer("Reshape", {x.name, wanted}, {}, x, out);
  }

  void reduction(const Value& x) {
    if (x.shape.empty()) return;
    int64_t axis = pick(static_cast<int64_t>(x.shape.size())), keep = pick(2);
    Shape out = x.shape;
    int64_t terms = out[static_cast<size_t>(axis)];
    out[static_cast<size_t>(axis)] = 1;
    if (keep == 0) out.erase(out.begin() + static_cast<std::ptrdiff_t>(axis));
    bool sums = chance(50);
    Value known = sums ? summed(x, terms, 1) : x;
    if (known.magnitude > whole_limit) return;
    layer(sums ? "ReduceSum" : "ReduceMax", {x.name, constant(integers({axis}))}, {{"keepdims", keep}}, known, out);
  }

  void slice(const Value& x) {
    if (x.shape.empty()) return;
    int64_t axis = pick(static_cast<int64_t>(x.shape.size())), n = x.shape[static_cast<size_t>(axis)];
    int64_t start = pick(n), end = between(start + 1, n), step = between(1, 2);
    Shape out = x.shape;
    out[static_cast<size_t>(axis)] = (end - start + step - 1) / step;
    if (chance(20)) {  // backwards: from the end of the range to its start
      layer("Slice",
            {x.name, constant(integers({end - 1})), constant(integers({start - 1 - n})), constant(integers({axis})),
             constant(integers({-step}))},
            {}, x, out);
      return;
    }
    layer("Slice",
          {x.name, constant(integers({start})), constant(integers({end})), constant(integers({axis})),
           constant(integers({step}))},
          {}, x, out);
  }

  void padding(const Value& x) {
    size_t rank = x.shape.size();
    if (rank == 0) return;
    Shape pads(2 * rank, 0), out = x.shape;
    for (size_t i = 0; i < rank; ++i) {
      if (chance(50)) continue;
      pads[i] = pick(3);
      pads[rank + i] = pick(3);
      out[i] += pads[i] + pads[rank + i];
    }
    if (element_count(out) > most_elements) return;
    layer("Pad", {x.name, constant(integers(pads))}, {{"mode", std::string("constant")}}, x, out);
    // A layer that computes with the padded value, so that a kernel reads the border.
    if (chance(50)) unary(values_.back());
  }

  // All unused values, some intermediate values, sometimes an input.
  void choose_outputs() {
    std::map<std::string, int> uses;
    for (const NamedCall& l : out_.graph.layers) {
      for (const std::string& name : l.inputs) ++uses[name];
    }
    std::vector<Value> outputs;
    for (const Value& v : values_) {
      bool input = out_.inputs.count(v.name) != 0;
      if (input ? chance(2) : uses[v.name] == 0 || chance(15)) outputs.push_back(v);
    }
    if (outputs.empty()) outputs.push_back(values_.back());
    if (chance(30)) std::shuffle(outputs.begin(), outputs.end(), random_);
    for (const Value& v : outputs) out_.graph.outputs.push_back({v.name, Scalar::f32, v.shape});
  }

  std::mt19937_64& random_;
  RandomGraph out_;
  std::vector<Value> values_;
  int names_ = 0;
};

}  // namespace

RandomGraph random_graph(std::mt19937_64& random) { return Generator(random).run(); }

Bindings values_of(const RandomGraph& random) {
  const NamedModel& graph = random.graph;
  Bindings values = random.inputs;
  for (const auto& [name, tensor] : graph.constants) values[name] = tensor;
  for (const NamedCall& layer : graph.layers) {
    const OperatorCall call = call_of(layer, graph.opset);
    OperatorContext context{call, {}, {}};
    for (const std::string& name : layer.inputs) {
      const Tensor& t = values.at(name);
      std::vector<Nat> sizes(t.shape().begin(), t.shape().end());
      context.inputs.push_back(parameter(name, array_type(sizes, scalar_type(t.scalar()))));
      auto constant = graph.constants.find(name);
      context.constants.push_back(constant == graph.constants.end() ? nullptr : &constant->second);
    }
    auto lowered = define(context);
    HOIST_CHECK(lowered.ok(), lowered.errors()[0].text());
    auto value = evaluate(lowered->at(0), values);
    HOIST_CHECK(value.ok(), layer.name + ": " + value.errors()[0].text());
    values[layer.outputs[0]] = *value;
  }
  return values;
}

}  // namespace hoist
