// Elementary functions of f32 as formulas of vectors. For f64 the functions of the C library are called.
//
// LLVM's fma is called lane by lane, and its optimiser recombines the lanes of a single fma, but not of a chain. So
// formulas whose rounding is uncritical consist of products and sums that LLVM may fuse (Halide's strict operations are
// not fused); LLVM may also regroup these, so sums whose order matters are strict. Operands that may be fused must not
// be NaN, so NaN bypasses them.
#include <cmath>
#include <iterator>

#include "backends/halide/native/functions/terms.h"
#include "ir/properties/erf_quotient.h"

namespace hoist::emission::native {
namespace {

// Added to squares, whose own squares are then normal numbers: processors take some 150 cycles for a subnormal one, and
// activations of 1e-9 have them. The sum of a polynomial whose constant term is no smaller than 1e-5 stays the same.
constexpr double least_square = 1e-18;
HExpr square_of(const HExpr& x) { return fma(x, x, constant(x, least_square)); }

/// Evaluates a polynomial by pairs of terms, then pairs of pairs and so on: a chain of fma would determine the latency
/// of a vector.
HExpr sum_of_pairs(const HExpr& x, const std::vector<HExpr>& terms) {
  if (terms.size() == 1) return terms[0];
  std::vector<HExpr> pairs;
  for (size_t i = 0; i < terms.size(); i += 2)
    pairs.push_back(i + 1 < terms.size() ? fma(terms[i + 1], x, terms[i]) : terms[i]);
  if (pairs.size() == 1) return pairs[0];
  return let(square_of(x), [&](const HExpr& square) { return sum_of_pairs(square, pairs); });
}
HExpr paired_polynomial(const HExpr& x, const std::vector<double>& coefficients) {
  std::vector<HExpr> terms;
  for (const double c : coefficients) terms.push_back(constant(x, c));
  return sum_of_pairs(x, terms);
}

HExpr between(const HExpr& x, double least, double most) {
  return let(select(constant(x, most) < x, constant(x, most), x),
             [&](const HExpr& v) { return select(v < constant(v, least), constant(v, least), v); });
}

// 2^n and e^r - 1 with x = n ln 2 + r and |r| at most half of ln 2, for x of at most some hundreds. Adding 3 * 2^22,
// where the ulp of a float is 1, rounds to an integer. `body` receives n plus the bits of 3 * 2^22 as an integer, and
// e^r - 1.
HExpr with_powers_of_two(const HExpr& x, const std::function<HExpr(const HExpr& steps, const HExpr& rest)>& body) {
  const HExpr ones = constant(x, 12582912);
  return let(fma(x, constant(x, 1.44269504f), ones), [&](const HExpr& steps) {
    return let(strict_sum(steps, -ones), [&](const HExpr& n) {
      const HExpr high = fma(n, constant(n, -0.693359375), x);
      return let(fma(n, constant(n, 2.12194440e-4f), high), [&](const HExpr& r) {
        const HExpr tail = paired_polynomial(
            r, {0.500000001f, 0.166666667f, 0.0416664649f, 0.00833331093f, 0.00139336479f, 0.000198909885f});
        const HExpr rest = fma(r, strict_product(r, tail), r);
        return let(bits(Halide::Int(32), steps),
                   [&](const HExpr& words) { return let(rest, [&](const HExpr& e) { return body(words, e); }); });
      });
    });
  });
}
constexpr int64_t bits_of_ones = 0x4b400000;  // the bits of 3 * 2^22

// e^x within two ulp. Beyond the bounds it is 0 or infinite; NaN propagates.
HExpr exponential(const HExpr& x) {
  const auto scale = [](const HExpr& e) { return bits(Halide::Float(32), e << count(e, 23)); };
  return let(between(x, -105, 89), [&](const HExpr& v) {
    return with_powers_of_two(v, [&](const HExpr& steps, const HExpr& rest) {
      // Scales twice, each time by half of the exponent: the whole power of two may be subnormal or infinite.
      return let(steps - integer(steps, bits_of_ones - 2 * exponent_of_one), [&](const HExpr& both) {
        return let(both >> count(both, 1), [&](const HExpr& half) {
          const HExpr power = strict_sum(rest, constant(rest, 1));
          return strict_product(strict_product(power, scale(half)), scale(both - half));
        });
      });
    });
  });
}

// ln x within two ulp: n ln 2 + ln m with m between the roots of 1/2 and 2.
HExpr logarithm(const HExpr& x) {
  const Type words = Halide::Int(32);
  const HExpr tiny = x < constant(x, 1.17549435e-38f);
  return let(select(tiny, x * constant(x, 8388608), x), [&](const HExpr& v) {
    return let(bits(words, v), [&](const HExpr& w) {
      return let((w - integer(w, 0x3f3504f3)) >> count(w, 23), [&](const HExpr& n) {
        const HExpr m = bits(Halide::Float(32), w - (n << count(n, 23)));
        const HExpr exponent = to(Halide::Float(32), n) - select(tiny, constant(x, 23), constant(x, 0));
        return let(strict_sum(m, constant(m, -1)), [&](const HExpr& f) {
          return let(exponent, [&](const HExpr& e) {
            const HExpr cubic =
                paired_polynomial(f, {0.333333312f, -0.24999997f, 0.200007163f, -0.166677983f, 0.142490327f,
                                      -0.124257767f, 0.11685796f, -0.11479188f, 0.069697538f});
            return let(strict_product(f, f), [&](const HExpr& square) {
              const HExpr tail =
                  strict_sum(strict_product(e, constant(f, -2.12194440e-4f)), strict_product(square * f, cubic));
              const HExpr small = strict_sum(f, strict_sum(strict_product(square, constant(f, -0.5)), tail));
              const HExpr value = strict_sum(strict_product(e, constant(f, 0.693359375)), small);
              const HExpr infinite = constant(x, INFINITY);
              return select(x > constant(x, 0), select(x == infinite, infinite, value),
                            select(x == constant(x, 0), -infinite, constant(x, NAN)));
            });
          });
        });
      });
    });
  });
}

// By e^2x - 1, which keeps the digits of small x. NaN propagates.
HExpr hyperbolic_tangent(const HExpr& x) {
  return let(between(strict_sum(x, x), -20, 20), [&](const HExpr& v) {
    return with_powers_of_two(v, [&](const HExpr& steps, const HExpr& rest) {
      return let(power_of_two(steps), [&](const HExpr& scale) {
        return let(fma(scale, rest, strict_sum(scale, constant(scale, -1))), [&](const HExpr& less_one) {
          return strict(Call::strict_div, less_one, strict_sum(less_one, constant(less_one, 2)));
        });
      });
    });
  });
}

// NaN propagates.
HExpr error_function(const HExpr& x) {
  using namespace erf_quotient;
  return let(between(x, -limit, limit), [&](const HExpr& v) {
    return let(square_of(v), [&](const HExpr& z) {
      const HExpr quotient =
          strict(Call::strict_div, strict_product(v, polynomial(z, {std::begin(above), std::end(above)})),
                 polynomial(z, {std::begin(below), std::end(below)}));
      return between(quotient, -1, 1);
    });
  });
}

// The arcsine of v between -1/2 and 1/2, whose square is z.
HExpr small_arcsine(const HExpr& v, const HExpr& z) {
  return fma(v * z, polynomial(z, {0.166666731f, 0.0749876201f, 0.0450202115f, 0.0264333952f, 0.0383282416f}), v);
}

// Both within three ulp; beyond 1/2 by the arcsine of sqrt((1 - |x|) / 2).
HExpr arcsine_form(const HExpr& x, HExpr (*whole)(const HExpr& x, const HExpr& is_outer, const HExpr& part)) {
  return let(magnitude(x), [&](const HExpr& a) {
    const HExpr is_outer = a > constant(a, 0.5);
    return let(select(is_outer, (constant(a, 1) - a) * constant(a, 0.5), a * a), [&](const HExpr& z) {
      return let(select(is_outer, of_llvm("sqrt", {z}), x), [&](const HExpr& v) {
        return let(small_arcsine(v, z), [&](const HExpr& part) { return whole(x, is_outer, part); });
      });
    });
  });
}
HExpr arcsine(const HExpr& x) {
  return arcsine_form(x, [](const HExpr& a, const HExpr& is_outer, const HExpr& part) {
    return select(is_outer, with_sign_of(constant(a, 1.57079633f) - (part + part), a), part);
  });
}
HExpr arccosine(const HExpr& x) {
  return arcsine_form(x, [](const HExpr& a, const HExpr& is_outer, const HExpr& part) {
    const HExpr twice = part + part;
    const HExpr outer = select(a > constant(a, 0), twice, constant(a, 3.14159265f) - twice);
    return select(is_outer, outer, constant(a, 1.57079633f) - part);
  });
}

// Within three ulp: by the tangent of the angle relative to the nearest of 0, pi/4 and pi/2.
HExpr arctangent(const HExpr& x) {
  return let(magnitude(x), [&](const HExpr& a) {
    const HExpr one = constant(a, 1), is_far = a > constant(a, 2.41421356f), is_near = a <= constant(a, 0.414213562f);
    const HExpr above = select(is_far, -one, select(is_near, a, a - one));
    const HExpr below = select(is_far, a, select(is_near, one, a + one));
    const HExpr from =
        select(is_far, constant(a, 1.57079633f), select(is_near, constant(a, 0), constant(a, 0.785398163f)));
    return let(above / below, [&](const HExpr& v) {
      return let(v * v, [&](const HExpr& z) {
        const HExpr tail = polynomial(z, {-0.333333313f, 0.199995592f, -0.142645076f, 0.107488565f, -0.0646682903f});
        return with_sign_of(from + fma(v * z, tail, v), x);
      });
    });
  });
}

}  // namespace

void add_elementary_functions(Meanings& t) {
  const std::pair<const char*, HExpr (*)(const HExpr&)> own[] = {
      {"exp", exponential}, {"log", logarithm},  {"tanh", hyperbolic_tangent}, {"erf", error_function},
      {"asin", arcsine},    {"acos", arccosine}, {"atan", arctangent}};
  for (const auto& [name, meaning] : own) {
    t[name] = [name = name, meaning = meaning](const Arguments& x) {
      return x[0].type().bits() == 32 ? meaning(x[0]) : of_library(name, x);
    };
  }
}

}  // namespace hoist::emission::native
