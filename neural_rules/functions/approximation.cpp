#include "neural_rules/functions/approximation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "ir/base/special_values.h"
#include "ir/text/parse/near_miss.h"
#include "ir/text/parse/parse_term.h"
#include "neural_rules/functions/minimax.h"
#include "neural_rules/functions/term_error.h"

namespace hoist {
namespace {

constexpr double ln2 = std::numbers::ln2;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

const KnownFunction known_tanh = {"tanh", [](double x) { return std::tanh(x); },
                                  [](double x) { return 1 / (std::cosh(x) * std::cosh(x)); }, 0.7699};
const KnownFunction known_sigmoid = {"sigmoid", sigmoid, [](double x) { return sigmoid(x) * sigmoid(-x); }, 0.0963};
const KnownFunction known_erf = {"erf", [](double x) { return std::erf(x); },
                                 [](double x) { return 2 * std::numbers::inv_sqrtpi * std::exp(-x * x); }, 0.9679};
const KnownFunction known_power = {"2^x", [](double x) { return std::exp2(x); },
                                   [](double x) { return ln2 * std::exp2(x); }, 0.961};  // for x of at most 1

std::string number(double v) { return fmt::format("{}f32", static_cast<float>(v)); }

// c0 + t * (c1 + t * ...), with one rounding per step.
std::string horner(const std::vector<double>& c, const std::string& t) {
  std::string out = number(c.back());
  for (size_t i = c.size() - 1; i-- > 0;) out = fmt::format("fma({}, {}, {})", t, out, number(c[i]));
  return out;
}

Expr term_of(const std::string& formula) {
  static const Declarations declarations = *parse_declarations("x: f32");
  auto term = parse_term(formula, declarations);
  HOIST_CHECK(term.ok(), formula + ": " + (term.ok() ? "" : term.errors()[0].text()));
  return *term;
}

// ---- Odd functions that tend to 1 ----------------------------------------------------------------------------------

struct Quotient {
  Minimax fit;
  float end = 0;  // the function is replaced by 1 from here on
};

// The argument from which f differs from 1 by at most half of `error`.
double nearly_one(const KnownFunction& f, double error) {
  double low = 0, high = 16;
  for (int i = 0; i < 60; ++i) {
    double middle = (low + high) / 2;
    (1 - f.value(middle) > error / 2 ? low : high) = middle;
  }
  return high;
}

// Interval end and error depend on each other; iterates to a fixed point.
std::optional<Quotient> fit_quotient(const KnownFunction& f, int degree) {
  constexpr int turns = 12;
  constexpr double end_tolerance = 0.02;
  const int half = (degree - 1) / 2;
  Quotient q;
  double end = nearly_one(f, 1e-3);
  for (int i = 0; i < turns; ++i) {
    auto fit = minimax(f.value, 0, end, {true, half, half, false});
    if (!fit) return std::nullopt;
    q = {*fit, static_cast<float>(end)};
    double next = nearly_one(f, fit->error);
    if (std::fabs(next - end) < end_tolerance) break;
    end = next;
  }
  return q;
}

std::string formula_of(const Quotient& q, const std::string& x) {
  return fmt::format("let z = {0} * {0} in select(abs({0}) < {1}, {0} * {2} / {3}, sign({0}))", x, number(q.end),
                     horner(q.fit.numerator, "z"), horner(q.fit.denominator, "z"));
}

Result<Approximation> no_fit(std::string_view function, int degree) {
  return Diagnostic{std::string(function), fmt::format("there is no approximation of degree {} in f32", degree),
                    "odd degrees from 3 on for tanh, sigmoid and erf, all from 2 on for exp"};
}

// f is the fitted function; the formula may be derived from it (sigmoid from tanh), on a range larger by the factor
// `stretch`.
Result<Approximation> odd_quotient(const KnownFunction& f, const KnownFunction& whole, int degree) {
  if (degree < 3 || degree % 2 == 0 || degree > 11) return no_fit(whole.name, degree);
  auto q = fit_quotient(f, degree);
  if (!q) return no_fit(whole.name, degree);
  const bool halved = whole.value == sigmoid;
  Approximation out;
  out.formula =
      halved ? fmt::format("let h = 0.5f32 * x in fma(0.5f32, {}, 0.5f32)", formula_of(*q, "h")) : formula_of(*q, "x");
  const double last = static_cast<double>(std::nextafter(q->end, 0.0f)) * (halved ? 2 : 1);
  const double end = static_cast<double>(q->end) * (halved ? 2 : 1);
  // The error of an odd quotient is symmetric; after the addition of one half, rounding is not.
  const double inside = error_bound({term_of(out.formula), halved ? -last : 0, last, false}, whole);
  const double beyond = 1 - whole.value(end);
  out.certificate = {std::max(inside, beyond), false, -infinity, infinity,
                     fmt::format("minimax quotient of degrees {}/{}: at most {:.3g} for |x| below {:.6g}, where it is "
                                 "taken to its limit, {:.3g} away",
                                 degree, degree - 1, inside, end, beyond)};
  return out;
}

// ---- exp -----------------------------------------------------------------------------------------------------------

// log2(e) as a sum of two f32 numbers, so that multiples of it keep their fraction.
constexpr auto log2e_high = static_cast<float>(std::numbers::log2e);
constexpr auto log2e_low =
    static_cast<float>(std::numbers::log2e_v<long double> - static_cast<long double>(log2e_high));
constexpr double largest = 89;                        // exp of it is infinite; its exponent still fits the field
constexpr double smallest = -88;                      // the exponent field is 0 there
constexpr double exp_low = -87.33, exp_high = 88.72;  // results are normal numbers between these limits

// Adding it to a number below 2^22 leaves the nearest integer in the low bits: the floor, if one half is subtracted
// before, without a conversion to integers.
constexpr double integer_grid = 0x1.8p23;

// A bound of the error of the computed fraction x * log2(e) - n: two roundings of numbers of about 1, and the omitted
// part of log2(e).
double fraction_error() {
  const long double left_out = std::numbers::log2e_v<long double> - log2e_high - log2e_low;
  return 2 * 0x1.01p-24 + largest * static_cast<double>(std::fabs(left_out));
}

Result<Approximation> exponential(int degree) {
  if (degree < 2 || degree > 7) return no_fit("exp", degree);
  auto fit = minimax(known_power.value, 0, 1, {false, degree, 0, true});
  if (!fit) return no_fit("exp", degree);
  // The integer is taken from a rounded product, so the fraction may be slightly outside 0..1.
  constexpr double outside = 2e-5;
  const double core = error_bound({term_of(horner(fit->numerator, "x")), -outside, 1 + outside, true}, known_power);
  Approximation out;
  out.formula = fmt::format(
      "let y = select(x > {0}, {0}, select(x < {1}, {1}, x)) in let u = fma(y, {2}, -0.5f32) + {5} in "
      "let n = u - {5} in let f = fma(y, {3}, fma(y, {2}, -n)) in "
      "{4} * reinterpret f32 (shift_left(reinterpret u32 u + 127u32, 23u32))",
      number(largest), number(smallest), number(log2e_high), number(log2e_low), horner(fit->numerator, "f"),
      number(integer_grid));
  const double error = (1 + core) * std::exp2(fraction_error()) - 1;
  out.certificate = {error, true, exp_low, exp_high,
                     fmt::format("2^n times a minimax polynomial of degree {} of the fraction: {:.3g} of it, {:.3g} of "
                                 "the fraction; 0 or subnormal below, above at least 3.38e38",
                                 degree, core, error - core)};
  return out;
}

constexpr std::array<std::string_view, 4> functions = {"tanh", "sigmoid", "erf", "exp"};

}  // namespace

Result<Approximation> approximation(std::string_view function, int degree) {
  if (function == "tanh") return odd_quotient(known_tanh, known_tanh, degree);
  if (function == "sigmoid") return odd_quotient(known_tanh, known_sigmoid, degree);
  if (function == "erf") return odd_quotient(known_erf, known_erf, degree);
  if (function == "exp") return exponential(degree);
  return Diagnostic{
      std::string(function), "no approximation of this function is available",
      did_you_mean(std::string(function), {functions.begin(), functions.end()}, "tanh, sigmoid, erf and exp have one")};
}

}  // namespace hoist
