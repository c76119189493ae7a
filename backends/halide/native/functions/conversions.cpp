// Conversions: floats to integers, truncated and saturated, where NaN gives 0; short floats to f32 and back.
#include <cmath>

#include "backends/halide/native/functions/terms.h"

namespace hoist::emission::native {
namespace {

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
            // A NaN error counts as inexact.
            const HExpr odd =
                select(!(error == zero) && even && finite, w + select(outward, integer(w, 1), integer(w, -1)), w);
            return bits(Halide::Float(32), odd);
          });
        });
      });
    });
  });
}

}  // namespace

void add_conversions(Meanings& t) {
  for (int width : {32, 64}) {
    t[fmt::format("hoist_to_i{}", width)] = [width](const Arguments& x) { return saturated(x[0], Halide::Int(width)); };
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
}

}  // namespace hoist::emission::native
