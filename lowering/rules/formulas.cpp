// Functions as formulas of additions, multiplications and bits, for drivers that have none in vectors: PoCL 3.1 takes
// 1.7 times as long for tanh and 2.7 times for erf. Its exp is as fast as the formula alone, and faster behind a
// register tile, which the formula's many values push out of the registers (a network of SiLUs took 1.3 times as long).
// Coefficients are minimax fits (of the relative error) over the intervals that the comments name, rounded to f32.
// Errors are in units of the last place of f32, the largest that function_rules_test finds; special values come out as
// the functions have them.
#include "lowering/rules/tables.h"

namespace hoist {
namespace {

// e to the r without its 1, for r within half of the logarithm of 2: r + r r q(r), q to 0.05 units.
// clang-format off
constexpr char exp_minus_one[] =
    "fma(r * r, fma(r, fma(r, fma(r, fma(r, 0.00138145988f32, 0.00836871658f32), 0.041668389f32), 0.166665211f32), 0.5f32), r)";
// clang-format on

// The fraction r that is left of y after n times the logarithm of 2, which is taken in two parts: the first has so few
// bits that the product is exact.
constexpr char fraction[] = "fma(n, 0.000212194440f32, fma(n, -0.693359375f32, y))";

// How often the logarithm of 2 goes into y, as the float n and the integer i: next to 3 * 2^22 a float's last bits
// count in ones, so that adding it rounds. Conversions to integers saturate, which costs as much as the polynomial.
constexpr char powers_of_two[] =
    " in let k = fma(y, 1.44269504f32, 12582912f32) in let n = k - 12582912f32 in let i = reinterpret i32 k - "
    "1262485504i32";

// Not-a-number passes both comparisons.
std::string within(const std::string& x, const std::string& limit) {
  return "select(" + x + " > " + limit + ", " + limit + ", select(" + x + " < -" + limit + ", -" + limit + ", " + x +
         "))";
}

}  // namespace

// clang-format off
std::vector<RuleRow> formula_rules() {
  constexpr auto rounding = RuleClass::rounding;
  const std::string x = "x: f32";
  return {
    // 2^n in two factors, so that results below the normal numbers and infinity come out.
    {"exp-by-powers-of-two", "", x, "exp x",
     std::string("let v = x in let y = ") + within("v", "104f32") + powers_of_two + " in let r = " + fraction +
     " in let h = shift_right(i, 1i32) in (" + exp_minus_one + " + 1f32) * reinterpret f32 (shift_left(h + 127i32, 23i32))"
     " * reinterpret f32 (shift_left(i - h + 127i32, 23i32))",
     "", rounding, "a power of two and a polynomial in what is left", library::formulas},
    // With e^2x - 1, which keeps the digits of small x.
    {"tanh-by-exponential", "", x, "tanh x",
     std::string("let v = x + x in let y = ") + within("v", "20f32") + powers_of_two + " in let r = " + fraction +
     " in let s = reinterpret f32 (shift_left(i + 127i32, 23i32)) in let e = fma(s, " + exp_minus_one + ", s - 1f32) in e / (e + 2f32)",
     "", rounding, "a quotient of the exponential of 2x"},
    // Below 1 an odd polynomial; above, 1 less the exponential of a polynomial, as the complement falls like one.
    {"erf-by-exponential", "", x, "erf x",
     "let v = x in let s = v * v in let a = abs v in let t = select(a > 3.95f32, 3.95f32, a) in "
     "let near = fma(v, fma(s, fma(s, fma(s, fma(s, fma(s, fma(s, 0.0000785384327f32, -0.000801018788f32), 0.00518832682f32), "
     "-0.0268538108f32), 0.112835854f32), -0.37612626f32), 0.128379166f32), v) in "
     "let far = 1f32 - exp (fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, -0.0000216976077f32, 0.00044147257f32), "
     "-0.00420528417f32), 0.0252103377f32), -0.1084221f32), -0.633216381f32), -1.12958026f32), 0.000188467617f32)) in "
     "select(a < 1f32, near, select(v < 0f32, -far, far))",
     "", rounding, "a polynomial near zero, the exponential of one beyond"},
  };
}
// clang-format on

}  // namespace hoist
