#include "tests/lowering/products/quantised_parts.h"

namespace hoist {

Tensor one_byte(Scalar scalar, int64_t v) { return Tensor::of<int64_t>(scalar, {}, {v}); }
Tensor one_float(double v) { return Tensor::of<double>(Scalar::f32, {}, {v}); }

namespace {

// Without functions in between.
NamedModel start(Scalar in, Scalar out) {
  NamedModel g;
  g.name = "g";
  g.opset = 21;
  g.inputs = {{"x", in, {2, 128}}};
  g.outputs = {{"y", out, {2, 128}}};
  g.constants = {{"s", one_float(0.05)},
                 {"z", one_byte(in, in == Scalar::u8 ? 120 : -3)},
                 {"t", one_float(0.008)},
                 {"w", one_byte(out, out == Scalar::u8 ? 3 : -100)}};
  g.layers.push_back({"dequantise", "DequantizeLinear", "", {}, {"x", "s", "z"}, {"v0"}});
  return g;
}

}  // namespace

NamedModel quantised(const std::vector<NamedCall>& functions, Scalar in, Scalar out) {
  NamedModel g = start(in, out);
  for (const NamedCall& f : functions) {
    const std::string from = g.layers.back().outputs[0];
    g.layers.push_back(f);
    g.layers.back().inputs.insert(g.layers.back().inputs.begin(), from);
    g.layers.back().outputs = {"v" + std::to_string(g.layers.size())};
  }
  g.layers.push_back({"quantise", "QuantizeLinear", "", {}, {g.layers.back().outputs[0], "t", "w"}, {"y"}});
  return g;
}

NamedModel random_quantised(std::mt19937_64& random) {
  static const std::vector<std::string> unary = {"Abs",       "Ceil",      "Elu",  "Erf", "Exp",  "Gelu",
                                                 "HardSwish", "LeakyRelu", "Mish", "Neg", "Relu", "Sigmoid",
                                                 "Softplus",  "Sqrt",      "Tanh", "Sin"};
  static const std::vector<std::string> binary = {"Add", "Div", "Max", "Min", "Mul", "Sub"};
  const auto byte = [&] { return random() % 2 == 0 ? Scalar::u8 : Scalar::i8; };
  NamedModel g = start(byte(), byte());
  g.constants["s"] = one_float(0.001 + 0.0001 * static_cast<double>(random() % 1000));
  g.constants["t"] = one_float(0.001 + 0.0001 * static_cast<double>(random() % 1000));
  std::vector<std::string> values = {"v0"};
  const auto any = [&] { return values[random() % values.size()]; };
  const size_t count = 1 + random() % 8;
  for (size_t i = 1; i <= count; ++i) {
    const std::string name = "f" + std::to_string(i), value = "v" + std::to_string(i), number = "c" + std::to_string(i);
    // Mostly a chain, so that few values are unused.
    const std::string first = random() % 4 == 0 ? any() : values.back();
    NamedCall layer{name, unary[random() % unary.size()], "", {}, {first}, {value}};
    if (random() % 3 == 0) {
      layer.operation = binary[random() % binary.size()];
      layer.inputs.push_back(random() % 2 == 0 ? any() : number);
      if (layer.inputs[1] == number) g.constants[number] = one_float(0.25 * static_cast<double>(random() % 17) - 2);
      if (random() % 2 == 0) std::swap(layer.inputs[0], layer.inputs[1]);
    }
    g.layers.push_back(std::move(layer));
    values.push_back(value);
  }
  g.layers.push_back({"quantise", "QuantizeLinear", "", {}, {values.back(), "t", "w"}, {"y"}});
  if (random() % 4 == 0) {
    g.outputs.push_back({"u", g.outputs[0].scalar, {2, 128}});
    g.layers.push_back({"quantise_too", "QuantizeLinear", "", {}, {any(), "t", "w"}, {"u"}});
  }
  return g;
}

Tensor every_byte(Scalar scalar) {
  Tensor x(scalar, {2, 128});
  for (int64_t i = 0; i < 256; ++i) x.set_integer(i, i);
  return x;
}

}  // namespace hoist
