// Operators of onnxruntime's domain com.microsoft that its tools for quantisation and transformers write. Operators
// that are several layers of the standard have a body in the frontend; this file has formulas, and the meaning of 8-bit
// values: a quantised operator is the operator on (element - zero point) * scale in f32, divided by the scale of the
// result, rounded half to even, plus its zero point, saturated. The results of onnxruntime are the definition.
#include <fmt/format.h>

#include <array>

#include "ir/operators/definitions/operator_text.h"
#include "ir/operators/definitions/support.h"
#include "ir/operators/families.h"

namespace hoist::operators {
namespace {

constexpr std::string_view microsoft = "com.microsoft";

// The real value of an 8-bit element, by the scale and the zero point of its array.
#define HOIST_REAL(x)                                                                                         \
  "real_" x " = \\q. (convert(f32, q) - zero_" x ") * scale_" x "; scale_" x " = scalar " x "_scale; zero_" x \
  " = select(given(" x "_zero), convert(f32, scalar " x "_zero), 0f32); "
#define HOIST_SCALE "scale_y = scalar y_scale; zero_y = select(given(y_zero), convert(f32, scalar y_zero), 0f32)"
#define HOIST_RESULT "result = \\v. saturated(type(x), round(v / scale_y) + zero_y); " HOIST_SCALE

#define HOIST_EIGHT_BITS(x) "refuse bits(" x ") > 8: \"an input is {type(" x ")}, expected an integer of 8 bits\" "
#define HOIST_SAME_TYPE(x, zero)                                                                                  \
  "refuse given(" zero ") & type(" zero ") != type(" x "): \"an input is {type(" x ")}, a zero point {type(" zero \
  ")}\" "
#define HOIST_UNARY_HEAD "x : integers, x_scale : floats, x_zero? : integers, y_scale : floats, y_zero? : integers"
#define HOIST_UNARY_CHECKS HOIST_EIGHT_BITS("x") HOIST_SAME_TYPE("x", "x_zero") HOIST_SAME_TYPE("x", "y_zero")

// With two operands the zero point is added before rounding: onnxruntime does so here and in averages of windows alone.
#define HOIST_BINARY(function) \
  "(x : integers, x_scale : floats, x_zero? : integers, b : integers, b_scale : floats, b_zero? : integers, "         \
  "y_scale : floats, y_zero? : integers) " HOIST_EIGHT_BITS("x") HOIST_SAME_TYPE("x", "b")                            \
      HOIST_SAME_TYPE("x", "x_zero") HOIST_SAME_TYPE("x", "b_zero")                                                   \
          HOIST_SAME_TYPE("x", "y_zero") "= each x b. "                                                               \
  "saturated(type(x), round((real_x x " function " real_b b) / scale_y + zero_y)) where " HOIST_REAL("x")             \
              HOIST_REAL("b") HOIST_SCALE

#define HOIST_CURVE(attributes, formula)                  \
  "(" HOIST_UNARY_HEAD attributes ") " HOIST_UNARY_CHECKS \
  "= each x. result (curve (real_x x)) "                  \
  "where curve = \\v. " formula "; " HOIST_REAL("x") HOIST_RESULT

// As the standard's Gelu: nothing is left of x below -9, where an erf or tanh of the device may miss -1.
#define HOIST_GELU "select(v < -9, 0 * v, 0.5 * v * (1 + erf(v * sqrt(2) * 0.5)))"
#define HOIST_FAST_GELU \
  "select(v < -9, 0 * v, 0.5 * v * (1 + tanh(v * (0.035677408136300125 * v * v + 0.7978845608028654))))"

// Each array as its own reals, one after the other along an axis. Equal scales and zero points keep every number.
Lowered lower_quantised_concat(const OperatorContext& c) {
  const auto parameter_of = [&](size_t i, const char* role) -> Result<Expr> {
    Expr p = input(c, i);
    if (p == nullptr) return fault(fmt::format("input {} ({}) is left out", i, role));
    if (product(extents(p)) != 1)
      return fault(fmt::format("the {} of input {} is {}, expected one number", role, i, text(extents(p))));
    return reshape(p, {});
  };
  HOIST_TRY(Expr scale, parameter_of(0, "scale"));
  HOIST_TRY(Expr zero, parameter_of(1, "zero point"));
  const Scalar quantised = element_of(zero);
  if (!is_integer(quantised) || row(quantised).bits > 8)
    return fault(fmt::format("the result is {}, expected an integer of 8 bits", row(quantised).name));
  if (c.inputs.size() < 5 || (c.inputs.size() - 2) % 3 != 0)
    return fault(fmt::format("{} inputs are no arrays with a scale and a zero point each", c.inputs.size()));
  std::vector<Expr> arrays;
  for (size_t i = 2; i + 2 < c.inputs.size(); i += 3) {
    Expr x = input(c, i);
    if (x == nullptr) return fault(fmt::format("input {} is left out", i));
    HOIST_TRY(Expr own_scale, parameter_of(i + 1, "scale"));
    HOIST_TRY(Expr own_zero, parameter_of(i + 2, "zero point"));
    if (element_of(x) != quantised || element_of(own_zero) != quantised)
      return fault(fmt::format("input {} is {}, the result {}", i, row(element_of(x)).name, row(quantised).name));
    const auto wide = [](Expr e) { return Number(convert(Scalar::f32, e)); };
    arrays.push_back(map_at(
        static_cast<int>(rank_of(x)),
        [&](Expr q) {
          const Number steps = apply(Function::round, (wide(q) - wide(own_zero)) * wide(own_scale) / wide(scale));
          return cast(quantised, (steps + wide(zero)).e);
        },
        x));
  }
  HOIST_TRY(int64_t named, integer_attribute(c, "axis", 0));
  return concatenation(arrays, named);
}

// clang-format off
constexpr auto contributed_rows = std::to_array<OperatorRow>({
  in_domain(microsoft, by_text("QLinearAdd", 1, HOIST_BINARY("+"))),
  in_domain(microsoft, by_text("QLinearMul", 1, HOIST_BINARY("*"))),
  in_domain(microsoft, by_text("QLinearSigmoid", 1, HOIST_CURVE("", "1 / (1 + exp(-v))"))),
  in_domain(microsoft, by_text("QLinearLeakyRelu", 1, HOIST_CURVE("; alpha = 0.01", "select(v < 0, alpha * v, v)"))),
  // Before version 13 of Softmax, which `opset` names, everything from the axis on is one row.
  in_domain(microsoft, by_text("QLinearSoftmax", 1,
          "(" HOIST_UNARY_HEAD "; axis = -1, opset = 13) " HOIST_UNARY_CHECKS
          "= select(opset < 13, from_axis axis row_of x, along axis row_of x) "
          "where row_of = \\row. let m = reduce max lowest (map real_x row) in let s = sum (map (\\q. exp(real_x q - m)) row) "
          "in map (\\q. result (exp(real_x q - m) / s)) row; " HOIST_REAL("x") HOIST_RESULT)),
  in_domain(microsoft, by_text("QLinearAveragePool", 1,
          "(" HOIST_UNARY_HEAD "; kernel_shape?, strides?, pads?, dilations?, auto_pad = \"NOTSET\", ceil_mode = 0, count_include_pad = 0, channels_last = 0) "
          HOIST_UNARY_CHECKS "refuse channels_last: \"channels_last {channels_last} is not supported\" "
          "= (each means. saturated(type(x), round(means / scale_y + zero_y))) "
          "where means = counted_windows 0 count_include_pad (\\window count. sum window / count) reals; "
          "reals = each x. real_x x; " HOIST_REAL("x") HOIST_SCALE)),
  // The sum is exact; the factor is one number, as in the integer layers of the standard.
  in_domain(microsoft, by_text("QLinearGlobalAveragePool", 1,
          "(" HOIST_UNARY_HEAD "; channels_last = 0) " HOIST_UNARY_CHECKS
          "refuse channels_last: \"channels_last {channels_last} is not supported\" "
          "= planes (\\plane[n]. saturated(type(x), round(convert(f32, total plane) * (scalar x_scale / (scalar y_scale * n))) + zero_y)) x "
          "where total = \\plane. plane |> map (\\q. convert(i32, q) - zero_x) |> reduce (+) 0; "
          "zero_x = select(given(x_zero), convert(i32, scalar x_zero), 0i32); "
          "zero_y = select(given(y_zero), convert(f32, scalar y_zero), 0f32)")),
  {microsoft, "QLinearConcat", 1, 5, -1, Takes::floats, lower_quantised_concat,
   "concatenates arrays with different scales, in one scale; a function, since the number of arrays and dimensions is arbitrary"},
  in_domain(microsoft, by_text("Gelu", 1, "(x : floats) = each x. gelu x where gelu = \\v. " HOIST_GELU)),
  in_domain(microsoft, by_text("BiasGelu", 1,
          "(x : floats, bias) refuse !broadcasts(bias, x): \"the bias {bias} does not broadcast to the input {x}\" "
          "= each x bias. gelu (x + bias) where gelu = \\v. " HOIST_GELU)),
  in_domain(microsoft, by_text("FastGelu", 1,
          "(x : floats, bias?) refuse given(bias) & !broadcasts(bias, x): \"the bias {bias} does not broadcast to the input {x}\" "
          "= select(given(bias), each x bias. gelu (x + bias), each x. gelu x) where gelu = \\v. " HOIST_FAST_GELU)),
  in_domain(microsoft, by_text("QuickGelu", 1, "(x : floats; alpha = 1.702) = each x. x * sigmoid(alpha * x)")),
  in_domain(microsoft, by_text("SimplifiedLayerNormalization", 1,
          "(x : floats, scale; axis = -1, epsilon = 0.00001, stash_type : type = f32) "
          "refuse !floats(stash_type): \"stash_type has to be a float type\" "
          "= (x |> after axis (\\block. block |> flat (widened >> (\\row. let d = deviation row in "
          "zip(row, spread scale block) |> map (\\(v, s). convert(type(x), v / d) * s)))), "
          "x |> statistic axis (widened >> (\\row. 1 / deviation row))) "
          "where deviation = \\row. sqrt(mean (map (\\v. v * v) row) + epsilon); "
          "widened = \\row. (each row. convert(wider(stash_type, type(x)), row))")),
  // Weights of `bits` bits are packed in bytes, the first in the lowest bits, in blocks along k; zero points likewise.
  in_domain(microsoft, by_text("MatMulNBits", 1,
          "(a : floats, b : integers [n][blocks][bytes], scales : floats, zeros? : anything, groups? : integers, bias? : floats; "
          "K from 1, N from 1, bits = 4, block_size from 16, accuracy_level = 0) "
          "refuse bits != 2 & bits != 4 & bits != 8: \"weights of {bits} bits, expected 2, 4 or 8\" "
          "refuse type(b) != u8: \"the weights are {type(b)}, expected u8\" "
          "refuse n != N | blocks != ceil(K / block_size) | bytes * 8 != block_size * bits: "
          "\"the weights {b} do not hold {N} columns of {K} numbers of {bits} bits in blocks of {block_size}\" "
          "refuse elements(scales) != n * blocks: \"{scales} scales, expected [{n}][{blocks}]\" "
          "refuse given(groups): \"an order of the columns (g_idx) is not supported\" "
          "refuse given(zeros) & floats(zeros) & elements(zeros) != n * blocks: \"{zeros} zero points, expected [{n}][{blocks}]\" "
          "refuse given(zeros) & !floats(zeros) & elements(zeros) != n * packed: "
          "\"{zeros} bytes of zero points, expected [{n}][{packed}]\" "
          "refuse given(bias) & elements(bias) != n: \"the bias is {bias}, expected [{n}]\" "
          "= select(given(bias), products (\\row column v. convert(type(a), dot row column + convert(W, v))) a weights bias, "
          "products (\\row column. convert(type(a), dot row column)) a weights) "
          "where weights = transpose (zip(b, reshape [n][blocks] scales, offsets) |> map (\\(column, ss, zs). "
          "zip(column, ss, zs) |> map (\\(block, s, z). block |> unpacked |> map (\\q. (convert(W, q) - z) * convert(W, s))) |> join |> slice 0 K)); "
          "offsets = select(!given(zeros), repeat n (repeat blocks middle), select(floats(zeros), "
          "(each zeros. convert(W, zeros)) |> reshape [n][blocks], zeros |> reshape [n][packed] "
          "|> map (\\line. line |> unpacked |> slice 0 blocks |> map (convert(W))))); "
          "packed = ceil(blocks * bits / 8); middle = convert(W, select(bits == 2, 2, select(bits == 4, 8, 128))); "
          "unpacked = \\line. line |> map (\\byte. map (\\i. shift_right(byte, i * bits) & mask) (iota each_byte u8)) |> join; "
          "each_byte = floor(8 / bits); mask = select(bits == 2, 3, select(bits == 4, 15, 255)); "
          "dot = \\row column. (zip(row, column) |> map (\\(p, q). convert(W, p) * q) |> reduce (+) 0); W = wide(type(a))")),
});
// clang-format on

#undef HOIST_REAL
#undef HOIST_RESULT
#undef HOIST_SCALE
#undef HOIST_EIGHT_BITS
#undef HOIST_SAME_TYPE
#undef HOIST_UNARY_HEAD
#undef HOIST_UNARY_CHECKS
#undef HOIST_BINARY
#undef HOIST_CURVE
#undef HOIST_GELU
#undef HOIST_FAST_GELU

}  // namespace

std::span<const OperatorRow> contributed_operators() { return contributed_rows; }

}  // namespace hoist::operators
