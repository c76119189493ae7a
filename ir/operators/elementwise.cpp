// Operators that act on one element of each input: a row is a formula over scalars, and one helper broadcasts them all.
#include <fmt/format.h>

#include "ir/operators/families.h"
#include "ir/operators/support.h"

namespace hoist::operators {
namespace {

using F = Function;

template <auto formula>
Lowered unary(const OperatorContext& c) {
  return one(elementwise({c.inputs[0]}, [](const std::vector<Expr>& x) { return formula(Number(x[0])).e; }));
}

template <auto formula>
Lowered binary(const OperatorContext& c) {
  HOIST_TRY_VOID(check_same_element(c));
  HOIST_TRY_VOID(broadcast_extents(c.inputs));
  return one(elementwise(c.inputs, [](const std::vector<Expr>& x) { return formula(Number(x[0]), Number(x[1])).e; }));
}

template <F function>
Lowered call_one(const OperatorContext& c) {
  return unary<[](Number x) { return operators::apply(function, x); }>(c);
}

template <F function>
Lowered call_two(const OperatorContext& c) {
  return binary<[](Number a, Number b) { return operators::apply(function, a, b); }>(c);
}

// Any number of inputs, from the left; `finish` sees the result and how many there were.
template <F function>
Lowered variadic(const OperatorContext& c) {
  for (Expr x : c.inputs) {
    if (x == nullptr) return fault("an input is left out");
  }
  HOIST_TRY_VOID(check_same_element(c));
  HOIST_TRY_VOID(broadcast_extents(c.inputs));
  bool mean = c.call.name == "Mean";
  if (c.inputs.size() > 32) return fault(fmt::format("{} inputs, at most 32 are supported", c.inputs.size()));
  return one(elementwise(c.inputs, [&](const std::vector<Expr>& x) {
    Number total = x[0];
    for (size_t i = 1; i < x.size(); ++i) total = operators::apply(function, total, x[i]);
    return (mean && x.size() > 1 ? total / static_cast<double>(x.size()) : total).e;
  }));
}

Lowered lower_power(const OperatorContext& c) {
  Scalar base = element_of(c.inputs[0]), exponent = element_of(c.inputs[1]);
  if (exponent == Scalar::boolean) return fault("the exponent is bool");
  HOIST_TRY_VOID(broadcast_extents(c.inputs));
  Scalar common = base;
  if (is_integer(base) && is_float(exponent)) common = row(base).bits >= 32 ? Scalar::f64 : exponent;
  return one(elementwise(c.inputs, [&](const std::vector<Expr>& x) {
    return convert(base, call(F::power, {convert(common, x[0]), convert(common, x[1])}));
  }));
}

Lowered lower_modulo(const OperatorContext& c) {
  HOIST_TRY(int64_t like_c, integer_attribute(c, "fmod", 0));
  if (like_c != 0) return call_two<F::remainder>(c);
  if (is_float(element_of(c.inputs[0]))) return fault("fmod is 0, but the inputs are floats", "set fmod to 1");
  return call_two<F::modulo>(c);
}

Lowered lower_shift(const OperatorContext& c) {
  HOIST_TRY(auto direction, choice_attribute(c, "direction", "", {"LEFT", "RIGHT"}));
  return direction == "LEFT" ? call_two<F::shift_left>(c) : call_two<F::shift_right>(c);
}

Lowered lower_where(const OperatorContext& c) {
  Scalar a = element_of(c.inputs[1]), b = element_of(c.inputs[2]);
  if (a != b)
    return fault(fmt::format("inputs 1 and 2 have different element types {} and {}", row(a).name, row(b).name));
  HOIST_TRY_VOID(broadcast_extents(c.inputs));
  return one(elementwise(c.inputs, [](const std::vector<Expr>& x) { return select(x[0], x[1], x[2]); }));
}

Lowered lower_clip(const OperatorContext& c) {
  Scalar scalar = element_of(c.inputs[0]);
  HOIST_TRY_VOID(check_same_element(c));
  std::vector<Expr> bounds[2];  // of rank 0 or absent
  const char* names[] = {"min", "max"};
  for (size_t i = 0; i < 2; ++i) {
    if (has_attribute(c, names[i])) {
      HOIST_TRY(double value, float_attribute(c, names[i], 0));
      bounds[i] = {literal(scalar, value)};
    } else if (Expr x = input(c, i + 1)) {
      if (product(extents(x)) != 1)
        return fault(fmt::format("{} has to be one number, found {}", names[i], text(extents(x))));
      bounds[i] = {reshape(x, {})};
    }
  }
  return one(elementwise({c.inputs[0]}, [&](const std::vector<Expr>& x) {
    Number y = x[0];
    if (!bounds[0].empty()) y = max(y, bounds[0][0]);
    if (!bounds[1].empty()) y = min(y, bounds[1][0]);
    return y.e;
  }));
}

Lowered lower_is_infinite(const OperatorContext& c) {
  HOIST_TRY(int64_t negative, integer_attribute(c, "detect_negative", 1));
  HOIST_TRY(int64_t positive, integer_attribute(c, "detect_positive", 1));
  return one(elementwise({c.inputs[0]}, [&](const std::vector<Expr>& x) {
    Number v = x[0], infinite = operators::apply(F::is_infinite, v);
    if (negative == 0) infinite = infinite & (v > 0.0);
    if (positive == 0) infinite = infinite & (v < 0.0);
    return infinite.e;
  }));
}

Lowered convert_all(const OperatorContext& c, Scalar to) {
  HOIST_TRY(int64_t saturate, integer_attribute(c, "saturate", 1));
  return one(elementwise({c.inputs[0]}, [&](const std::vector<Expr>& v) {
    return saturate != 0 ? convert(to, v[0]) : convert_without_saturation(to, v[0]);
  }));
}

Lowered lower_cast(const OperatorContext& c) {
  HOIST_TRY(int64_t type, integer_attribute(c, "to", 0));
  HOIST_TRY(Scalar to, scalar_of_onnx(type));
  return convert_all(c, to);
}

Lowered lower_cast_like(const OperatorContext& c) { return convert_all(c, element_of(c.inputs[1])); }

Lowered lower_bit_cast(const OperatorContext& c) {
  HOIST_TRY(int64_t type, integer_attribute(c, "to", 0));
  HOIST_TRY(Scalar to, scalar_of_onnx(type));
  const Scalar from = element_of(c.inputs[0]);
  if (row(from).bits < 8 || row(from).bits != row(to).bits)
    return fault(fmt::format("the bits of {} as {} are not supported", row(from).name, row(to).name));
  const bool truth = from == Scalar::boolean || to == Scalar::boolean;  // a byte that is 0 or 1
  return one(elementwise(
      {c.inputs[0]}, [&](const std::vector<Expr>& x) { return truth ? convert(to, x[0]) : reinterpret(to, x[0]); }));
}

Lowered lower_identity(const OperatorContext& c) { return one(c.inputs[0]); }

// The identity; the mask of the second output says that nothing is dropped.
Lowered lower_dropout(const OperatorContext& c) {
  if (is_given(c, 2, "training_mode")) {
    HOIST_TRY(const Tensor training, constant_input(c, 2, "training_mode"));
    double ratio = 0.5;
    if (is_given(c, 1, "ratio")) {
      HOIST_TRY(const Tensor value, constant_input(c, 1, "ratio"));
      if (value.size() != 1) return fault("ratio has to be one number");
      ratio = value.float_at(0);
    }
    if (training.size() != 1) return fault("training_mode has to be one bool");
    if (training.integer_at(0) != 0 && ratio != 0) return fault("dropout in training mode is random");
  }
  Scalar mask = c.call.version >= 10 ? Scalar::boolean : element_of(c.inputs[0]);
  return std::vector<Expr>{c.inputs[0], constant_like(mask, extents(c.inputs[0]), 1)};
}

// clang-format off
constexpr auto elementwise_rows = std::to_array<OperatorRow>({
  {"", "Abs", 6, 1, 1, Takes::numbers, call_one<F::absolute>, "abs(x)"},
  {"", "Neg", 6, 1, 1, Takes::numbers, call_one<F::negate>, "-x"},
  {"", "Sign", 9, 1, 1, Takes::numbers, call_one<F::sign>, "sign(x)"},
  {"", "Reciprocal", 6, 1, 1, Takes::floats, unary<[](Number x) { return 1.0 / x; }>, "1 / x", 0.25, 4},
  {"", "Floor", 6, 1, 1, Takes::floats, call_one<F::floor>, "floor(x)"},
  {"", "Ceil", 6, 1, 1, Takes::floats, call_one<F::ceiling>, "ceil(x)"},
  {"", "Round", 11, 1, 1, Takes::floats, call_one<F::round>, "nearest integer, half to even"},
  {"", "Sqrt", 6, 1, 1, Takes::floats, call_one<F::sqrt>, "sqrt(x)", 0.1, 4},
  {"", "Exp", 6, 1, 1, Takes::floats, call_one<F::exp>, "exp(x)"},
  {"", "Log", 6, 1, 1, Takes::floats, call_one<F::log>, "log(x)", 0.1, 4},
  {"", "Sin", 7, 1, 1, Takes::floats, call_one<F::sin>, "sin(x)"},
  {"", "Cos", 7, 1, 1, Takes::floats, call_one<F::cos>, "cos(x)"},
  {"", "Tan", 7, 1, 1, Takes::floats, call_one<F::tan>, "tan(x)", -1, 1},
  {"", "Asin", 7, 1, 1, Takes::floats, call_one<F::asin>, "asin(x)", -1, 1},
  {"", "Acos", 7, 1, 1, Takes::floats, call_one<F::acos>, "acos(x)", -1, 1},
  {"", "Atan", 7, 1, 1, Takes::floats, call_one<F::atan>, "atan(x)"},
  {"", "Sinh", 9, 1, 1, Takes::floats, call_one<F::sinh>, "sinh(x)"},
  {"", "Cosh", 9, 1, 1, Takes::floats, call_one<F::cosh>, "cosh(x)"},
  {"", "Tanh", 6, 1, 1, Takes::floats, call_one<F::tanh>, "tanh(x)"},
  {"", "Asinh", 9, 1, 1, Takes::floats, call_one<F::asinh>, "asinh(x)"},
  {"", "Acosh", 9, 1, 1, Takes::floats, call_one<F::acosh>, "acosh(x)", 1, 4},
  {"", "Atanh", 9, 1, 1, Takes::floats, call_one<F::atanh>, "atanh(x)", -0.9, 0.9},
  {"", "Erf", 9, 1, 1, Takes::floats, call_one<F::erf>, "erf(x)"},
  {"", "IsNaN", 9, 1, 1, Takes::floats, call_one<F::is_nan>, "is_nan(x)"},
  {"", "IsInf", 10, 1, 1, Takes::floats, lower_is_infinite, "is_infinite(x), of the signs asked for"},
  {"", "Not", 1, 1, 1, Takes::booleans, call_one<F::logical_not>, "!x"},
  {"", "BitwiseNot", 18, 1, 1, Takes::integers, call_one<F::logical_not>, "!x, bit by bit"},
  {"", "Add", 7, 2, 2, Takes::numbers, call_two<F::add>, "a + b"},
  {"", "Sub", 7, 2, 2, Takes::numbers, call_two<F::subtract>, "a - b"},
  {"", "Mul", 7, 2, 2, Takes::numbers, call_two<F::multiply>, "a * b"},
  {"", "Div", 7, 2, 2, Takes::numbers, call_two<F::divide>, "a / b; integers truncate", 0.25, 4},
  {"", "Pow", 7, 2, 2, Takes::numbers, lower_power, "a to the b, in the type of a", 0.25, 2},
  {"", "Mod", 10, 2, 2, Takes::numbers, lower_modulo, "a % b, or C's fmod", 0.25, 4},
  {"", "BitShift", 11, 2, 2, Takes::integers, lower_shift, "a << b or a >> b"},
  {"", "BitwiseAnd", 18, 2, 2, Takes::integers, call_two<F::logical_and>, "a & b"},
  {"", "BitwiseOr", 18, 2, 2, Takes::integers, call_two<F::logical_or>, "a | b"},
  {"", "BitwiseXor", 18, 2, 2, Takes::integers, call_two<F::logical_xor>, "a ^ b"},
  {"", "And", 7, 2, 2, Takes::booleans, call_two<F::logical_and>, "a & b"},
  {"", "Or", 7, 2, 2, Takes::booleans, call_two<F::logical_or>, "a | b"},
  {"", "Xor", 7, 2, 2, Takes::booleans, call_two<F::logical_xor>, "a ^ b"},
  {"", "Equal", 7, 2, 2, Takes::anything, call_two<F::equal>, "a == b"},
  {"", "Less", 7, 2, 2, Takes::numbers, call_two<F::less>, "a < b"},
  {"", "LessOrEqual", 12, 2, 2, Takes::numbers, call_two<F::less_equal>, "a <= b"},
  {"", "Greater", 7, 2, 2, Takes::numbers, call_two<F::greater>, "a > b"},
  {"", "GreaterOrEqual", 12, 2, 2, Takes::numbers, call_two<F::greater_equal>, "a >= b"},
  {"", "Sum", 6, 1, -1, Takes::numbers, variadic<F::add>, "a + b + ..."},
  {"", "Mean", 6, 1, -1, Takes::floats, variadic<F::add>, "(a + b + ...) / how many"},
  {"", "Max", 6, 1, -1, Takes::numbers, variadic<F::maximum>, "max(a, b, ...)"},
  {"", "Min", 6, 1, -1, Takes::numbers, variadic<F::minimum>, "min(a, b, ...)"},
  {"", "Where", 9, 3, 3, Takes::booleans, lower_where, "select(c, a, b)"},
  {"", "Clip", 6, 1, 3, Takes::numbers, lower_clip, "min(max(x, low), high)"},
  {"", "Cast", 6, 1, 1, Takes::anything, lower_cast, "the number in another type"},
  {"", "CastLike", 15, 2, 2, Takes::anything, lower_cast_like, "the number in the type of the second input"},
  {"", "BitCast", 26, 1, 1, Takes::anything, lower_bit_cast, "the same bits as another type"},
  {"", "Identity", 1, 1, 1, Takes::anything, lower_identity, "x", -2, 2, "", 21},
  {"", "Dropout", 7, 1, 3, Takes::floats, lower_dropout, "x, when not training", -2, 2, "1 ratio, 2 training_mode"},
});
// clang-format on

}  // namespace

std::span<const OperatorRow> elementwise_operators() { return elementwise_rows; }

}  // namespace hoist::operators
