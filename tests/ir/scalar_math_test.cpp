#include "ir/evaluate/scalar_math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace hoist::scalar_math_test {

using enum Function;

uint64_t bits(float x) { return std::bit_cast<uint32_t>(x); }
uint64_t bits(double x) { return std::bit_cast<uint64_t>(x); }
float as_float(uint64_t w) { return std::bit_cast<float>(static_cast<uint32_t>(w)); }

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr float smallest = std::numeric_limits<float>::denorm_min();
constexpr float largest = std::numeric_limits<float>::max();

struct FloatCase {
  Function function;
  float a, b, c, expected;
};

TEST(ScalarMath, Floats) {
  const FloatCase cases[] = {
      {add, 16777216, 1, 0, 16777216},  // a tie goes to even
      {add, 16777216, 3, 0, 16777220},
      {add, smallest, smallest, 0, 2 * smallest},
      {add, largest, largest, 0, infinity},
      {add, infinity, -infinity, 0, not_a_number},
      {subtract, 1, 1, 0, 0.0f},
      {multiply, smallest, 0.5f, 0, 0.0f},  // half of the smallest subnormal ties to even
      {multiply, 3 * smallest, 0.5f, 0, 2 * smallest},
      {multiply, 0, infinity, 0, not_a_number},
      {multiply, -1, 0, 0, -0.0f},
      {divide, 1, 3, 0, 0x1.555556p-2f},
      {divide, -1, 0, 0, -infinity},
      {divide, 0, 0, 0, not_a_number},
      {modulo, -7, 3, 0, 2},
      {modulo, 7, -3, 0, -2},
      {modulo, -6, 3, 0, 0.0f},
      {modulo, 5.5f, 2, 0, 1.5f},
      {modulo, 1, 0, 0, not_a_number},
      {remainder, -7, 3, 0, -1},
      {remainder, 7, -3, 0, 1},
      {minimum, 0.0f, -0.0f, 0, -0.0f},
      {minimum, -0.0f, 0.0f, 0, -0.0f},
      {minimum, 1, not_a_number, 0, not_a_number},
      {minimum, not_a_number, 1, 0, not_a_number},
      {minimum, 3, -infinity, 0, -infinity},
      {maximum, 0.0f, -0.0f, 0, 0.0f},
      {maximum, -0.0f, 0.0f, 0, 0.0f},
      {maximum, not_a_number, infinity, 0, not_a_number},
      {maximum, 2, not_a_number, 0, not_a_number},
      {maximum, -2, 5, 0, 5},
      {power, 2, 10, 0, 1024},
      {power, 0, 0, 0, 1},
      {fma, 0x1.000002p0f, 0x1.000002p0f, -0x1.000004p0f, 0x1p-46f},  // only the unrounded product leaves this
                                                                      // difference
      {fma, largest, 2, -largest, largest},
      {fma, 0x1.fffffep23f, 0x1.000002p0f, smallest, 0x1p24f},    // sums that rounding through double gets wrong
      {fma, 0x1.000002p0f, 0x1.8p0f, 0x1p-100f, 0x1.800004p0f},   // just above a tie
      {fma, 0x1.000002p0f, 0x1.8p0f, -0x1p-100f, 0x1.800002p0f},  // just below it
      {negate, 0, 0, 0, -0.0f},
      {absolute, -0.0f, 0, 0, 0.0f},
      {absolute, -infinity, 0, 0, infinity},
      {sign, -3, 0, 0, -1},
      {sign, smallest, 0, 0, 1},
      {sign, -0.0f, 0, 0, 0.0f},
      {sign, not_a_number, 0, 0, not_a_number},
      {floor, -0.5f, 0, 0, -1},
      {ceiling, -0.5f, 0, 0, -0.0f},
      {round, 0.5f, 0, 0, 0},
      {round, 1.5f, 0, 0, 2},
      {round, 2.5f, 0, 0, 2},
      {round, -2.5f, 0, 0, -2},
      {truncate, -2.9f, 0, 0, -2},
      {sqrt, 2, 0, 0, 0x1.6a09e6p0f},
      {sqrt, -1, 0, 0, not_a_number},
      {exp, 0, 0, 0, 1},
      {exp, 1000, 0, 0, infinity},
      {exp, -infinity, 0, 0, 0},
      {log, 0, 0, 0, -infinity},
      {log, -1, 0, 0, not_a_number},
      {tanh, infinity, 0, 0, 1},
      {erf, -infinity, 0, 0, -1},
  };
  for (const FloatCase& c : cases) {
    const float got = as_float(compute(c.function, Scalar::f32, bits(c.a), bits(c.b), bits(c.c)));
    if (std::isnan(c.expected)) {
      EXPECT_TRUE(std::isnan(got)) << row(c.function).name << " " << c.a << " " << c.b << " gave " << got;
    } else {
      EXPECT_EQ(bits(got), bits(c.expected)) << row(c.function).name << " " << c.a << " " << c.b << " gave " << got;
    }
  }
}

