// Activation functions: formulas of one element, with the parameters that ONNX gives them as attributes.
#include <array>

#include "ir/operators/definitions/operator_text.h"
#include "ir/operators/families.h"

namespace hoist::operators {
namespace {

// Softplus takes the larger part out of the logarithm, so that no exponential overflows, and the logarithm of 1 + t is
// corrected for the rounding of the sum for a small t (Kahan's log1p), so that small results keep their digits. Gelu
// multiplies x by an exact 0 for x below -9: a device's erf or tanh may differ from -1 there in its last bit, which
// times a large x is a large number; -infinity times 0 stays NaN.
#define HOIST_SOFTPLUS "max(x, 0) + select(u == 1, t, log(u) * t / (u - 1))"
#define HOIST_SOFTPLUS_PARTS " where t = exp(-abs(x)); u = 1 + t"

// clang-format off
constexpr auto activation_rows = std::to_array<OperatorRow>({
  by_text("Relu", 6, "(x : numbers) = each x. max(x, 0)"),
  by_text("LeakyRelu", 6, "(x : floats; alpha = 0.01) = each x. select(x < 0, alpha * x, x)"),
  by_text("PRelu", 7,
          "(x : numbers, slope) refuse !broadcasts(slope, x): \"slope {slope} does not broadcast to the input {x}\" "
          "= each x slope. select(x < 0, slope * x, x)"),
  by_text("Elu", 6, "(x : floats; alpha = 1.0) = each x. select(x < 0, alpha * (exp(x) - 1), x)"),
  by_text("Selu", 6,
          "(x : floats; alpha = 1.67326319217681884765625, gamma = 1.05070102214813232421875) "
          "= each x. select(x > 0, gamma * x, gamma * (alpha * exp(x) - alpha))"),
  by_text("Celu", 12, "(x : floats; alpha = 1.0) = each x. max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)"),
  by_text("Sigmoid", 6, "(x : floats) = each x. 1 / (1 + exp(-x))"),
  by_text("HardSigmoid", 6, "(x : floats; alpha = 0.2, beta = 0.5) = each x. max(min(alpha * x + beta, 1), 0)"),
  by_text("HardSwish", 14, "(x : floats) = each x. x * max(min(x / 6 + 0.5, 1), 0)"),
  by_text("Swish", 24, "(x : floats; alpha = 1.0) = each x. x * sigmoid(alpha * x)"),
  by_text("Mish", 18, "(x : floats) = each x. x * tanh(" HOIST_SOFTPLUS ")" HOIST_SOFTPLUS_PARTS),
  by_text("Softplus", 1, "(x : floats) = each x. " HOIST_SOFTPLUS HOIST_SOFTPLUS_PARTS),
  by_text("Softsign", 1, "(x : floats) = each x. x / (1 + abs(x))"),
  by_text("ThresholdedRelu", 10, "(x : floats; alpha = 1.0) = each x. select(x > alpha, x, 0)"),
  // Integers are compared with the attributes as these are.
  by_text("Shrink", 9,
          "(x : numbers; bias = 0.0, lambd = 0.5) "
          "= each x. convert(type(x), select(v < -lambd, v + bias, select(v > lambd, v - bias, 0))) "
          "where v = convert(C, x); C = select(floats(x), wide(type(x)), select(bits(x) < 32, f32, f64))"),
  by_text("Gelu", 20,
          "(x : floats; approximate = \"none\" | \"tanh\") = each x. select(x < -9, 0 * x, 0.5 * x * (1 + wave)) "
          "where wave = select(approximate == \"none\", erf(x * sqrt(2) * 0.5), "
          "tanh(sqrt(2 / pi) * (x + 0.044715 * (x * x * x))))"),
});
// clang-format on

#undef HOIST_SOFTPLUS
#undef HOIST_SOFTPLUS_PARTS

}  // namespace

std::span<const OperatorRow> activation_operators() { return activation_rows; }

}  // namespace hoist::operators
