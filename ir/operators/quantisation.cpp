// Quantised numbers: to them, from them, and the products of them. There is one meaning of an integer layer: the exact
// sum of products of (number - zero point), plus the bias, times one f32 factor, rounded half to even, plus the zero
// point, saturated.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/operators/convolution.h"
#include "ir/operators/families.h"
#include "ir/operators/matrix.h"

namespace hoist::operators {
namespace {

// ---- To quantised numbers and from them ----------------------------------------------------------------------------

bool is_float8(Scalar scalar) { return is_float(scalar) && row(scalar).bits == 8; }

bool is_one_number(Expr parameter) { return product(extents(parameter)) == 1; }

// A scale or zero point that belongs to all of x, to positions along the axis, or to blocks along it, as an array that
// broadcasts to x.
Result<Expr> along(const OperatorContext& c, Expr x, Expr parameter, const char* role) {
  if (is_one_number(parameter)) return reshape(parameter, {});
  Shape shape = extents(x), found = extents(parameter);
  HOIST_TRY(int64_t asked, integer_attribute(c, "axis", 1));
  HOIST_TRY(int64_t block, integer_attribute(c, "block_size", 0));
  HOIST_TRY(int64_t axis, normalise_axis(shape.size() == 1 ? 0 : asked, rank_of(x)));
  const auto at = static_cast<size_t>(axis);
  const int64_t n = shape[at];
  if (block < 0) return fault(fmt::format("attribute block_size is {}", block));
  if (block == 0) {
    if (found != Shape{n}) {
      return fault(fmt::format("the {} is {}, expected one number or [{}] for axis {}", role, text(found), n, axis));
    }
    Shape spread(shape.size() - at, 1);
    spread[0] = n;
    return reshape(parameter, spread);
  }
  block = std::min(block, std::max<int64_t>(n, 1));
  Shape wanted = shape;
  wanted[at] = (n + block - 1) / block;
  if (found != wanted) {
    return fault(fmt::format("the {} is {}, expected {} for blocks of {} along axis {}", role, text(found),
                             text(wanted), block, axis));
  }
  return map_at(
      static_cast<int>(axis),
      [&](Expr line) { return slice(0, n, join(map([&](Expr value) { return repeat(block, value); }, line))); },
      parameter);
}

// x, the scale and, where there is one, the zero point, of extents that broadcast to those of x.
Result<std::vector<Expr>> operands_along(const OperatorContext& c) {
  Expr x = c.inputs[0];
  HOIST_TRY(Expr scale, along(c, x, c.inputs[1], "scale"));
  if (input(c, 2) == nullptr) return std::vector<Expr>{x, scale};
  HOIST_TRY(Expr zero_point, along(c, x, c.inputs[2], "zero point"));
  return std::vector<Expr>{x, scale, zero_point};
}

// The element type that the attribute names, or else `otherwise`.
Result<Scalar> scalar_attribute(const OperatorContext& c, const char* name, Scalar otherwise) {
  HOIST_TRY(int64_t type, integer_attribute(c, name, 0));
  if (type == 0) return otherwise;
  return scalar_of_onnx(type);
}

Lowered lower_quantise(const OperatorContext& c) {
  Expr zero_point = input(c, 2);
  HOIST_TRY(int64_t saturate, integer_attribute(c, "saturate", 1));
  HOIST_TRY(Scalar to,
            scalar_attribute(c, "output_dtype", zero_point == nullptr ? Scalar::u8 : element_of(zero_point)));
  if (zero_point != nullptr && element_of(zero_point) != to) {
    return fault(fmt::format("output_dtype is {}, the zero point {}", row(to).name, row(element_of(zero_point)).name));
  }
  if (to == Scalar::boolean || (is_float(to) && !is_float8(to)) || (is_integer(to) && row(to).bits > 16)) {
    return fault(fmt::format("the result is {}, expected an integer of at most 16 bits or a float8", row(to).name));
  }
  Scalar scale_type = element_of(c.inputs[1]);
  HOIST_TRY(Scalar precision, scalar_attribute(c, "precision", is_float(scale_type) ? scale_type : Scalar::f32));
  if (!is_float(precision) || is_float8(precision)) {
    return fault(fmt::format("precision is {}, expected a float of 16 bits or more", row(precision).name));
  }
  HOIST_TRY(std::vector<Expr> operands, operands_along(c));
  // A 16-bit zero point is no number of f16, so that the sum is formed in f32.
  const Scalar wide = wide_float(precision);
  // A scale that is known to be 1 divides nothing.
  const Tensor* known = c.constants[1];
  const bool is_one = known != nullptr && known->size() == 1 && is_float(known->scalar()) && known->float_at(0) == 1;
  return one(elementwise(operands, [&](const std::vector<Expr>& p) {
    Number steps = convert(precision, p[0]);
    if (!is_one) steps = steps / convert(precision, p[1]);
    if (is_integer(to)) steps = apply(Function::round, steps);
    Number shifted = convert(wide, steps.e);
    if (p.size() > 2) shifted = shifted + convert(wide, p[2]);
    return saturate != 0 || is_integer(to) ? cast(to, shifted.e) : convert_without_saturation(to, shifted.e);
  }));
}

Lowered lower_dequantise(const OperatorContext& c) {
  Expr zero_point = input(c, 2);
  Scalar from = element_of(c.inputs[0]), scale_type = element_of(c.inputs[1]);
  HOIST_TRY(Scalar to, scalar_attribute(c, "output_dtype", scale_type));
  if (!is_float(to) || !is_float(scale_type)) {
    return fault(fmt::format("the scale is {} and the result {}, expected floats", row(scale_type).name, row(to).name));
  }
  if ((is_integer(from) && row(from).bits > 32) || from == Scalar::u32) {
    return fault(fmt::format("the input is {}, expected an integer that fits into i32, or a float8", row(from).name));
  }
  if (zero_point != nullptr && element_of(zero_point) != from) {
    return fault(fmt::format("the input is {}, the zero point {}", row(from).name, row(element_of(zero_point)).name));
  }
  HOIST_TRY(std::vector<Expr> operands, operands_along(c));
  // Differences of integers are exact; the product is rounded once.
  const Scalar wide = wide_float(scale_type);
  const Scalar exact = is_integer(from) ? Scalar::i32 : wide;
  return one(elementwise(operands, [&](const std::vector<Expr>& p) {
    Number steps = convert(exact, p[0]);
    if (p.size() > 2) steps = steps - convert(exact, p[2]);
    return convert(to, (Number(convert(wide, steps.e)) * convert(wide, p[1])).e);
  }));
}

// ---- Products
// --------------------------------------------------------------------------------------------------------

bool is_quantised(Expr x) { return is_integer(element_of(x)) && row(element_of(x)).bits <= 8; }

enum class Line : uint8_t { row, column };

// A zero point or scale of the matrices x: one number, or one for each of their rows or columns, as an array that
// broadcasts to x and to what a product with x on that side gives.
Result<Expr> by_line(Expr x, Expr parameter, Line line, const char* role) {
  if (is_one_number(parameter)) return reshape(parameter, {});
  Shape shape = extents(x), found = extents(parameter);
  if (shape.size() >= 2) {
    shape[shape.size() - (line == Line::row ? 1 : 2)] = 1;
    if (found == shape) return parameter;
    Shape matrix(shape.end() - 2, shape.end());
    if (found == Shape{product(matrix)}) return reshape(parameter, matrix);
  }
  return fault(fmt::format("the {} {} is neither one number nor one for each {} of {}", role, text(found),
                           line == Line::row ? "row" : "column", text(extents(x))));
}

// The same of filters [O][C][k...], as an array that broadcasts to `rank` dimensions of which O is the outermost.
Result<Expr> by_filter(Expr filters, Expr parameter, int64_t rank, const char* role) {
  if (is_one_number(parameter)) return reshape(parameter, {});
  Shape found = extents(parameter);
  int64_t outputs = extents(filters)[0];
  if (found != Shape{outputs}) {
    return fault(fmt::format("the {} is {}, expected one number or [{}]", role, text(found), outputs));
  }
  Shape spread(static_cast<size_t>(rank), 1);
  spread[0] = outputs;
  return reshape(parameter, spread);
}

Result<Expr> single(Expr parameter, const char* role) {
  if (!is_one_number(parameter)) {
    return fault(fmt::format("the {} is {}, expected one number", role, text(extents(parameter))));
  }
  return reshape(parameter, {});
}

// x - zero point as whole numbers of the type.
Expr centred(Scalar wide, Expr x, Expr zero_point) {
  std::vector<Expr> operands = {x};
  if (zero_point != nullptr) operands.push_back(zero_point);
  return elementwise(operands, [&](const std::vector<Expr>& p) {
    Number value = convert(wide, p[0]);
    return (p.size() > 1 ? value - convert(wide, p[1]) : value).e;
  });
}

// Checks a factor and its zero point, which is null where it is left out or known to be zero everywhere.
Result<Expr> zero_point_of(const OperatorContext& c, size_t factor, size_t i) {
  Expr x = c.inputs[factor], zero_point = input(c, i);
  if (!is_quantised(x)) {
    return fault(fmt::format("input {} is {}, expected an integer of 8 bits", factor, row(element_of(x)).name));
  }
  if (zero_point == nullptr) return zero_point;
  if (element_of(zero_point) != element_of(x)) {
    return fault(fmt::format("input {} is {}, its zero point {}", factor, row(element_of(x)).name,
                             row(element_of(zero_point)).name));
  }
  const Tensor* known = c.constants[i];
  for (int64_t k = 0; known != nullptr && k < known->size(); ++k) {
    if (known->integer_at(k) != 0) return zero_point;
  }
  return known == nullptr ? zero_point : nullptr;
}

// The sum over each row as whole numbers of the type.
Expr row_sums(Scalar wide, Expr rows) {
  return map(
      [&](Expr row) {
        return reduce(Function::add, zero(wide), map([&](Expr e) { return convert(wide, e); }, flatten(row)));
      },
      rows);
}

// Sums of (a - zero) * b are those of a * b less zero times the sum of b, which is known where b is: the products are
// of 8-bit numbers as they are stored then. Only where one zero point belongs to all of a, and b has none.
Result<Expr> integer_product(const OperatorContext& c, Scalar wide, size_t b, size_t zero_a, size_t zero_b) {
  HOIST_TRY(Expr a_zero, zero_point_of(c, 0, zero_a));
  HOIST_TRY(Expr b_zero, zero_point_of(c, b, zero_b));
  Expr x = c.inputs[0], y = c.inputs[b];
  if (b_zero == nullptr && a_zero == nullptr) return matrix_product(x, y, wide);
  if (b_zero == nullptr && is_one_number(a_zero) && rank_of(y) == 2 && c.constants[b] != nullptr) {
    HOIST_TRY(Expr total, matrix_product(x, y, wide));
    return elementwise({total, row_sums(wide, transpose(y)), reshape(a_zero, {})}, [&](const std::vector<Expr>& p) {
      return (Number(p[0]) - Number(convert(wide, p[2])) * p[1]).e;
    });
  }
  if (a_zero != nullptr) {
    HOIST_TRY(a_zero, by_line(x, a_zero, Line::row, "zero point"));
  }
  if (b_zero != nullptr) {
    HOIST_TRY(b_zero, by_line(y, b_zero, Line::column, "zero point"));
  }
  return matrix_product(centred(wide, x, a_zero), centred(wide, y, b_zero));
}

// The same; padding has to be known as a number then.
Result<Expr> integer_convolution(const OperatorContext& c, Scalar wide, size_t filters, size_t zero_x, size_t zero_w,
                                 Expr bias) {
  Expr x = c.inputs[0], w = c.inputs[filters];
  HOIST_TRY(Expr x_zero, zero_point_of(c, 0, zero_x));
  HOIST_TRY(Expr w_zero, zero_point_of(c, filters, zero_w));
  if (rank_of(w) != rank_of(x)) {
    return fault(fmt::format("the weights {} have another rank than the input {}", text(extents(w)), text(extents(x))));
  }
  if (rank_of(w) == 0) return fault("the weights are a scalar");
  if (x_zero != nullptr) {
    HOIST_TRY(x_zero, single(x_zero, "zero point of the input"));
  }
  if (w_zero == nullptr && x_zero == nullptr) return convolution(c, x, w, bias, {wide, 0});
  if (w_zero == nullptr && c.constants[zero_x] != nullptr && c.constants[filters] != nullptr) {
    const int64_t known = c.constants[zero_x]->integer_at(0);
    Expr sums = row_sums(wide, w);
    Expr offset = map([&](Expr sum) { return (Number(sum) * literal_integer(wide, -known)).e; }, sums);
    if (bias != nullptr) {
      offset = map_zip({offset, bias}, [](const std::vector<Expr>& p) { return (Number(p[0]) + p[1]).e; });
    }
    return convolution(c, x, w, offset, {wide, known});
  }
  if (w_zero != nullptr) {
    HOIST_TRY(w_zero, by_filter(w, w_zero, rank_of(w), "zero point of the weights"));
  }
  return convolution(c, centred(wide, x, x_zero), centred(wide, w, w_zero), bias);
}

Lowered lower_integer_product(const OperatorContext& c) {
  HOIST_TRY(Expr result, integer_product(c, Scalar::i32, 1, 2, 3));
  return one(result);
}

Lowered lower_integer_convolution(const OperatorContext& c) {
  HOIST_TRY(Expr result, integer_convolution(c, Scalar::i32, 1, 2, 3, nullptr));
  return one(result);
}

// i32 where sums of so many products of 8-bit differences, and the bias, cannot leave it.
Scalar sum_type(const OperatorContext& c, int64_t terms, size_t bias) {
  constexpr int64_t most_product = 255 * 255;
  int64_t largest = 0;
  if (input(c, bias) != nullptr) {
    const Tensor* known = c.constants[bias];
    if (known == nullptr) return Scalar::i64;
    for (int64_t i = 0; i < known->size(); ++i) largest = std::max(largest, std::abs(known->integer_at(i)));
  }
  return terms <= (INT32_MAX - std::min<int64_t>(largest, INT32_MAX)) / most_product ? Scalar::i32 : Scalar::i64;
}

// total * (a_scale * b_scale / y_scale) + zero point; the arrays broadcast to the sums.
Lowered requantised(Expr total, const std::vector<Expr>& scales, Expr zero_point) {
  for (Expr s : scales) {
    if (!is_float(element_of(s))) return fault(fmt::format("a scale is {}, expected a float", row(element_of(s)).name));
  }
  const Scalar to = element_of(zero_point);
  if (!is_quantised(zero_point)) {
    return fault(fmt::format("the result is {}, expected an integer of 8 bits", row(to).name));
  }
  Expr factor = elementwise(scales, [](const std::vector<Expr>& s) {
    auto single_precision = [](Expr e) { return Number(convert(Scalar::f32, e)); };
    return (single_precision(s[0]) * single_precision(s[1]) / single_precision(s[2])).e;
  });
  HOIST_TRY(Shape result, broadcast_extents({total, factor, zero_point}));
  if (result != extents(total)) {
    return fault(fmt::format("the scales {} do not belong to {}", text(extents(factor)), text(extents(total))));
  }
  return one(elementwise({total, factor, zero_point}, [&](const std::vector<Expr>& p) {
    Number steps = apply(Function::round, Number(convert(Scalar::f32, p[0])) * p[1]);
    return cast(to, (steps + convert(Scalar::f32, p[2])).e);
  }));
}

Lowered lower_quantised_product(const OperatorContext& c) {
  Shape shape = extents(c.inputs[0]);
  if (shape.empty()) return fault("a scalar cannot be a factor of a matrix product");
  HOIST_TRY(Expr total, integer_product(c, sum_type(c, shape.back(), c.inputs.size()), 3, 2, 5));
  HOIST_TRY(Expr a_scale, by_line(c.inputs[0], c.inputs[1], Line::row, "scale"));
  HOIST_TRY(Expr b_scale, by_line(c.inputs[3], c.inputs[4], Line::column, "scale"));
  HOIST_TRY(Expr y_scale, by_line(total, c.inputs[6], Line::row, "scale"));
  HOIST_TRY(Expr y_zero, by_line(total, c.inputs[7], Line::row, "zero point"));
  return requantised(total, {a_scale, b_scale, y_scale}, y_zero);
}

Lowered lower_quantised_convolution(const OperatorContext& c) {
  Expr filters = c.inputs[3], bias = input(c, 8);
  Shape shape = extents(filters);
  if (shape.empty()) return fault("the weights are a scalar");
  if (bias != nullptr && element_of(bias) != Scalar::i32) {
    return fault(fmt::format("the bias is {}, expected i32", row(element_of(bias)).name));
  }
  Scalar wide = sum_type(c, shape[0] == 0 ? 0 : product(shape) / shape[0], 8);
  HOIST_TRY(Expr total,
            integer_convolution(c, wide, 3, 2, 5, bias == nullptr ? nullptr : centred(wide, bias, nullptr)));
  HOIST_TRY(Expr x_scale, single(c.inputs[1], "scale of the input"));
  HOIST_TRY(Expr w_scale, by_filter(filters, c.inputs[4], rank_of(filters) - 1, "scale of the weights"));
  HOIST_TRY(Expr y_scale, single(c.inputs[6], "scale of the result"));
  HOIST_TRY(Expr y_zero, single(c.inputs[7], "zero point of the result"));
  return requantised(total, {x_scale, w_scale, y_scale}, y_zero);
}

// clang-format off
constexpr auto quantisation_rows = std::to_array<OperatorRow>({
  {"", "QuantizeLinear", 10, 2, 3, Takes::numbers, lower_quantise,
   "round(x / scale) + zero point, half to even, saturated; a function, since scales per tensor, axis or block nest by rank"},
  {"", "DequantizeLinear", 10, 2, 3, Takes::numbers, lower_dequantise,
   "(x - zero point) * scale; a function, since scales per tensor, axis or block nest by rank"},
  {"", "MatMulInteger", 10, 2, 4, Takes::integers, lower_integer_product,
   "MatMul of 8-bit numbers less their zero points, exact sums in i32; a function, since it builds on MatMul's"},
  {"", "ConvInteger", 10, 2, 4, Takes::integers, lower_integer_convolution,
   "Conv of 8-bit numbers less their zero points, exact sums in i32; a function, since it builds on Conv's"},
  {"", "QLinearMatMul", 10, 8, 8, Takes::integers, lower_quantised_product,
   "MatMulInteger, scaled once in f32, rounded half to even, saturated; a function, since it builds on MatMul's"},
  {"", "QLinearConv", 10, 8, 9, Takes::integers, lower_quantised_convolution,
   "ConvInteger plus a bias of i32, scaled once in f32, rounded half to even, saturated; a function, since it builds on Conv's"},
});
// clang-format on

}  // namespace

std::span<const OperatorRow> quantisation_operators() { return quantisation_rows; }

}  // namespace hoist::operators