// Every elementary function of the table, at a point with a known value of many digits.
TEST(ScalarMath, ElementaryFunctions) {
  const std::tuple<Function, double, double> cases[] = {
      {exp, 1, 2.718281828459045},     {log, 10, 2.302585092994046},     {sin, 1, 0.8414709848078965},
      {cos, 1, 0.5403023058681398},    {tan, 1, 1.5574077246549022},     {asin, 0.5, 0.5235987755982989},
      {acos, 0.5, 1.0471975511965979}, {atan, 1, 0.7853981633974483},    {sinh, 1, 1.1752011936438014},
      {cosh, 1, 1.5430806348152437},   {tanh, 1, 0.7615941559557649},    {asinh, 1, 0.881373587019543},
      {acosh, 2, 1.3169578969248166},  {atanh, 0.5, 0.5493061443340549}, {erf, 1, 0.8427007929497149},
      {sqrt, 2, 1.4142135623730951},
  };
  for (auto [f, x, y] : cases) {
    EXPECT_NEAR(std::bit_cast<double>(compute(f, Scalar::f64, bits(x))), y, 4e-16 * std::fabs(y) * 2) << row(f).name;
    EXPECT_NEAR(as_float(compute(f, Scalar::f32, bits(static_cast<float>(x)))), y, 2.4e-7 * std::fabs(y))
        << row(f).name;
    // The small floats are rounded once from double.
    for (Scalar s : {Scalar::f16, Scalar::bf16, Scalar::f8e4m3fn, Scalar::f8e5m2}) {
      EXPECT_EQ(compute(f, s, bits_from_float(s, x)), bits_from_float(s, y)) << row(f).name << " " << row(s).name;
    }
  }
}

// Sums, products and quotients of all pairs of float8 values, and fma against exact arithmetic in double.
TEST(ScalarMath, SmallFloatsRoundOnce) {
  for (Scalar s : {Scalar::f8e4m3fn, Scalar::f8e5m2, Scalar::f8e4m3fnuz, Scalar::f8e5m2fnuz, Scalar::f4e2m1}) {
    for (uint64_t a = 0; a < 256; a += 3) {
      for (uint64_t b = 0; b < 256; b += 5) {
        const double x = float_from_bits(s, a), y = float_from_bits(s, b);
        EXPECT_EQ(compute(add, s, a, b), bits_from_float(s, x + y));
        EXPECT_EQ(compute(multiply, s, a, b), bits_from_float(s, x * y));
        EXPECT_EQ(compute(fma, s, a, b, a), bits_from_float(s, x * y + x));  // exact in double
        EXPECT_EQ(compute(less, s, a, b), uint64_t{x < y});
      }
    }
  }
  // 1 + 2^-11 ties to 1 in f16; a value above the tie, by less than double can represent in the sum, does not.
  const auto half = [](double x) { return bits_from_float(Scalar::f16, x); };
  EXPECT_EQ(compute(fma, Scalar::f16, half(0x1p-6), half(0x1p-5), half(1)), half(1));
  EXPECT_EQ(compute(fma, Scalar::bf16, bits_from_float(Scalar::bf16, 0x1p-60), bits_from_float(Scalar::bf16, 0x1p-60),
                    bits_from_float(Scalar::bf16, 0x1.02p0)),
            bits_from_float(Scalar::bf16, 0x1.02p0));
  EXPECT_EQ(compute(fma, Scalar::bf16, bits_from_float(Scalar::bf16, 0x1.02p0),
                    bits_from_float(Scalar::bf16, 0x1.02p-8), bits_from_float(Scalar::bf16, 0x1.02p0)),
            bits_from_float(Scalar::bf16, 0x1.02p0 + 0x1.02p0 * 0x1.02p-8));
  EXPECT_EQ(compute(add, Scalar::f16, half(65504), half(65504)), 0x7c00u);
  EXPECT_EQ(compute(maximum, Scalar::f16, half(-0.0), half(0.0)), 0u);
}

