// The functions of the OpenCL preamble as Halide terms for native code, with the same bits as the preamble's exact
// functions (defined in preamble.cpp and ir/evaluate/scalar_math.h). Arguments and results are scalars or vectors.
//
// Target::StrictFloat is set, so comparisons respect NaN and nothing is reassociated or contracted.
//
// LLVM's functions are called scalar by scalar; its optimiser recombines the calls of a vector. Halide has no interface
// for vector calls.
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <unordered_map>

#include "backends/halide/passes/passes.h"

namespace hoist::emission {
namespace native {
namespace {

using Halide::select;
using Halide::Type;
using Halide::Internal::Call;
using HExpr = Halide::Expr;
using Arguments = std::vector<HExpr>;

Type lanes_of(const Type& element, const HExpr& like) { return element.with_lanes(like.type().lanes()); }
HExpr to(const Type& element, const HExpr& e) { return Halide::Internal::Cast::make(lanes_of(element, e), e); }
HExpr bits(const Type& element, const HExpr& e) { return Halide::Internal::Reinterpret::make(lanes_of(element, e), e); }
HExpr constant(const HExpr& like, double value) { return Halide::Internal::make_const(like.type(), value); }
HExpr integer(const HExpr& like, int64_t value) { return Halide::Internal::make_const(like.type(), value); }
/// A shift count.
HExpr count(const HExpr& like, int64_t value) {
  return Halide::Internal::make_const(Halide::UInt(like.type().bits(), like.type().lanes()), value);
}
Type as_int(const HExpr& e) { return Halide::Int(e.type().bits()); }
Type as_uint(const HExpr& e) { return Halide::UInt(e.type().bits()); }
HExpr call(const Type& type, const std::string& name, const Arguments& x) {
  return Call::make(type, name, x, Call::PureExtern);
}
HExpr of_llvm(const std::string& name, const Arguments& x) {
  return call(x[0].type(), fmt::format("llvm.{}.f{}", name, x[0].type().bits()), x);
}
/// A function of the C library, lane by lane.
HExpr of_library(const std::string& name, const Arguments& x) {
  return call(x[0].type(), x[0].type().bits() == 32 ? name + "f" : name, x);
}

/// Binds the value to a name, so that it is computed once.
HExpr let(const HExpr& value, const std::function<HExpr(const HExpr&)>& body) {
  if (Halide::Internal::is_const(value) || value.as<Halide::Internal::Variable>() != nullptr) return body(value);
  const std::string name = Halide::Internal::unique_name("v");
  return Halide::Internal::Let::make(name, value, body(Halide::Internal::Variable::make(value.type(), name)));
}

HExpr is_number(const HExpr& a) { return a == a; }
HExpr fma(const HExpr& a, const HExpr& b, const HExpr& c) { return of_llvm("fma", {a, b, c}); }
HExpr magnitude(const HExpr& a) { return of_llvm("fabs", {a}); }
/// The first coefficient is the constant term.
HExpr polynomial(const HExpr& x, const std::vector<double>& coefficients) {
  HExpr sum = constant(x, coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;) sum = fma(sum, x, constant(x, coefficients[i]));
  return sum;
}
HExpr sign_bit(const HExpr& like) {
  return Halide::Internal::make_const(lanes_of(as_int(like), like), like.type().bits() == 32 ? INT32_MIN : INT64_MIN);
}
HExpr with_sign_of(const HExpr& size, const HExpr& sign) {
  const Type words = as_int(size);
  return bits(size.type().element_of(), bits(words, size) | (bits(words, sign) & sign_bit(sign)));
}
HExpr one_or_zero(const HExpr& condition) { return to(Halide::Int(32), to(Halide::UInt(8), condition)); }

// ---- floats ----

HExpr strict(Call::IntrinsicOp operation, const HExpr& a, const HExpr& b) {
  return Call::make(a.type(), operation, {a, b}, Call::PureIntrinsic);
}

// The extremum for a `b` that is not NaN: one instruction of x86, which returns `a` if `a` is NaN or both are zeros.
HExpr known_extremum(const HExpr& a, const HExpr& b, bool greater) { return select(greater ? a < b : b < a, b, a); }

// NaN propagates; -0 is less than +0. `greater` selects the maximum.
HExpr extremum(const HExpr& a, const HExpr& b, bool greater) {
  const Type words = as_int(a);
  // In both operand orders the instruction returns the same number; or both zeros, whose sign bits are combined; or, if
  // one is NaN, each of the operands.
  const auto one_way = [&](const HExpr& p, const HExpr& q) {
    return bits(words, select(greater ? p > q : p < q, p, q));
  };
  const HExpr lowest = one_way(a, b) | one_way(b, a);
  if (!greater) return bits(a.type().element_of(), lowest);
  const HExpr highest = one_way(a, b) & one_way(b, a);
  return bits(a.type().element_of(), select(is_number(a) && is_number(b), highest, integer(highest, -1)));
}

HExpr sign(const HExpr& a) {
  return select(a > constant(a, 0), constant(a, 1),
                select(a < constant(a, 0), constant(a, -1), select(a == constant(a, 0), constant(a, 0), a)));
}

HExpr in_all_lanes(const HExpr& condition) {
  if (!condition.type().is_vector()) return condition;
  return Halide::Internal::VectorReduce::make(Halide::Internal::VectorReduce::And, condition, 1);
}

// fmod. The truncated quotient is the exact one or one more; the remainder by it is exact, since it is a multiple of
// the ulp of b and less than b. Larger quotients, infinities and NaN are left to the C library, which a vector calls
// only if one of its lanes requires it.
HExpr float_remainder(const HExpr& a, const HExpr& b) {
  return let(magnitude(a), [&](const HExpr& dividend) {
    return let(magnitude(b), [&](const HExpr& divisor) {
      return let(dividend / divisor, [&](const HExpr& quotient) {
        const double most = a.type().bits() == 32 ? 0x1p22 : 0x1p51;
        const HExpr usual = quotient < constant(a, most) && divisor < constant(a, INFINITY);
        const HExpr whole = of_llvm("trunc", {quotient});
        const HExpr by_quotient = let(fma(-whole, divisor, dividend), [&](const HExpr& left) {
          return with_sign_of(select(left < constant(left, 0), left + divisor, left), a);
        });
        return Call::make(a.type(), Call::if_then_else, {in_all_lanes(usual), by_quotient, of_library("fmod", {a, b})},
                          Call::PureIntrinsic);
      });
    });
  });
}

HExpr float_modulo(const HExpr& a, const HExpr& b) {
  return let(float_remainder(a, b), [&](const HExpr& r) {
    const HExpr zero = constant(r, 0);
    return select(r == zero, with_sign_of(zero, b), select((r < zero) ^ (b < zero), r + b, r));
  });
}

// ---- formulas of vectors ----
//
// LLVM's fma is called lane by lane, and its optimiser recombines the lanes of a single fma, but not of a chain. So
// formulas whose rounding is uncritical consist of products and sums that LLVM may fuse (Halide's strict operations are
// not fused); LLVM may also regroup these, so sums whose order matters are strict. Operands that may be fused must not
// be NaN, so NaN bypasses them.

HExpr strict_sum(const HExpr& a, const HExpr& b) { return strict(Call::strict_add, a, b); }
HExpr strict_product(const HExpr& a, const HExpr& b) { return strict(Call::strict_mul, a, b); }

/// Evaluates a polynomial by pairs of terms, then pairs of pairs and so on: a chain of fma would determine the latency
/// of a vector.
HExpr sum_of_pairs(const HExpr& x, const std::vector<HExpr>& terms) {
  if (terms.size() == 1) return terms[0];
  std::vector<HExpr> pairs;
  for (size_t i = 0; i < terms.size(); i += 2)
    pairs.push_back(i + 1 < terms.size() ? fma(terms[i + 1], x, terms[i]) : terms[i]);
  if (pairs.size() == 1) return pairs[0];
  return let(strict_product(x, x), [&](const HExpr& square) { return sum_of_pairs(square, pairs); });
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
        const HExpr rest = fma(strict_product(r, r), tail, r);
        return let(bits(Halide::Int(32), steps),
                   [&](const HExpr& words) { return let(rest, [&](const HExpr& e) { return body(words, e); }); });
      });
    });
  });
}
constexpr int64_t bits_of_ones = 0x4b400000;  // of 3 * 2^22
constexpr int exponent_of_one = 127;

