#include "ir/language/tensor.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace hoist::tensor_test {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

TEST(Tensor, FirstElementsAlongADimension) {
  const Tensor x = Tensor::of(Scalar::i4, {2, 3}, std::vector<int64_t>{1, 2, 3, 4, 5, 6});
  EXPECT_EQ(first_elements(x, 1, 2), Tensor::of(Scalar::i4, {2, 2}, std::vector<int64_t>{1, 2, 4, 5}));
  EXPECT_EQ(first_elements(x, 0, 1), Tensor::of(Scalar::i4, {1, 3}, std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(first_elements(x, 1, 0).size(), 0);
  const Tensor y = Tensor::of(Scalar::f32, {2, 2, 2}, std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(first_elements(y, 1, 1), Tensor::of(Scalar::f32, {2, 1, 2}, std::vector<double>{1, 2, 5, 6}));
}

TEST(Scalar, NamesGoBothWays) {
  for (int i = 0; i < scalar_count; ++i) {
    const auto scalar = static_cast<Scalar>(i);
    EXPECT_EQ(scalar_named(row(scalar).name), scalar);
  }
  EXPECT_FALSE(scalar_named("float"));
}

TEST(Tensor, FreshOnesAreZero) {
  const Tensor tensor(Scalar::f32, {2, 3});
  EXPECT_EQ(tensor.size(), 6);
  EXPECT_EQ(tensor.bytes().size(), 24u);
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(tensor.float_at(i), 0);
  EXPECT_EQ(Tensor(Scalar::i64, {}).size(), 1);
  EXPECT_EQ(Tensor(Scalar::i64, {0, 5}).size(), 0);
  EXPECT_EQ(Tensor().size(), 0);
}

TEST(Tensor, CopiesShareUntilWritten) {
  Tensor first = Tensor::of<int>(Scalar::i32, {2}, {1, 2});
  const Tensor second = first;
  EXPECT_EQ(first.bytes().data(), second.bytes().data());
  first.set_integer(0, 7);
  EXPECT_EQ(second.integer_at(0), 1);
  EXPECT_EQ(first.integer_at(0), 7);
  EXPECT_FALSE(first == second);
  EXPECT_TRUE(second == Tensor::of<int>(Scalar::i32, {2}, {1, 2}));
  EXPECT_FALSE(second == second.reshaped({2, 1}));
}

TEST(Tensor, HalfBytesLieLowNibbleFirst) {
  Tensor tensor = Tensor::of<int>(Scalar::i4, {3}, {-8, 7, -1});
  ASSERT_EQ(tensor.bytes().size(), 2u);
  EXPECT_EQ(static_cast<int>(tensor.bytes()[0]), 0x78);
  EXPECT_EQ(static_cast<int>(tensor.bytes()[1]), 0x0f);
  EXPECT_EQ(tensor.as_integers(), (std::vector<int64_t>{-8, 7, -1}));
  tensor.set_integer(0, 3);
  EXPECT_EQ(tensor.as_integers(), (std::vector<int64_t>{3, 7, -1}));
  EXPECT_EQ(Tensor::of<int>(Scalar::u4, {2}, {15, 9}).as_integers(), (std::vector<int64_t>{15, 9}));
}

TEST(Tensor, FourValuesOfTwoBitsLieInAByteTheFirstLowest) {
  Tensor tensor = Tensor::of<int>(Scalar::i2, {5}, {-2, 1, -1, 0, 1});
  ASSERT_EQ(tensor.bytes().size(), 2u);
  EXPECT_EQ(static_cast<int>(tensor.bytes()[0]), 0x36);
  EXPECT_EQ(static_cast<int>(tensor.bytes()[1]), 0x01);
  tensor.set_integer(1, -2);
  EXPECT_EQ(tensor.as_integers(), (std::vector<int64_t>{-2, -2, -1, 0, 1}));
  EXPECT_EQ(Tensor::of<int>(Scalar::u2, {3}, {3, 2, 5}).as_integers(), (std::vector<int64_t>{3, 2, 1}));
}

TEST(Tensor, IntegersKeepLowBits) {
  EXPECT_EQ(Tensor::of<int>(Scalar::i8, {2}, {200, -1}).as_integers(), (std::vector<int64_t>{-56, -1}));
  EXPECT_EQ(Tensor::of<int>(Scalar::u8, {2}, {300, -1}).as_integers(), (std::vector<int64_t>{44, 255}));
  EXPECT_EQ(Tensor::of<int>(Scalar::boolean, {3}, {0, 1, 256}).as_integers(), (std::vector<int64_t>{0, 1, 1}));
  const Tensor wide = Tensor::of<uint64_t>(Scalar::u64, {1}, {~uint64_t{0}});
  EXPECT_EQ(wide.integer_at(0), -1);
  EXPECT_EQ(wide.float_at(0), 0x1p64);
}

TEST(Tensor, FloatsRoundAndSaturateIntoIntegers) {
  Tensor tensor(Scalar::i8, {6});
  const std::vector<double> values = {2.5, 3.5, -2.5, 1000, -1000, not_a_number};
  for (size_t i = 0; i < values.size(); ++i) tensor.set_float(static_cast<int64_t>(i), values[i]);
  EXPECT_EQ(tensor.as_integers(), (std::vector<int64_t>{2, 4, -2, 127, -128, 0}));
  Tensor wide(Scalar::u64, {2});
  wide.set_float(0, 0x1p63);
  wide.set_float(1, 1e30);
  EXPECT_EQ(static_cast<uint64_t>(wide.integer_at(0)), uint64_t{1} << 63);
  EXPECT_EQ(wide.integer_at(1), -1);
  EXPECT_EQ(static_cast<int64_t>(bits_from_float(Scalar::i64, -1e30)), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(Tensor::of<double>(Scalar::f32, {3}, {-2.9, 2.9, 1e30}).as_integers(),
            (std::vector<int64_t>{-2, 2, std::numeric_limits<int64_t>::max()}));
}

TEST(SmallFloats, KnownCodes) {
  EXPECT_EQ(bits_from_float(Scalar::f16, 1.0), 0x3c00u);
  EXPECT_EQ(bits_from_float(Scalar::f16, 65504), 0x7bffu);
  EXPECT_EQ(bits_from_float(Scalar::f16, 65519.99), 0x7bffu);
  EXPECT_EQ(bits_from_float(Scalar::f16, 65520), 0x7c00u);
  EXPECT_EQ(bits_from_float(Scalar::f16, 0x1p-24), 0x0001u);
  EXPECT_EQ(bits_from_float(Scalar::f16, 0x1p-25), 0x0000u);
  EXPECT_EQ(bits_from_float(Scalar::f16, 0x1.000001p-25), 0x0001u);
  EXPECT_EQ(bits_from_float(Scalar::f16, -0.0), 0x8000u);
  EXPECT_EQ(bits_from_float(Scalar::bf16, 1.0), 0x3f80u);
  EXPECT_EQ(bits_from_float(Scalar::bf16, 0x1p-133), 0x0001u);
  EXPECT_EQ(bits_from_float(Scalar::bf16, -infinity), 0xff80u);
  // Largest finite values from the ONNX specification.
  EXPECT_EQ(float_from_bits(Scalar::f8e4m3fn, 0x7e), 448);
  EXPECT_EQ(float_from_bits(Scalar::f8e4m3fnuz, 0x7f), 240);
  EXPECT_EQ(float_from_bits(Scalar::f8e5m2, 0x7b), 57344);
  EXPECT_EQ(float_from_bits(Scalar::f8e5m2fnuz, 0x7f), 57344);
  EXPECT_EQ(float_from_bits(Scalar::f8e5m2, 0x7c), infinity);
  EXPECT_TRUE(std::isnan(float_from_bits(Scalar::f8e4m3fn, 0x7f)));
  EXPECT_TRUE(std::isnan(float_from_bits(Scalar::f8e4m3fnuz, 0x80)));
  EXPECT_TRUE(std::isnan(float_from_bits(Scalar::f8e5m2fnuz, 0x80)));
}

TEST(SmallFloats, FourBitsSaturateAndHaveNoNaN) {
  const std::vector<double> all = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (size_t code = 0; code < all.size(); ++code) {
    EXPECT_EQ(float_from_bits(Scalar::f4e2m1, code), all[code]);
    EXPECT_EQ(float_from_bits(Scalar::f4e2m1, code | 8), -all[code]);
  }
  for (const auto& [value, code] : std::vector<std::pair<double, uint64_t>>{{0.25, 0},
                                                                            {0.26, 1},
                                                                            {0.75, 2},
                                                                            {1.25, 2},
                                                                            {1.75, 4},
                                                                            {2.5, 4},
                                                                            {3.5, 6},
                                                                            {5, 6},
                                                                            {5.1, 7},
                                                                            {infinity, 7}}) {
    EXPECT_EQ(bits_from_float(Scalar::f4e2m1, value), code) << value;
    EXPECT_EQ(bits_from_float(Scalar::f4e2m1, -value), code | 8) << value;
  }
  EXPECT_EQ(bits_from_float(Scalar::f4e2m1, not_a_number), 8u);  // as in the recorded cases of ONNX
}

TEST(SmallFloats, PowersOfTwoAreTakenAtOrAbove) {
  EXPECT_EQ(float_from_bits(Scalar::f8e8m0, 0), 0x1p-127);
  EXPECT_EQ(float_from_bits(Scalar::f8e8m0, 127), 1);
  EXPECT_EQ(float_from_bits(Scalar::f8e8m0, 254), 0x1p127);
  EXPECT_TRUE(std::isnan(float_from_bits(Scalar::f8e8m0, 255)));
  for (const auto& [value, code] : std::vector<std::pair<double, uint64_t>>{{0, 0},
                                                                            {0x1p-1040, 0},
                                                                            {0x1p-127, 0},
                                                                            {0x1.8p-127, 1},
                                                                            {1, 127},
                                                                            {0x1.0000000000001p0, 128},
                                                                            {-3, 129},
                                                                            {0x1p127, 254},
                                                                            {1e300, 254},
                                                                            {infinity, 255},
                                                                            {not_a_number, 255}})
    EXPECT_EQ(bits_from_float(Scalar::f8e8m0, value), code) << value;
}

TEST(SmallFloats, Float8SaturatesAndKeepsNaN) {
  for (const Scalar scalar : {Scalar::f8e4m3fn, Scalar::f8e4m3fnuz, Scalar::f8e5m2, Scalar::f8e5m2fnuz}) {
    const double largest = scalar == Scalar::f8e4m3fn ? 448 : scalar == Scalar::f8e4m3fnuz ? 240 : 57344;
    for (const double value : {largest * 1.01, 1e30, infinity}) {
      EXPECT_EQ(float_from_bits(scalar, bits_from_float(scalar, value)), largest) << row(scalar).name;
      EXPECT_EQ(float_from_bits(scalar, bits_from_float(scalar, -value)), -largest) << row(scalar).name;
    }
    EXPECT_TRUE(std::isnan(float_from_bits(scalar, bits_from_float(scalar, not_a_number))));
  }
  EXPECT_EQ(bits_from_float(Scalar::f8e4m3fnuz, -0.0), 0u);
  EXPECT_EQ(bits_from_float(Scalar::f8e4m3fn, -0.0), 0x80u);
}

TEST(SmallFloats, EveryFiniteCodeSurvivesADoubleAndMidpointsGoToEven) {
  for (const Scalar scalar :
       {Scalar::f16, Scalar::bf16, Scalar::f8e4m3fn, Scalar::f8e4m3fnuz, Scalar::f8e5m2, Scalar::f8e5m2fnuz}) {
    const uint64_t codes = uint64_t{1} << row(scalar).bits;
    for (uint64_t code = 0; code < codes; ++code) {
      const double value = float_from_bits(scalar, code);
      if (!std::isfinite(value)) continue;
      ASSERT_EQ(bits_from_float(scalar, value), code) << row(scalar).name << " " << value;
      const double next = float_from_bits(scalar, code + 1);
      if (code + 1 == codes / 2 || !std::isfinite(next) || next == 0) continue;
      const double middle = (value + next) / 2;
      const uint64_t even = code % 2 == 0 ? code : code + 1;
      if (code + 1 < codes / 2) {
        ASSERT_EQ(bits_from_float(scalar, middle), even) << row(scalar).name << " " << middle;
        ASSERT_EQ(bits_from_float(scalar, std::nextafter(middle, infinity)), code + 1);
        ASSERT_EQ(bits_from_float(scalar, std::nextafter(middle, -infinity)), code);
      }
    }
  }
}

TEST(SmallFloats, HalfTensorsRoundOnce) {
  Tensor tensor(Scalar::f16, {1});
  tensor.set_float(0, 1 + 0x1p-11 + 0x1p-40);  // through float this would tie and round down to 1
  EXPECT_EQ(tensor.float_at(0), 1 + 0x1p-10);
}

TEST(TensorDeathTest, WrongByteCountsAbort) {
  EXPECT_DEATH(Tensor(Scalar::f32, {2}, std::vector<std::byte>(7)), "7 bytes for a tensor of 8");
  EXPECT_DEATH(Tensor(Scalar::f32, {2}).reshaped({3}), "reshape from 2 elements to 3");
}

TEST(Tensor, LargestMagnitudeIsOfIntegersOfAnyType) {
  const auto largest = [](Scalar scalar, const std::vector<int64_t>& values) {
    return largest_magnitude(Tensor::of(scalar, {static_cast<int64_t>(values.size())}, values));
  };
  EXPECT_EQ(largest(Scalar::i8, {3, -128, 127}), 128);
  EXPECT_EQ(largest(Scalar::u8, {3, 255, 0}), 255);
  EXPECT_EQ(largest(Scalar::i16, {-32768, 5}), 32768);
  EXPECT_EQ(largest(Scalar::i32, {INT32_MIN, 7}), int64_t{1} << 31);
  EXPECT_EQ(largest(Scalar::i64, {INT64_MIN, 7}), INT64_MAX);
  EXPECT_EQ(largest(Scalar::i4, {-8, 7, 1}), 8);
  EXPECT_EQ(largest(Scalar::boolean, {0, 1}), 1);
  EXPECT_EQ(largest(Scalar::i8, {}), 0);
}

}  // namespace hoist::tensor_test