TEST(ScalarMath, Integers) {
  struct Case {
    Function function;
    Scalar scalar;
    int64_t a, b, expected;
  };
  const int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
  const Case cases[] = {
      {add, Scalar::i8, 127, 1, -128},
      {add, Scalar::i4, 7, 1, -8},
      {add, Scalar::u4, 15, 1, 0},
      {add, Scalar::i64, most, 1, least},
      {subtract, Scalar::u32, 0, 1, 4294967295},
      {multiply, Scalar::u16, 65535, 65535, 1},
      {multiply, Scalar::i16, 32767, 32767, 1},
      {multiply, Scalar::i4, 5, 5, -7},
      {add, Scalar::i2, 1, 1, -2},
      {multiply, Scalar::u2, 3, 3, 1},
      {divide, Scalar::i32, -7, 2, -3},
      {divide, Scalar::i32, 7, 0, 0},
      {divide, Scalar::i8, -128, -1, -128},
      {divide, Scalar::i4, -8, -1, -8},
      {divide, Scalar::i64, least, -1, least},
      {divide, Scalar::u8, 255, 255, 1},
      {divide, Scalar::u64, -1, 2, most},
      {modulo, Scalar::i32, -7, 3, 2},
      {modulo, Scalar::i32, 7, -3, -2},
      {modulo, Scalar::i32, 7, 0, 0},
      {modulo, Scalar::i64, least, -1, 0},
      {remainder, Scalar::i32, -7, 3, -1},
      {remainder, Scalar::i8, -128, -1, 0},
      {remainder, Scalar::u8, 200, 7, 4},
      {minimum, Scalar::i8, -1, 1, -1},
      {minimum, Scalar::u8, 255, 1, 1},
      {maximum, Scalar::u64, -1, 1, -1},
      {power, Scalar::i32, 3, 4, 81},
      {power, Scalar::i32, 2, -1, 0},
      {power, Scalar::i32, 1, -5, 1},
      {power, Scalar::i32, -1, -3, -1},
      {power, Scalar::i32, -1, -4, 1},
      {power, Scalar::i32, 0, -1, 0},
      {power, Scalar::i32, 0, 0, 1},
      {power, Scalar::i8, 2, 7, -128},
      {power, Scalar::u8, 3, 200, 161},
      {negate, Scalar::i8, -128, 0, -128},
      {negate, Scalar::u8, 1, 0, 255},
      {absolute, Scalar::i32, -5, 0, 5},
      {absolute, Scalar::i4, -8, 0, -8},
      {sign, Scalar::i64, least, 0, -1},
      {sign, Scalar::u8, 200, 0, 1},
      {logical_and, Scalar::u8, 0xcc, 0xaa, 0x88},
      {logical_or, Scalar::i8, -128, 1, -127},
      {logical_xor, Scalar::u4, 0xc, 0xa, 0x6},
      {logical_not, Scalar::u4, 0xc, 0, 0x3},
      {logical_not, Scalar::i8, 0, 0, -1},
      {shift_left, Scalar::i8, 1, 7, -128},
      {shift_left, Scalar::u8, 255, 8, 0},
      {shift_left, Scalar::u4, 3, 3, 8},
      {shift_left, Scalar::i64, 1, 64, 0},
      {shift_right, Scalar::i8, -128, 7, -1},
      {shift_right, Scalar::i8, -128, 8, -1},
      {shift_right, Scalar::i8, 64, 100, 0},
      {shift_right, Scalar::u64, -1, 63, 1},
      {shift_right, Scalar::i4, -8, 2, -2},
  };
  for (const Case& c : cases) {
    const uint64_t word = compute(c.function, c.scalar, word_of_integer(c.scalar, c.a), word_of_integer(c.scalar, c.b));
    EXPECT_EQ(integer_of_word(c.scalar, word), c.expected)
        << row(c.function).name << " " << row(c.scalar).name << " " << c.a << " " << c.b;
  }
}

