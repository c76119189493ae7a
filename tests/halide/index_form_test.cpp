// Tests the equality of indices: indices that are equal everywhere are recognised, and indices that differ anywhere are
// never called equal.
#include "backends/halide/index_form.h"

#include <gtest/gtest.h>

#include <random>

namespace hoist::emission {
namespace index_form_test {

using H = Halide::Expr;

class Indices : public ::testing::Test {
 protected:
  bool zero(const H& e) const { return is_always_zero(e, extents_); }
  bool equal(const H& a, const H& b) const { return zero(a - b); }

  const Halide::Var x_{"x"}, y_{"y"}, z_{"z"}, unknown_{"unknown"};
  const std::map<std::string, int64_t> extents_ = {{"x", 32}, {"y", 6}, {"z", 1000}};
};

TEST_F(Indices, EqualFormsAreFound) {
  EXPECT_TRUE(zero(0));
  EXPECT_TRUE(equal((x_ / 4) * 4 + x_ % 4, x_));
  EXPECT_TRUE(equal((y_ * 32 + x_) / 32, y_));
  EXPECT_TRUE(equal((y_ * 32 + x_) % 32, x_));
  EXPECT_TRUE(equal((y_ * 32 + x_) / 4 * 4 + (y_ * 32 + x_) % 4, x_ + 32 * y_));
  EXPECT_TRUE(equal((x_ % 8) / 4 * 4 + x_ % 4 + x_ / 8 * 8, x_));
  EXPECT_TRUE(equal(z_ / 6 / 4, z_ / 24));
  EXPECT_TRUE(equal((z_ / 6) % 4 * 6 + z_ % 6, z_ % 24));
  EXPECT_TRUE(equal((2 * z_ + 5) / 2, z_ + 2));
  EXPECT_TRUE(equal(Halide::min(x_, 31), x_));
  EXPECT_TRUE(equal(Halide::max(y_ - 6, 0), 0));
  EXPECT_TRUE(equal(unknown_ * 3 - unknown_, 2 * unknown_));
  EXPECT_TRUE(equal((x_ - unknown_ / 7) + unknown_ / 7, x_));
}

TEST_F(Indices, DifferentOnesNeverAre) {
  EXPECT_FALSE(zero(x_));
  EXPECT_FALSE(equal((y_ * 31 + x_) / 31, y_));
  EXPECT_FALSE(equal(unknown_ / 32 * 32, unknown_));
  EXPECT_FALSE(equal(x_ % 31, x_));
  EXPECT_FALSE(equal(Halide::min(x_, 30), x_));
  // Zero at all but one of a thousand positions, which sampling would miss.
  EXPECT_FALSE(zero(Halide::select(z_ == 637, 1, 0)));
  EXPECT_FALSE(zero(z_ / 999 * (999 - z_ % 999)));
}

// A random index over the variables, with the divisions that occur in layouts.
H random_index(std::mt19937& random, const std::vector<H>& variables, int depth) {
  if (depth == 0 || random() % 4 == 0) return variables[random() % variables.size()];
  const H a = random_index(random, variables, depth - 1);
  const int k = 2 + static_cast<int>(random() % 7);
  switch (random() % 6) {
    case 0:
      return a / k;
    case 1:
      return a % k;
    case 2:
      return a * k;
    case 3:
      return a + static_cast<int>(random() % 9) - 4;
    case 4:
      return a - random_index(random, variables, depth - 1);
    default:
      return a + random_index(random, variables, depth - 1);
  }
}

int64_t value(const H& e, int64_t x, int64_t y) {
  const std::map<std::string, H> at = {{"x", H(static_cast<int>(x))}, {"y", H(static_cast<int>(y))}};
  return *Halide::Internal::as_const_int(Halide::Internal::simplify(Halide::Internal::substitute(at, e)));
}

// Compares every answer "zero" with all values. Sums that are split and recombined must be recognised as equal.
TEST_F(Indices, AnswersHoldEverywhere) {
  std::mt19937 random(7);
  const std::map<std::string, int64_t> extents = {{"x", 9}, {"y", 5}};
  int equal = 0;
  for (int round = 0; round < 600; ++round) {
    const int p = static_cast<int>(random() % 12), q = static_cast<int>(random() % 12),
              c = static_cast<int>(random() % 9);
    const H a = x_ * p + y_ * q + c, k = 2 + static_cast<int>(random() % 7), n = 2 + static_cast<int>(random() % 3);
    const H again = (a / (k * n)) * (k * n) + (a / k) % n * k + a % k;
    ASSERT_TRUE(is_always_zero(a - again, extents)) << a << " and " << again;
    const H other = random_index(random, {x_, y_}, 3) - (round % 2 == 0 ? random_index(random, {x_, y_}, 3) : x_ % 7);
    if (!is_always_zero(other, extents)) continue;
    ++equal;
    for (int64_t x = 0; x < 9; ++x) {
      for (int64_t y = 0; y < 5; ++y) ASSERT_EQ(value(other, x, y), 0) << other << " at " << x << ", " << y;
    }
  }
  EXPECT_GT(equal, 10);
}

}  // namespace index_form_test
}  // namespace hoist::emission