// e^x within two ulp. Beyond the bounds it is 0 or infinite; NaN propagates.
HExpr exponential(const HExpr& x) {
  const auto scale = [](const HExpr& e) { return bits(Halide::Float(32), e << count(e, 23)); };
  return let(between(x, -105, 89), [&](const HExpr& v) {
    return with_powers_of_two(v, [&](const HExpr& steps, const HExpr& rest) {
      // Scaled by two halves, since the whole power of two may be subnormal or infinite.
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

// 2^exponent, which must be a normal number. Only the low nine bits of the exponent matter, so `steps` above needs no
// subtraction.
HExpr power_of_two(const HExpr& exponent) {
  return bits(Halide::Float(32), (exponent + integer(exponent, exponent_of_one)) << count(exponent, 23));
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

HExpr error_function(const HExpr& x) {
  return let(magnitude(x), [&](const HExpr& a) {
    return let(strict_product(x, x), [&](const HExpr& square) {
      const HExpr small = strict_product(
          x, paired_polynomial(square, {1.12837917f, -0.376126385f, 0.112837825f, -0.0268654307f, 0.00522103181f,
                                        -0.00084840804f, 0.00011265959f, -9.66704447e-06f}));
      // ln(1 - erf a) while 1 - erf a is not negligible against 1, so the value is above -19.
      return let(select(a < constant(a, 4), a, constant(a, 4)), [&](const HExpr& within) {
        const HExpr exponent = paired_polynomial(
            within, {0.000416329219f, -1.13067514f, -0.63095303f, -0.111055017f, 0.0270995233f, -0.00506494692f,
                     0.000685836684f, -6.22983535e-05f, 3.32168462e-06f, -7.5826821e-08f});
        return let(exponent, [&](const HExpr& v) {
          return with_powers_of_two(v, [&](const HExpr& steps, const HExpr& rest) {
            return let(power_of_two(steps), [&](const HExpr& scale) {
              const HExpr large = strict_sum(constant(x, 1), -fma(scale, rest, scale));
              return select(constant(a, 1) < a, with_sign_of(large, x), small);  // NaN propagates
            });
          });
        });
      });
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

// ---- floats to integers: truncated, saturated, NaN gives 0 ----

HExpr saturated(const HExpr& a, const Type& type) {
  const HExpr most = lanes_of(type, a).max(), least = lanes_of(type, a).min();
  const double above = std::ldexp(1.0, type.bits() - (type.is_int() ? 1 : 0)), below = type.is_int() ? -above : 0;
  const HExpr inside = select(a >= constant(a, above), most, select(a > constant(a, below), to(type, a), least));
  return select(is_number(a), inside, integer(most, 0));
}

// Small types are converted through int. NaN becomes the lower bound in the first selection, which is correct if the
// bound is 0.
HExpr saturated_small(const HExpr& a, double low, double high, const Type& type) {
  const HExpr above = select(a > constant(a, low), a, constant(a, low));
  return let(above, [&](const HExpr& b) {
    const HExpr inside = select(b < constant(b, high), b, constant(b, high));
    const HExpr number = low == 0 ? inside : select(is_number(a), inside, constant(a, 0));
    return to(type, to(Halide::Int(32), number));
  });
}

constexpr double round_by_adding = 12582912;  // 1.5 * 2^23, around which one ulp is 1

// Clamps to the bounds less w and rounds by an addition that leaves no fractional bit.
HExpr rounded_steps(const HExpr& number, const HExpr& w, double low, double high) {
  const HExpr least = constant(number, low) - w, most = constant(number, high) - w;
  return let(select(number > least, number, least), [&](const HExpr& b) {
    return strict(Call::strict_add, select(b < most, b, most), constant(b, round_by_adding));
  });
}

// A number before rounding, plus an integer of at most 16 bits, clamped to the bounds, as an int (quantised_sums.cpp).
// NaN becomes 0, by the lower bound if that is 0.
HExpr quantised(const HExpr& number, const HExpr& whole, double low, double high) {
  const HExpr steps = rounded_steps(number, to(Halide::Float(32), whole), low, high);
  const HExpr sum = bits(Halide::Int(32), steps) - bits(Halide::Int(32), constant(number, round_by_adding)) + whole;
  return low == 0 ? sum : select(is_number(number), sum, Halide::Internal::make_zero(sum.type()));
}

// The same result less the integer, as a float.
HExpr rounded(const HExpr& number, const HExpr& whole, double low, double high) {
  const HExpr w = to(Halide::Float(32), whole);
  const HExpr out = strict(Call::strict_sub, rounded_steps(number, w, low, high), constant(number, round_by_adding));
  return low == 0 ? out : select(is_number(number), out, constant(number, 0) - w);
}

// ---- integers ----

HExpr wrapped(const HExpr& a, const HExpr& b, HExpr (*operation)(const HExpr&, const HExpr&)) {
  return bits(a.type().element_of(), operation(bits(as_uint(a), a), bits(as_uint(b), b)));
}
HExpr difference(const HExpr& a, const HExpr& b) { return a - b; }
HExpr negated(const HExpr& a) { return wrapped(integer(a, 0), a, difference); }

HExpr shift_left(const HExpr& a, const HExpr& b) {
  const HExpr n = bits(as_uint(b), b), width = integer(n, a.type().bits());
  const HExpr shifted = bits(a.type().element_of(), bits(as_uint(a), a) << (n & (width - integer(n, 1))));
  return select(n >= width, integer(a, 0), shifted);
}

HExpr shift_right(const HExpr& a, const HExpr& b) {
  const HExpr n = bits(as_uint(b), b), width = integer(n, a.type().bits());
  const HExpr gone = a.type().is_int() ? select(a < integer(a, 0), integer(a, -1), integer(a, 0)) : integer(a, 0);
  return select(n >= width, gone, a >> (n & (width - integer(n, 1))));
}

HExpr quotient_toward_zero(const HExpr& a, const HExpr& b) {
  return Call::make(a.type(), Call::div_round_to_zero, {a, b}, Call::PureIntrinsic);
}

// Division by 0 gives 0; the one quotient that overflows wraps.
HExpr divide(const HExpr& a, const HExpr& b) {
  const HExpr zero = integer(b, 0);
  if (a.type().is_uint()) return select(b == zero, zero, quotient_toward_zero(a, select(b == zero, integer(b, 1), b)));
  const HExpr special = b == zero || b == integer(b, -1);
  const HExpr q = quotient_toward_zero(a, select(special, integer(b, 1), b));
  return select(b == zero, zero, select(b == integer(b, -1), negated(a), q));
}

HExpr remainder(const HExpr& a, const HExpr& b) {
  const HExpr special = a.type().is_uint() ? b == integer(b, 0) : b == integer(b, 0) || b == integer(b, -1);
  return let(select(special, integer(b, 1), b), [&](const HExpr& divisor) {
    return select(special, integer(b, 0), a - quotient_toward_zero(a, divisor) * divisor);
  });
}

HExpr integer_modulo(const HExpr& a, const HExpr& b) {
  if (a.type().is_uint()) return remainder(a, b);
  return let(remainder(a, b), [&](const HExpr& r) {
    const HExpr zero = integer(r, 0);
    return select(r != zero && ((r < zero) ^ (b < zero)), r + b, r);
  });
}

HExpr power_of(const HExpr& base, const HExpr& n, int steps) {
  if (steps == 0) return integer(base, 1);
  return let(power_of(base, n >> count(n, 1), steps - 1), [&](const HExpr& root) {
    return select((n & integer(n, 1)) != integer(n, 0), root * root * base, root * root);
  });
}

HExpr integer_power(const HExpr& a, const HExpr& b) {
  // Negative exponents are handled after the multiplications.
  const HExpr exponent = a.type().is_uint() ? b : select(b < integer(b, 0), integer(b, 0), b);
  return let(bits(as_uint(b), exponent), [&](const HExpr& n) {
    const HExpr base = bits(as_uint(a), a);
    // Each bit of the exponent is a step; exponents of more than eight bits are rare.
    constexpr int usual = 8;
    const int all = a.type().bits();
    HExpr power = power_of(base, n, all);
    if (all > usual) {
      const HExpr few = in_all_lanes(n < integer(n, 1 << usual));
      power = Call::make(base.type(), Call::if_then_else, {few, power_of(base, n, usual), power}, Call::PureIntrinsic);
    }
    HExpr value = bits(a.type().element_of(), power);
    if (a.type().is_uint()) return value;
    const HExpr one = integer(a, 1), odd = (b & one) != integer(b, 0);
    const HExpr reciprocal =
        select(a == one, one, select(a == integer(a, -1), select(odd, integer(a, -1), one), integer(a, 0)));
    return select(b < integer(b, 0), reciprocal, value);
  });
}

// ---- dot products of bytes and of 16-bit integers ----

HExpr word(const Arguments& numbers) {
  HExpr out;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const int size = numbers[i].type().bits(), all = size * static_cast<int>(numbers.size());
    const HExpr wide = to(Halide::UInt(all), bits(Halide::UInt(size), numbers[i]));
    const HExpr placed = wide << count(wide, static_cast<int64_t>(size * i));
    out = out.defined() ? out | placed : placed;
  }
  return bits(Halide::Int(out.type().bits()), out);
}

// s + the products of the unsigned bytes of x and the signed bytes of y, in the form that Halide maps to a dot
// instruction.
HExpr dot_in_instruction(const HExpr& s, const HExpr& x, const HExpr& y) {
  using Halide::Internal::Reinterpret;
  using Halide::Internal::VectorReduce;
  const int bytes = 4 * s.type().lanes();
  const HExpr a = Reinterpret::make(Halide::UInt(8, bytes), x), b = Reinterpret::make(Halide::Int(8, bytes), y);
  const HExpr products = Call::make(Halide::Int(16, bytes), Call::widening_mul, {a, b}, Call::PureIntrinsic);
  return s + VectorReduce::make(VectorReduce::Add, to(Halide::Int(32), products), s.type().lanes());
}

// Sums of two products each, of adjacent 16-bit integers.
HExpr sums_of_pairs(const HExpr& left, const HExpr& right) {
  using Halide::Internal::Reinterpret;
  using Halide::Internal::VectorReduce;
  const int numbers = left.type().bits() * left.type().lanes() / 16;
  const Type halves = Halide::Int(16, numbers);
  const HExpr products =
      Call::make(Halide::Int(32, numbers), Call::widening_mul,
                 {Reinterpret::make(halves, left), Reinterpret::make(halves, right)}, Call::PureIntrinsic);
  return bits(Halide::UInt(32), VectorReduce::make(VectorReduce::Add, products, numbers / 2));
}

// y may be two signed bytes.
HExpr dot_of_pairs(const HExpr& s, const HExpr& x, const HExpr& y) {
  using Halide::Internal::Reinterpret;
  const int numbers = 2 * s.type().lanes();
  const HExpr wide =
      y.type().bits() == 32
          ? y
          : Reinterpret::make(x.type(), to(Halide::Int(16), Reinterpret::make(Halide::Int(8, numbers), y)));
  return bits(Halide::Int(32), bits(Halide::UInt(32), s) + sums_of_pairs(x, wide));
}

// Products of bytes in pairs of 16 bits, which are exact.
HExpr dot_in_pairs(const HExpr& s, const HExpr& x, const HExpr& y) {
  const int lanes = s.type().lanes();
  const HExpr a = Halide::Internal::Reinterpret::make(Halide::UInt(16, 2 * lanes), x);
  const HExpr b = Halide::Internal::Reinterpret::make(Halide::Int(16, 2 * lanes), y);
  const HExpr even = sums_of_pairs(a & integer(a, 255), (b << count(b, 8)) >> count(b, 8));
  const HExpr odd = sums_of_pairs(a >> count(a, 8), b >> count(b, 8));
  return bits(Halide::Int(32), bits(Halide::UInt(32), s) + (even + odd));
}

// ---- short floats ----

struct ShortFloat {
  const char* name;
  int sign;  // position of its bit
  int mantissa, bias, largest;
  int none;  // the code of NaN
  bool unsigned_zero;
};
constexpr ShortFloat short_floats[] = {{"f8e4m3fn", 7, 3, 7, 0x7e, 0x7f, false},
                                       {"f8e4m3fnuz", 7, 3, 8, 0x7f, 0x80, true},
                                       {"f8e5m2", 7, 2, 15, 0x7b, 0x7f, false},
                                       {"f8e5m2fnuz", 7, 2, 16, 0x7f, 0x80, true},
                                       {"f4e2m1", 3, 1, 1, 0x7, 0x8, false}};

HExpr decode(const ShortFloat& f, const HExpr& code8) {
  return let(to(Halide::Int(32), code8), [&](const HExpr& code) {
    return let(code & integer(code, (1 << f.sign) - 1), [&](const HExpr& size) {
      const HExpr exponent = size >> count(size, f.mantissa);
      const HExpr fraction = size & integer(size, (1 << f.mantissa) - 1);
      const HExpr normal = bits(Halide::Float(32), ((exponent + integer(size, 127 - f.bias)) << count(size, 23)) |
                                                       (fraction << count(size, 23 - f.mantissa)));
      const HExpr least = to(Halide::Float(32), fraction);
      const HExpr small = least * constant(least, std::ldexp(1.0, 1 - f.bias - f.mantissa));
      HExpr value = select(exponent == integer(size, 0), small, normal);
      if (!f.unsigned_zero && f.mantissa == 2)
        value = select(size == integer(size, 0x7c), constant(value, INFINITY), value);
      const HExpr sign = (code & integer(code, 1 << f.sign)) << count(code, 31 - f.sign);
      value = bits(Halide::Float(32), bits(Halide::Int(32), value) | sign);
      const HExpr none =
          f.unsigned_zero ? code == integer(code, 0x80) : size > integer(size, f.largest + (f.mantissa == 2 ? 1 : 0));
      return select(none, constant(value, NAN), value);
    });
  });
}

HExpr encode(const ShortFloat& f, const HExpr& a) {
  const int exponent_of_largest = (f.largest >> f.mantissa) - f.bias;
  const double fraction_of_largest = (f.largest & ((1 << f.mantissa) - 1)) | (1 << f.mantissa);
  const double largest = std::ldexp(fraction_of_largest, exponent_of_largest - f.mantissa);
  return let(bits(Halide::Int(32), a), [&](const HExpr& w) {
    const HExpr size = magnitude(a), biased = (w & integer(w, 0x7fffffff)) >> count(w, 23);
    // The exponent is clamped; results beyond the largest number are replaced below.
    const HExpr exponent = Halide::clamp(biased - integer(w, 127), integer(w, 1 - f.bias), integer(w, 32));
    return let(exponent, [&](const HExpr& e) {
      // One step is one ulp at this exponent.
      const HExpr steps = to(Halide::Int(32), of_llvm("nearbyint", {size * power_of_two(integer(e, f.mantissa) - e)}));
      const HExpr inside = steps + ((e + integer(e, f.bias - 1)) << count(e, f.mantissa));
      return let(select(size > constant(a, largest), integer(w, f.largest), inside), [&](const HExpr& code) {
        const HExpr sign = ((w >> count(w, 31)) & integer(w, 1)) << count(w, f.sign);
        HExpr whole = code | sign;
        if (f.unsigned_zero) whole = select(code == integer(code, 0), integer(code, 0), whole);
        return to(Halide::UInt(8), select(is_number(a), whole, integer(code, f.none)));
      });
    });
  });
}

// Exponents of powers of two, the nearest at or above the magnitude; 0xff is NaN.
HExpr from_power(const HExpr& code8) {
  return let(to(Halide::Int(32), code8), [&](const HExpr& code) {
    const HExpr exact = select(code == integer(code, 0), integer(code, 0x400000), code << count(code, 23));
    return bits(Halide::Float(32), select(code == integer(code, 0xff), integer(code, 0x7fc00000), exact));
  });
}
HExpr to_power(const HExpr& a) {
  const HExpr whole = bits(Halide::UInt(32), a);
  return let(whole & integer(whole, 0x7fffffff), [&](const HExpr& w) {
    const HExpr above = Halide::min((w + integer(w, 0x7fffff)) >> count(w, 23), integer(w, 0xfe));
    const HExpr exact = select(w <= integer(w, 0x400000), integer(w, 0), above);
    return to(Halide::UInt(8), select(w >= integer(w, 0x7f800000), integer(w, 0xff), exact));
  });
}

HExpr from_f16(const HExpr& a) { return to(Halide::Float(32), bits(Halide::Float(16), a)); }
HExpr to_f16(const HExpr& a) {
  const HExpr rounded = bits(Halide::UInt(16), to(Halide::Float(16), a));
  return select(is_number(a), rounded, integer(rounded, 0x7e00));
}
HExpr from_bf16(const HExpr& a) {
  const HExpr wide = to(Halide::UInt(32), a);
  return bits(Halide::Float(32), wide << count(wide, 16));
}
HExpr to_bf16(const HExpr& a) {
  return let(bits(Halide::UInt(32), a), [&](const HExpr& w) {
    const HExpr odd = (w >> count(w, 16)) & integer(w, 1);
    const HExpr rounded = to(Halide::UInt(16), (w + integer(w, 0x7fff) + odd) >> count(w, 16));
    return select(is_number(a), rounded, integer(rounded, 0x7fc0));
  });
}
// The first or second element of words of two bf16.
HExpr first_bf16(const HExpr& word) { return bits(Halide::Float(32), word << count(word, 16)); }
HExpr second_bf16(const HExpr& word) { return bits(Halide::Float(32), word & integer(word, -0x10000)); }
HExpr quiet(const HExpr& a, int64_t infinite, int64_t none) {
  return select((a & integer(a, 0x7fff)) > integer(a, infinite), integer(a, none), a);
}

// f64 truncated to f32 with the last bit set if that is inexact (round to odd): rounding the result again equals
// rounding the f64 once.
HExpr to_odd(const HExpr& a) {
  return let(to(Halide::Float(32), a), [&](const HExpr& nearest) {
    return let(bits(Halide::Int(32), nearest), [&](const HExpr& w) {
      const HExpr back = to(Halide::Float(64), nearest);
      const HExpr cut = w - select(magnitude(back) > magnitude(a), integer(w, 1), integer(w, 0));
      return bits(Halide::Float(32), select(back == a, w, cut | integer(w, 1)));
    });
  });
}

// a * b + c of short floats, rounded to odd.
HExpr fma_to_odd(const HExpr& a, const HExpr& b, const HExpr& c) {
  return let(a * b, [&](const HExpr& p) {
    return let(p + c, [&](const HExpr& sum) {
      return let(sum - p, [&](const HExpr& part) {
        return let((p - (sum - part)) + (c - part), [&](const HExpr& error) {
          return let(bits(Halide::Int(32), sum), [&](const HExpr& w) {
            const HExpr zero = constant(sum, 0), even = (w & integer(w, 1)) == integer(w, 0);
            const HExpr outward = (error > zero) == (sum > zero);
            const HExpr finite = magnitude(sum) < constant(sum, INFINITY);
            // An error of NaN counts as inexact.
            const HExpr odd =
                select(!(error == zero) && even && finite, w + select(outward, integer(w, 1), integer(w, -1)), w);
            return bits(Halide::Float(32), odd);
          });
        });
      });
    });
  });
}

// ---- the table ----

using Meaning = std::function<HExpr(const Arguments&)>;

bool is_float(const Arguments& x) { return x[0].type().is_float(); }

const std::unordered_map<std::string, Meaning>& meanings() {
  static const std::unordered_map<std::string, Meaning> table = [] {
    std::unordered_map<std::string, Meaning> t;
    t["hoist_first"] = [](const Arguments& x) { return x[0]; };
    t["hoist_negate"] = [](const Arguments& x) {
      const Type words = as_int(x[0]);
      return bits(x[0].type().element_of(), bits(words, x[0]) ^ sign_bit(x[0]));
    };
    t["hoist_minimum"] = [](const Arguments& x) {
      return is_float(x) ? extremum(x[0], x[1], false) : select(x[0] < x[1], x[0], x[1]);
    };
    t["hoist_maximum"] = [](const Arguments& x) {
      return is_float(x) ? extremum(x[0], x[1], true) : select(x[0] > x[1], x[0], x[1]);
    };
    t["hoist_minimum_known"] = [](const Arguments& x) { return known_extremum(x[0], x[1], false); };
    t["hoist_maximum_known"] = [](const Arguments& x) { return known_extremum(x[0], x[1], true); };
    t["hoist_maximum_zero"] = [](const Arguments& x) {
      const HExpr zero = constant(x[0], 0);
      return strict(Call::strict_add, known_extremum(x[0], zero, true), zero);
    };
    t["hoist_sign"] = [](const Arguments& x) { return sign(x[0]); };
    t["hoist_modulo"] = [](const Arguments& x) {
      return is_float(x) ? float_modulo(x[0], x[1]) : integer_modulo(x[0], x[1]);
    };
    t["hoist_is_nan"] = [](const Arguments& x) { return one_or_zero(!is_number(x[0])); };
    t["hoist_is_infinite"] = [](const Arguments& x) {
      return one_or_zero(magnitude(x[0]) == constant(x[0], INFINITY));
    };
    t["hoist_less"] = [](const Arguments& x) { return one_or_zero(x[0] < x[1]); };
    // Halide compiles a <= b as !(b < a), which is true for NaN.
    t["hoist_less_equal"] = [](const Arguments& x) { return one_or_zero(x[0] < x[1] || x[0] == x[1]); };
    t["hoist_equal"] = [](const Arguments& x) { return one_or_zero(x[0] == x[1]); };
    t["hoist_not_equal"] = [](const Arguments& x) { return one_or_zero(!(x[0] == x[1])); };
    t["fma"] = [](const Arguments& x) { return fma(x[0], x[1], x[2]); };
    t["fabs"] = [](const Arguments& x) { return magnitude(x[0]); };
    for (const char* name : {"floor", "ceil", "trunc", "sqrt"})
      t[name] = [name](const Arguments& x) { return of_llvm(name, x); };
    t["rint"] = [](const Arguments& x) { return of_llvm("nearbyint", x); };
    for (const char* name : {"pow", "sinh", "cosh", "asinh", "acosh", "atanh"})
      t[name] = [name](const Arguments& x) { return of_library(name, x); };
    for (const char* name : {"sin", "cos", "tan"})
      t[std::string("hoist_") + name] = [name](const Arguments& x) { return of_library(name, x); };
    const std::pair<const char*, HExpr (*)(const HExpr&)> own[] = {
        {"exp", exponential}, {"log", logarithm},  {"tanh", hyperbolic_tangent}, {"erf", error_function},
        {"asin", arcsine},    {"acos", arccosine}, {"atan", arctangent}};
    for (const auto& [name, meaning] : own) {
      t[name] = [name = name, meaning = meaning](const Arguments& x) {
        return x[0].type().bits() == 32 ? meaning(x[0]) : of_library(name, x);
      };
    }
    t["hoist_shift_left"] = [](const Arguments& x) { return shift_left(x[0], x[1]); };
    t["hoist_shift_right"] = [](const Arguments& x) { return shift_right(x[0], x[1]); };
    t["hoist_absolute"] = [](const Arguments& x) { return select(x[0] < integer(x[0], 0), negated(x[0]), x[0]); };
    t["hoist_divide"] = [](const Arguments& x) { return divide(x[0], x[1]); };
    t["hoist_remainder"] = [](const Arguments& x) {
      return is_float(x) ? float_remainder(x[0], x[1]) : remainder(x[0], x[1]);
    };
    t["hoist_power"] = [](const Arguments& x) { return integer_power(x[0], x[1]); };
    for (int width : {32, 64}) {
      t[fmt::format("hoist_to_i{}", width)] = [width](const Arguments& x) {
        return saturated(x[0], Halide::Int(width));
      };
      t[fmt::format("hoist_to_u{}", width)] = [width](const Arguments& x) {
        return saturated(x[0], Halide::UInt(width));
      };
    }
    for (int width : {2, 4, 8, 16}) {
      const double half = std::ldexp(1.0, width - 1);
      const int stored = std::max(width, 8);
      t[fmt::format("hoist_to_i{}", width)] = [=](const Arguments& x) {
        return saturated_small(x[0], -half, half - 1, Halide::Int(stored));
      };
      t[fmt::format("hoist_to_u{}", width)] = [=](const Arguments& x) {
        return saturated_small(x[0], 0, 2 * half - 1, Halide::UInt(stored));
      };
    }
    for (int width : {8, 16}) {
      const double half = std::ldexp(1.0, width - 1);
      for (const bool is_signed : {true, false}) {
        const double low = is_signed ? -half : 0, high = low + 2 * half - 1;
        const std::string ending = fmt::format("{}{}", is_signed ? 'i' : 'u', width);
        t["hoist_quantised_" + ending] = [=](const Arguments& x) { return quantised(x[0], x[1], low, high); };
        t["hoist_rounded_" + ending] = [=](const Arguments& x) { return rounded(x[0], x[1], low, high); };
      }
    }
    t[word_marker] = word;
    t["hoist_dot"] = [](const Arguments& x) { return dot_in_pairs(x[0], x[1], x[2]); };
    t["hoist_dot_pairs"] = [](const Arguments& x) { return dot_of_pairs(x[0], x[1], x[2]); };
    t[add_first_product] = [](const Arguments& x) { return fma(first_bf16(x[1]), first_bf16(x[2]), x[0]); };
    t[add_second_product] = [](const Arguments& x) { return fma(second_bf16(x[1]), second_bf16(x[2]), x[0]); };
    t[add_two_sums] = [](const Arguments& x) { return x[0] + (x[1] + x[2]); };
    t["hoist_fma_to_odd"] = [](const Arguments& x) { return fma_to_odd(x[0], x[1], x[2]); };
    t["hoist_quiet_f16"] = [](const Arguments& x) { return quiet(x[0], 0x7c00, 0x7e00); };
    t["hoist_quiet_bf16"] = [](const Arguments& x) { return quiet(x[0], 0x7f80, 0x7fc0); };
    const auto add_short = [&](const std::string& name, const std::function<HExpr(const HExpr&)>& from,
                               const std::function<HExpr(const HExpr&)>& into) {
      t["hoist_from_" + name] = [from](const Arguments& x) { return from(x[0]); };
      t["hoist_to_" + name] = [into](const Arguments& x) { return into(x[0]); };
      t["hoist_round_" + name] = [from, into](const Arguments& x) {
        const HExpr single = x[0].type().bits() == 64 ? to_odd(x[0]) : x[0];
        return let(single, [&](const HExpr& a) { return let(into(a), from); });
      };
    };
    add_short("f16", from_f16, to_f16);
    add_short("bf16", from_bf16, to_bf16);
    add_short("f8e8m0", from_power, to_power);
    for (const ShortFloat& f : short_floats) {
      add_short(
          f.name, [f](const HExpr& a) { return decode(f, a); }, [f](const HExpr& a) { return encode(f, a); });
    }
    return t;
  }();
  return table;
}

class Replace : public Halide::Internal::IRMutator {
 public:
  explicit Replace(const NativeTarget& target) : dot_in_instruction_(target.dot_in_instruction) {}

 private:
  using IRMutator::visit;

  HExpr visit(const Call* op) override {
    const auto found = op->call_type == Call::PureExtern ? meanings().find(op->name) : meanings().end();
    if (found == meanings().end()) return IRMutator::visit(op);
    Arguments arguments;
    std::vector<std::pair<std::string, HExpr>> named;
    for (const HExpr& argument : op->args) {
      HExpr value = mutate(argument);
      if (!Halide::Internal::is_const(value) && value.as<Halide::Internal::Variable>() == nullptr) {
        named.emplace_back(Halide::Internal::unique_name("v"), value);
        value = Halide::Internal::Variable::make(value.type(), named.back().first);
      }
      arguments.push_back(value);
    }
    // The instruction has at least four lanes.
    const bool in_instruction = op->name == "hoist_dot" && dot_in_instruction_ && op->type.lanes() >= 4;
    HExpr out =
        in_instruction ? dot_in_instruction(arguments[0], arguments[1], arguments[2]) : found->second(arguments);
    HOIST_CHECK(out.type() == op->type, "native code gives another type for " + op->name);
    while (!named.empty()) {
      out = Halide::Internal::Let::make(named.back().first, named.back().second, out);
      named.pop_back();
    }
    return out;
  }

  bool dot_in_instruction_;
};

}  // namespace
}  // namespace native

MadePass native_functions(const PassInput& input) { return std::make_unique<native::Replace>(*input.native); }

}  // namespace hoist::emission
