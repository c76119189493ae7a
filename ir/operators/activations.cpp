// Activation functions: formulas of one element, with the parameters that ONNX gives them as attributes.
#include <cmath>
#include <numbers>

#include "ir/operators/families.h"
#include "ir/operators/support.h"

namespace hoist::operators {
namespace {

/// Up to two float attributes of an activation and their defaults.
struct Parameter {
  const char* name = nullptr;
  double otherwise = 0;
};

template <Parameter first, Parameter second, auto formula>
Lowered activation(const OperatorContext& c) {
  double a = 0, b = 0;
  if constexpr (first.name != nullptr) {
    HOIST_TRY(a, float_attribute(c, first.name, first.otherwise));
  }
  if constexpr (second.name != nullptr) {
    HOIST_TRY(b, float_attribute(c, second.name, second.otherwise));
  }
  return one(elementwise({c.inputs[0]}, [&](const std::vector<Expr>& x) { return formula(Number(x[0]), a, b).e; }));
}

Number sigmoid(Number x) { return 1.0 / (1.0 + exp(-x)); }
// log(1 + exp(x)) without overflow: the larger part is taken out of the logarithm.
Number softplus(Number x) { return max(x, 0.0) + log(1.0 + exp(-abs(x))); }
Number relu(Number x, double, double) { return max(x, 0.0); }
Number leaky(Number x, double alpha, double) { return choose(x < 0.0, alpha * x, x); }
Number elu(Number x, double alpha, double) { return choose(x < 0.0, alpha * (exp(x) - 1.0), x); }
Number selu(Number x, double alpha, double gamma) {
  return choose(x > 0.0, gamma * x, gamma * (alpha * exp(x) - alpha));
}
Number celu(Number x, double alpha, double) { return max(x, 0.0) + min(alpha * (exp(x / alpha) - 1.0), 0.0); }
Number hard_sigmoid(Number x, double alpha, double beta) { return max(min(alpha * x + beta, 1.0), 0.0); }
Number hard_swish(Number x, double, double) { return x * max(min(x / 6.0 + 0.5, 1.0), 0.0); }
Number thresholded(Number x, double alpha, double) { return choose(x > alpha, x, 0.0); }
Number plain_sigmoid(Number x, double, double) { return sigmoid(x); }
Number plain_softplus(Number x, double, double) { return softplus(x); }
Number softsign(Number x, double, double) { return x / (1.0 + abs(x)); }
Number swish(Number x, double alpha, double) { return x * sigmoid(alpha * x); }
Number mish(Number x, double, double) { return x * tanh(softplus(x)); }
Number shrink(Number x, double bias, double lambda) {
  return choose(x < -lambda, x + bias, choose(x > lambda, x - bias, 0.0));
}

// x times what is 0 in any precision for x below -9. A device's erf or tanh may miss -1 by its last bit there, which
// times a large x is a large number; -infinity times 0 stays NaN.
Number vanishing(Number x, Number product) { return choose(x < -9.0, 0.0 * x, product); }

Lowered lower_gelu(const OperatorContext& c) {
  HOIST_TRY(auto approximate, choice_attribute(c, "approximate", "none", {"none", "tanh"}));
  return one(elementwise({c.inputs[0]}, [&](const std::vector<Expr>& v) {
    Number x = v[0];
    if (approximate == "none") return vanishing(x, 0.5 * x * (1.0 + erf(x * std::numbers::sqrt2 * 0.5))).e;
    double scale = std::sqrt(2 / std::numbers::pi);
    return vanishing(x, 0.5 * x * (1.0 + tanh(scale * (x + 0.044715 * (x * x * x))))).e;
  }));
}

Lowered lower_prelu(const OperatorContext& c) {
  HOIST_TRY_VOID(check_same_element(c));
  HOIST_TRY(Shape both, broadcast_extents(c.inputs));
  if (both != extents(c.inputs[0])) {
    return fault("slope " + text(extents(c.inputs[1])) + " does not broadcast to the input " +
                 text(extents(c.inputs[0])));
  }
  return one(elementwise(c.inputs, [](const std::vector<Expr>& v) {
    Number x = v[0], slope = v[1];
    return choose(x < 0.0, slope * x, x).e;
  }));
}

constexpr char alpha[] = "alpha", beta[] = "beta", gamma_name[] = "gamma", bias[] = "bias", lambda[] = "lambd";
constexpr Parameter no_parameter{};

// clang-format off
constexpr auto activation_rows = std::to_array<OperatorRow>({
  {"", "Relu", 6, 1, 1, Takes::numbers, activation<no_parameter, no_parameter, relu>, "max(x, 0)"},
  {"", "LeakyRelu", 6, 1, 1, Takes::floats, activation<Parameter{alpha, 0.01}, no_parameter, leaky>, "select(x < 0, alpha * x, x)"},
  {"", "PRelu", 7, 2, 2, Takes::numbers, lower_prelu, "select(x < 0, slope * x, x)"},
  {"", "Elu", 6, 1, 1, Takes::floats, activation<Parameter{alpha, 1.0}, no_parameter, elu>, "select(x < 0, alpha * (exp(x) - 1), x)"},
  {"", "Selu", 6, 1, 1, Takes::floats, activation<Parameter{alpha, 1.67326319217681884765625}, Parameter{gamma_name, 1.05070102214813232421875}, selu>,
   "gamma * select(x > 0, x, alpha * exp(x) - alpha)"},
  {"", "Celu", 12, 1, 1, Takes::floats, activation<Parameter{alpha, 1.0}, no_parameter, celu>, "max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)"},
  {"", "Sigmoid", 6, 1, 1, Takes::floats, activation<no_parameter, no_parameter, plain_sigmoid>, "1 / (1 + exp(-x))"},
  {"", "HardSigmoid", 6, 1, 1, Takes::floats, activation<Parameter{alpha, 0.2}, Parameter{beta, 0.5}, hard_sigmoid>, "max(min(alpha * x + beta, 1), 0)"},
  {"", "HardSwish", 14, 1, 1, Takes::floats, activation<no_parameter, no_parameter, hard_swish>, "x * max(min(x / 6 + 0.5, 1), 0)"},
  {"", "Swish", 24, 1, 1, Takes::floats, activation<Parameter{alpha, 1.0}, no_parameter, swish>, "x * sigmoid(alpha * x)"},
  {"", "Mish", 18, 1, 1, Takes::floats, activation<no_parameter, no_parameter, mish>, "x * tanh(softplus(x))"},
  {"", "Softplus", 1, 1, 1, Takes::floats, activation<no_parameter, no_parameter, plain_softplus>, "max(x, 0) + log(1 + exp(-abs(x)))"},
  {"", "Softsign", 1, 1, 1, Takes::floats, activation<no_parameter, no_parameter, softsign>, "x / (1 + abs(x))"},
  {"", "ThresholdedRelu", 10, 1, 1, Takes::floats, activation<Parameter{alpha, 1.0}, no_parameter, thresholded>, "select(x > alpha, x, 0)"},
  {"", "Shrink", 9, 1, 1, Takes::numbers, activation<Parameter{bias, 0.0}, Parameter{lambda, 0.5}, shrink>,
   "x + bias below -lambda, x - bias above lambda, else 0"},
  {"", "Gelu", 20, 1, 1, Takes::floats, lower_gelu, "x / 2 * (1 + erf(x / sqrt(2))), or its tanh form"},
});
// clang-format on

}  // namespace

std::span<const OperatorRow> activation_operators() { return activation_rows; }

}  // namespace hoist::operators