TEST(ScalarMath, ComparisonsAndBooleans) {
  const float nan = not_a_number;
  for (Function f : {equal, less, less_equal, greater, greater_equal}) {
    EXPECT_EQ(compute(f, Scalar::f32, bits(nan), bits(nan)), 0u) << row(f).name;
  }
  EXPECT_EQ(compute(not_equal, Scalar::f32, bits(nan), bits(nan)), 1u);
  EXPECT_EQ(compute(equal, Scalar::f32, bits(0.0f), bits(-0.0f)), 1u);
  EXPECT_EQ(compute(less, Scalar::i8, word_of_integer(Scalar::i8, -1), 0), 1u);
  EXPECT_EQ(compute(less, Scalar::u8, 255, 0), 0u);
  EXPECT_EQ(compute(is_nan, Scalar::f16, 0x7e01), 1u);
  EXPECT_EQ(compute(is_nan, Scalar::f64, bits(1.0)), 0u);
  EXPECT_EQ(compute(is_infinite, Scalar::f32, bits(-infinity)), 1u);
  EXPECT_EQ(compute(is_infinite, Scalar::f32, bits(nan)), 0u);
  for (uint64_t a : {0, 1}) {
    EXPECT_EQ(compute(logical_not, Scalar::boolean, a), 1 - a);
    for (uint64_t b : {0, 1}) {
      EXPECT_EQ(compute(logical_and, Scalar::boolean, a, b), a & b);
      EXPECT_EQ(compute(logical_or, Scalar::boolean, a, b), a | b);
      EXPECT_EQ(compute(logical_xor, Scalar::boolean, a, b), a ^ b);
      EXPECT_EQ(compute(equal, Scalar::boolean, a, b), uint64_t{a == b});
    }
  }
}

TEST(ScalarMath, TheTableSaysWhichTypesHaveAFunction) {
  for (const FunctionRow& f : function_table()) {
    for (int i = 0; i < scalar_count; ++i) {
      const auto s = static_cast<Scalar>(i);
      const bool compares = f.function == Function::equal || f.function == Function::not_equal;
      const bool has = s == Scalar::string    ? compares
                       : is_float(s)          ? f.on_float
                       : s == Scalar::boolean ? f.on_boolean
                                              : f.on_integer;
      if (!has) continue;
      // The operation must be defined (column_operation aborts otherwise), and the neutral element must be neutral.
      ASSERT_NE(column_operation(f.function, s), nullptr);
      if (!f.neutral || f.arity != 2 || f.result != ResultKind::same) continue;
      uint64_t neutral = convert(Scalar::f64, s, bits(*f.neutral));
      if (std::isinf(*f.neutral) && is_float(s)) neutral = bits_from_float(s, *f.neutral);
      // Powers of two have neither 0 nor infinities.
      if (is_float(s) && float_from_bits(s, neutral) != *f.neutral) continue;
      for (int64_t x : {0, 1, 3, 100}) {
        const uint64_t word = word_of_integer(s, x);
        EXPECT_EQ(compute(f.function, s, neutral, word), word) << f.name << " " << row(s).name << " " << x;
      }
    }
  }
}

TEST(ScalarMath, CastsOfFloats) {
  struct Case {
    double from;
    Scalar to;
    int64_t expected;
  };
  const Case cases[] = {
      {2.9, Scalar::i32, 2},
      {-2.9, Scalar::i32, -2},
      {300, Scalar::u8, 255},
      {-5, Scalar::u8, 0},
      {-300, Scalar::i8, -128},
      {1e30, Scalar::i64, std::numeric_limits<int64_t>::max()},
      {-1e30, Scalar::i64, std::numeric_limits<int64_t>::min()},
      {1e30, Scalar::u64, -1},
      {0x1p63, Scalar::u64, std::numeric_limits<int64_t>::min()},
      {9, Scalar::i4, 7},
      {-9, Scalar::i4, -8},
      {99, Scalar::u4, 15},
      {0.5, Scalar::boolean, 1},
      {0, Scalar::boolean, 0},
      {-0.0, Scalar::boolean, 0},
      {std::numeric_limits<double>::quiet_NaN(), Scalar::i32, 0},
      {std::numeric_limits<double>::quiet_NaN(), Scalar::boolean, 1},
      {std::numeric_limits<double>::infinity(), Scalar::i16, 32767},
      {4294967295.5, Scalar::u32, 4294967295},
      {2147483647.5, Scalar::i32, 2147483647},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(integer_of_word(c.to, convert(Scalar::f64, c.to, bits(c.from))), c.expected)
        << c.from << " " << row(c.to).name;
  }
  EXPECT_EQ(convert(Scalar::f32, Scalar::f16, bits(65520.0f)), 0x7c00u);
  EXPECT_EQ(convert(Scalar::f32, Scalar::f8e4m3fn, bits(1000.0f)), 0x7eu);
  EXPECT_EQ(convert(Scalar::f64, Scalar::f32, bits(0x1.0000010000001p0)), bits(0x1.000002p0f));
  EXPECT_EQ(convert(Scalar::f64, Scalar::bf16, bits(0x1.01p0)), 0x3f80u);  // a tie
  EXPECT_EQ(convert(Scalar::f16, Scalar::i8, bits_from_float(Scalar::f16, -7.5)), 0xf9u);
}

