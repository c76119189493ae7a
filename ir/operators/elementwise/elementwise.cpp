// Operators that act on one element of each input, as formulas; arrays broadcast.
#include <array>

#include "ir/operators/definitions/operator_text.h"
#include "ir/operators/definitions/support.h"
#include "ir/operators/families.h"

namespace hoist::operators {
namespace {

// Each x as a T. Rounding to powers of two by another mode than that of the language acts on the bits of an f32:
// infinity has 2139095040, the least normal number 8388608 and the largest number 2139095039. Powers below normal
// numbers, 2^-127 alone, have no exponent of their own, so that a half of the step above is 2097152 there and 4194304
// elsewhere.
#define HOIST_CONVERTED                                                                                              \
  "each x. select(saturate, convert(T, v), convert_without_saturation(T, v)) "                                       \
  "where v = select(T != f8e8m0 | round_mode == \"up\", x, "                                                         \
  "select(w < 2139095040, same_bits(f32, select(round_mode == \"down\", w, near) & 2139095040), convert(f32, x))); " \
  "near = select(saturate, min(above, 2139095039), above); "                                                         \
  "above = w + select(w < 8388608, 2097152, 4194304); w = same_bits(u32, convert(f32, x)) & 2147483647; "

// clang-format off
constexpr auto elementwise_rows = std::to_array<OperatorRow>({
  by_text("Abs", 6, "(x : numbers) = each x. abs(x)"),
  by_text("Neg", 6, "(x : numbers) = each x. -x"),
  by_text("Sign", 9, "(x : numbers) = each x. sign(x)"),
  by_text("Reciprocal", 6, "(x : floats) = each x. 1 / x", 0.25, 4),
  by_text("Floor", 6, "(x : floats) = each x. floor(x)"),
  by_text("Ceil", 6, "(x : floats) = each x. ceil(x)"),
  by_text("Round", 11, "(x : floats) = each x. round(x)"),
  by_text("Sqrt", 6, "(x : floats) = each x. sqrt(x)", 0.1, 4),
  by_text("Exp", 6, "(x : floats) = each x. exp(x)"),
  by_text("Log", 6, "(x : floats) = each x. log(x)", 0.1, 4),
  by_text("Sin", 7, "(x : floats) = each x. sin(x)"),
  by_text("Cos", 7, "(x : floats) = each x. cos(x)"),
  by_text("Tan", 7, "(x : floats) = each x. tan(x)", -1, 1),
  by_text("Asin", 7, "(x : floats) = each x. asin(x)", -1, 1),
  by_text("Acos", 7, "(x : floats) = each x. acos(x)", -1, 1),
  by_text("Atan", 7, "(x : floats) = each x. atan(x)"),
  by_text("Sinh", 9, "(x : floats) = each x. sinh(x)"),
  by_text("Cosh", 9, "(x : floats) = each x. cosh(x)"),
  by_text("Tanh", 6, "(x : floats) = each x. tanh(x)"),
  by_text("Asinh", 9, "(x : floats) = each x. asinh(x)"),
  by_text("Acosh", 9, "(x : floats) = each x. acosh(x)", 1, 4),
  by_text("Atanh", 9, "(x : floats) = each x. atanh(x)", -0.9, 0.9),
  by_text("Erf", 9, "(x : floats) = each x. erf(x)"),
  by_text("IsNaN", 9, "(x : floats) = each x. is_nan(x)"),
  by_text("IsInf", 10,
          "(x : floats; detect_negative = 1, detect_positive = 1) = each x. select(detect_positive, found, found & x < 0) "
          "where found = select(detect_negative, is_infinite(x), is_infinite(x) & x > 0)"),
  by_text("Not", 1, "(x : booleans) = each x. !x"),
  by_text("BitwiseNot", 18, "(x : integers) = each x. !x"),
  by_text("Add", 7, "(a : numbers, b) = each a b. a + b"),
  by_text("Sub", 7, "(a : numbers, b) = each a b. a - b"),
  by_text("Mul", 7, "(a : numbers, b) = each a b. a * b"),
  by_text("Div", 7, "(a : numbers, b) = each a b. a / b", 0.25, 4),
  by_text("Pow", 7,
          "(a : numbers, b : numbers) = each a b. convert(type(a), pow(convert(common, a), convert(common, b))) "
          "where common = select(integers(a) & floats(b), select(bits(a) < 32, type(b), f64), type(a))", 0.25, 2),
  // With the sign of the divisor, also for zeros, unless fmod selects the sign of the dividend.
  by_text("Mod", 10,
          "(a : numbers, b; fmod = 0) = each a b. select(fmod, r, select(floats(a), floored, a % b)) "
          "where floored = select(r == 0, select(b < 0, -(r * r), r * r), select(select(b < 0, r > 0, r < 0), r + b, r)); "
          "r = remainder(a, b)", 0.25, 4),
  by_text("BitShift", 11,
          "(a : integers, b; direction : \"LEFT\" | \"RIGHT\") "
          "= each a b. select(direction == \"LEFT\", shift_left(a, b), shift_right(a, b))"),
  by_text("BitwiseAnd", 18, "(a : integers, b) = each a b. a & b"),
  by_text("BitwiseOr", 18, "(a : integers, b) = each a b. a | b"),
  by_text("BitwiseXor", 18, "(a : integers, b) = each a b. a ^ b"),
  by_text("And", 7, "(a : booleans, b) = each a b. a & b"),
  by_text("Or", 7, "(a : booleans, b) = each a b. a | b"),
  by_text("Xor", 7, "(a : booleans, b) = each a b. a ^ b"),
  by_text("Equal", 7, "(a : anything, b) = each a b. a == b"),
  by_text("Less", 7, "(a : numbers, b) = each a b. a < b"),
  by_text("LessOrEqual", 12, "(a : numbers, b) = each a b. a <= b"),
  by_text("Greater", 7, "(a : numbers, b) = each a b. a > b"),
  by_text("GreaterOrEqual", 12, "(a : numbers, b) = each a b. a >= b"),
  by_text("Sum", 6, "(x... : numbers) = each x. combined (+) x"),
  by_text("Mean", 6,
          "(x... : floats) = each x. select(length(x) > 1, total / length(x), total) where total = combined (+) x"),
  by_text("Max", 6, "(x... : numbers) = each x. combined max x"),
  by_text("Min", 6, "(x... : numbers) = each x. combined min x"),
  by_text("Where", 9, "(c : booleans, a : anything, b) = each c a b. select(c, a, b)"),
  // The bounds were attributes in early versions. Known bounds are literals of the term: with a literal, a kernel's
  // bound is one instruction; with any float it has to test for NaN and for the sign of zeros.
  by_text("Clip", 6,
          "(x : numbers, low?, high?; min? : float, max? : float) "
          "refuse given(low) & !one_number(low): \"min has to be one number, found {low}\" "
          "refuse given(high) & !one_number(high): \"max has to be one number, found {high}\" "
          "= each x. select(given(max), min(y, max), select(given(high), min(y, most), y)) "
          "where y = select(given(min), max(x, min), select(given(low), max(x, least), x)); "
          "least = select(floats(x) & is_known(low), value(low), scalar low); "
          "most = select(floats(x) & is_known(high), value(high), scalar high)"),
  by_text("Cast", 6,
          "(x : anything; to : type, saturate = 1, round_mode = \"up\" | \"down\" | \"nearest\") "
          "= select(to == string | type(x) == string, in_text(to, x), " HOIST_CONVERTED "T = to)"),
  by_text("CastLike", 15,
          "(x : anything, like : anything; saturate = 1, round_mode = \"up\" | \"down\" | \"nearest\") "
          "= select(type(like) == string | type(x) == string, in_text(type(like), x), " HOIST_CONVERTED "T = type(like))"),
  // A byte that is 0 or 1 is no bool.
  by_text("BitCast", 26,
          "(x : anything; to : type) "
          "refuse bits(x) < 8 | bits(x) != bits(to): \"the bits of {type(x)} as {to} are not supported\" "
          "= each x. select(booleans(x) | booleans(to), convert(to, x), same_bits(to, x))"),
});
// clang-format on

}  // namespace

std::span<const OperatorRow> elementwise_operators() { return elementwise_rows; }

}  // namespace hoist::operators
