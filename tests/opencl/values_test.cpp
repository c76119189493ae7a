// Tests values on which the C runtime and hoist must agree to the bit: scalar types, seeded values, the hash.
#include <gtest/gtest.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/runtime/plan/plan_file.h"
#include "ir/base/extremes.h"
#include "ir/base/seeded.h"

namespace hoist {
namespace {

std::vector<Scalar> all_scalars() {
  std::vector<Scalar> out;
  for (int i = 0; i < scalar_count; ++i) out.push_back(static_cast<Scalar>(i));
  return out;
}

TEST(ValuesTest, ScalarTypesAreTheSame) {
  ASSERT_EQ(HOIST_SCALAR_COUNT, scalar_count);
  for (Scalar scalar : all_scalars()) {
    const hoist_scalar& other = *hoist_scalar_row(static_cast<int>(scalar));
    EXPECT_EQ(other.name, row(scalar).name);
    EXPECT_EQ(other.bits, row(scalar).bits);
    EXPECT_EQ(other.is_float != 0, row(scalar).is_float);
    EXPECT_EQ(is_integer(scalar) && other.is_signed, is_integer(scalar) && row(scalar).is_signed) << row(scalar).name;
  }
}

TEST(ValuesTest, SmallFloatsMeanTheSame) {
  for (Scalar scalar : all_scalars()) {
    if (!is_float(scalar) || row(scalar).bits > 16) continue;
    for (uint64_t bits = 0; bits < uint64_t{1} << row(scalar).bits; ++bits) {
      const double mine = hoist_bits_to_double(static_cast<int>(scalar), bits), theirs = float_from_bits(scalar, bits);
      EXPECT_TRUE(mine == theirs || (std::isnan(mine) && std::isnan(theirs))) << row(scalar).name << " " << bits;
    }
  }
  for (const uint32_t bits :
       {0u, 1u, 0x80000001u, 0x007fffffu, 0x00800000u, 0x3f800001u, 0x7f7fffffu, 0x7f800000u, 0xff800000u}) {
    EXPECT_EQ(hoist_bits_to_double(static_cast<int>(Scalar::f32), bits), float_from_bits(Scalar::f32, bits)) << bits;
  }
}

TEST(ValuesTest, SeededValuesAreTheSame) {
  struct Case {
    double low, high;
  };
  for (Scalar scalar : all_scalars()) {
    for (const Case domain :
         {Case{-1, 1}, Case{0, 1}, Case{0.001, 0.002}, Case{-5, 7}, Case{3, 3}, Case{-1e-7, 1e-5}}) {
      if (!is_float(scalar) && (domain.low != std::floor(domain.low) || domain.high != std::floor(domain.high)))
        continue;
      const Domain cut = domain_of_type(scalar, {domain.low, domain.high});
      const Tensor expected = seeded_tensor(scalar, {501}, 99, 3, domain.low, domain.high);
      std::vector<std::byte> found(expected.bytes().size());
      hoist_seeded(static_cast<int>(scalar), 99, 3, cut.low, cut.high, 501, found.data());
      EXPECT_TRUE(std::ranges::equal(found, expected.bytes()))
          << row(scalar).name << " " << domain.low << " " << domain.high;
      for (int64_t i = 0; i < expected.size() && !is_float(scalar); ++i) {
        EXPECT_GE(static_cast<double>(expected.integer_at(i)), cut.low);
        EXPECT_LE(static_cast<double>(expected.integer_at(i)), cut.high);
      }
    }
  }
}

TEST(ValuesTest, ExtremesAmongSeededValuesAreTheSame) {
  for (Scalar scalar : all_scalars()) {
    for (const Extremes& extremes : {Extremes{1, 0xFF}, Extremes{4, 0xFF}, Extremes{2, 0x3F}, Extremes{0, 0xFF}}) {
      const Tensor usual = seeded_tensor(scalar, {501}, 99, 3, 0, 1);
      std::vector<std::byte> found(usual.bytes().begin(), usual.bytes().end());
      hoist_seeded_extremes(static_cast<int>(scalar), 99, 3, extremes.one_in, extremes.which, 501, found.data());
      int64_t count = 0;
      for (int64_t i = 0; i < usual.size(); ++i) {
        const int bits = row(scalar).bits;
        const auto extreme = seeded_extreme(scalar, 99, 3, i, extremes);
        const uint64_t wanted = extreme ? *extreme : load_element(usual.data(), bits, i);
        EXPECT_EQ(load_element(found.data(), bits, i), wanted) << row(scalar).name << " " << i;
        count += extreme ? 1 : 0;
      }
      const bool any = is_float(scalar) && row(scalar).bits >= 16 && extremes.one_in > 0;
      EXPECT_EQ(count > 0, any) << row(scalar).name;
      EXPECT_TRUE(!any || extremes.one_in > 1 || count == 501);
    }
  }
}

TEST(ValuesTest, SeededIntegersReachBothEnds) {
  const Tensor values = seeded_tensor(Scalar::i8, {2000}, 5, 0, -128, 127);
  std::vector<int> seen(256);
  for (int64_t i = 0; i < values.size(); ++i) ++seen[static_cast<size_t>(values.integer_at(i) + 128)];
  EXPECT_GT(seen.front(), 0);
  EXPECT_GT(seen.back(), 0);
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 0), 0);
}

TEST(ValuesTest, SeededWholeWidthsAreInRange) {
  for (const Scalar scalar : {Scalar::i64, Scalar::u64}) {
    const double low = scalar == Scalar::i64 ? -0x1p63 : 0, high = scalar == Scalar::i64 ? 0x1p63 : 0x1p64;
    const Tensor expected = seeded_tensor(scalar, {64}, 5, 0, low, high);
    const Domain cut = domain_of_type(scalar, {low, high});
    std::vector<std::byte> found(expected.bytes().size());
    hoist_seeded(static_cast<int>(scalar), 5, 0, cut.low, cut.high, 64, found.data());
    EXPECT_TRUE(std::ranges::equal(found, expected.bytes()));
  }
}

TEST(ValuesTest, TheHashIsXxh64) {
  std::vector<unsigned char> data(300);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<unsigned char>(i * 131 + i / 7);
  for (size_t bytes = 0; bytes <= data.size(); ++bytes) {
    EXPECT_EQ(hoist_hash(data.data(), bytes), XXH64(data.data(), bytes, 0)) << bytes;
  }
}

TEST(ValuesTest, FillSaysWhatItCannotDo) {
  float value;
  EXPECT_EQ(hoist_seeded_fill("f32", 1, 0, -1, 1, 1, &value), HOIST_OK);
  EXPECT_EQ(hoist_seeded_fill("f33", 1, 0, -1, 1, 1, &value), HOIST_BAD_ARGUMENT);
  EXPECT_EQ(hoist_seeded_fill("f32", 1, 0, 1, -1, 1, &value), HOIST_BAD_ARGUMENT);
}

}  // namespace
}  // namespace hoist