TEST(ScalarMath, CastsOfIntegers) {
  EXPECT_EQ(convert(Scalar::i32, Scalar::f32, 16777217), bits(16777216.0f));
  EXPECT_EQ(convert(Scalar::i32, Scalar::f32, 16777219), bits(16777220.0f));
  EXPECT_EQ(convert(Scalar::u64, Scalar::f32, ~uint64_t{0}), bits(0x1p64f));
  EXPECT_EQ(convert(Scalar::i64, Scalar::f64, (uint64_t{1} << 53) + 1), bits(0x1p53));
  // Just above a tie of bf16, by less than double can represent.
  EXPECT_EQ(convert(Scalar::i64, Scalar::bf16, (uint64_t{1} << 62) + (uint64_t{1} << 54) + 1),
            bits_from_float(Scalar::bf16, 0x1.02p62));
  EXPECT_EQ(convert(Scalar::i64, Scalar::bf16, (uint64_t{1} << 62) + (uint64_t{1} << 54)),
            bits_from_float(Scalar::bf16, 0x1p62));
  EXPECT_EQ(convert(Scalar::i64, Scalar::bf16, ~((uint64_t{1} << 62) + (uint64_t{1} << 54) + 1) + 1),
            bits_from_float(Scalar::bf16, -0x1.02p62));
  EXPECT_EQ(convert(Scalar::i32, Scalar::i4, 9), 0xf9u);  // stored as a sign-extended byte
  EXPECT_EQ(convert(Scalar::i32, Scalar::u4, 0x1f), 0xfu);
  EXPECT_EQ(convert(Scalar::i4, Scalar::i32, 0xff), 0xffffffffu);
  EXPECT_EQ(convert(Scalar::i8, Scalar::u32, 0xff), 0xffffffffu);
  EXPECT_EQ(convert(Scalar::i16, Scalar::boolean, 256), 1u);
  EXPECT_EQ(convert(Scalar::boolean, Scalar::f16, 1), bits_from_float(Scalar::f16, 1));
}

// f32 fma is exact with and without the instruction: many random triples against round-to-odd in long double.
TEST(ScalarMath, ColumnsAndSinglesAgreeOnFma) {
  uint64_t state = 1;
  auto next = [&] {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<uint32_t>(state >> 33) | static_cast<uint32_t>(state >> 32 & 0x80000000u);
  };
  for (int round = 0; round < 200; ++round) {
    float a[37], b[37], c[37], out[37];
    for (int i = 0; i < 37; ++i) {
      a[i] = std::bit_cast<float>(next());
      b[i] = std::bit_cast<float>((std::bit_cast<uint32_t>(a[i]) & 0x7f800000u) ^ (next() & 0x007fffffu));
      c[i] = -a[i] * b[i];
    }
    column_operation(fma, Scalar::f32)(a, b, c, out, 37);
    for (int i = 0; i < 37; ++i) {
      const float expected = std::fma(a[i], b[i], c[i]);
      EXPECT_TRUE(bits(out[i]) == bits(expected) || (std::isnan(out[i]) && std::isnan(expected)));
    }
  }
}

TEST(ScalarMath, TensorsAsColumns) {
  const Tensor small = Tensor::of<int>(Scalar::i4, {5}, {-8, 7, -1, 0, 3});
  int8_t column[5];
  read_column(small, 0, 5, column);
  EXPECT_EQ(std::vector<int>(column, column + 5), (std::vector<int>{-8, 7, -1, 0, 3}));
  Tensor back(Scalar::i4, {5});
  write_column(column + 1, Scalar::i4, back.data(), 1, 4);
  EXPECT_EQ(back.as_integers(), (std::vector<int64_t>{0, 7, -1, 0, 3}));
  const Tensor truth(Scalar::boolean, {2}, {std::byte{0}, std::byte{7}});
  EXPECT_EQ(word_at(truth, 1), 1u);
  // All NaNs are written as one.
  const uint32_t nans[] = {0xffc12345u, 0x7f800001u, 0xff800000u};
  Tensor floats(Scalar::f32, {3});
  write_column(nans, Scalar::f32, floats.data(), 0, 3);
  EXPECT_EQ(word_at(floats, 0), 0x7fc00000u);
  EXPECT_EQ(word_at(floats, 1), 0x7fc00000u);
  EXPECT_EQ(word_at(floats, 2), 0xff800000u);
}

}  // namespace hoist::scalar_math_test
