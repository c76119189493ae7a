// Arithmetic of floats and integers: minimum and maximum, signs, shifts, division, remainders, integer powers.
#include <cmath>

#include "backends/halide/native/functions/terms.h"

namespace hoist::emission::native {
namespace {

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

// Division by 0 gives 0; the only quotient that overflows wraps.
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

bool is_float(const Arguments& x) { return x[0].type().is_float(); }

}  // namespace

void add_arithmetic(Meanings& t) {
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
  t["hoist_shift_left"] = [](const Arguments& x) { return shift_left(x[0], x[1]); };
  t["hoist_shift_right"] = [](const Arguments& x) { return shift_right(x[0], x[1]); };
  t["hoist_absolute"] = [](const Arguments& x) { return select(x[0] < integer(x[0], 0), negated(x[0]), x[0]); };
  t["hoist_divide"] = [](const Arguments& x) { return divide(x[0], x[1]); };
  t["hoist_remainder"] = [](const Arguments& x) {
    return is_float(x) ? float_remainder(x[0], x[1]) : remainder(x[0], x[1]);
  };
  t["hoist_power"] = [](const Arguments& x) { return integer_power(x[0], x[1]); };
}

}  // namespace hoist::emission::native
