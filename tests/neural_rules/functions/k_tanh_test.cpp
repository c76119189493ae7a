// Tests K-TanH on every bf16 value, against the table in its paper and against the limits of the format.
#include "neural_rules/functions/k_tanh.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/evaluate/evaluate.h"
#include "ir/text/text.h"

namespace hoist::k_tanh_test {

double tanh_in_double(double x) { return std::tanh(x); }

Tensor every_number(Scalar format) {
  Tensor x(format, {1 << 16});
  for (int i = 0; i < 1 << 16; ++i) {
    x.data()[2 * i] = static_cast<std::byte>(i & 0xff);
    x.data()[2 * i + 1] = static_cast<std::byte>(i >> 8);
  }
  return x;
}

// The formula of a table on every value of its format, ordered by bits.
Tensor computed(const MantissaTable& table) {
  auto term =
      parse("map (\\x. " + formula_of(table, "x") + ") (%x : [65536]" + std::string(row(table.format).name) + ")");
  HOIST_CHECK(term.ok(), term.errors()[0].text());
  auto y = evaluate(*term, {{"x", every_number(table.format)}});
  HOIST_CHECK(y.ok(), y.errors()[0].text());
  return *y;
}

struct Quality {
  double largest = 0, root_mean_square = 0;
  int falls = 0;  // adjacent inputs whose results are not in order
};

// Over the values in [-6, 6]; the mean square weighs each by its gap, like a uniformly drawn x.
Quality quality_of(const Tensor& y, Scalar format) {
  Quality q;
  double squares = 0, weights = 0, before = 0;
  for (int64_t bits = 0; bits < 1 << 15; ++bits) {
    const double x = float_from_bits(format, static_cast<uint64_t>(bits));
    if (!(x <= 6)) break;
    const double result = y.float_at(bits), error = std::fabs(result - std::tanh(x));
    EXPECT_EQ(y.float_at(bits + (1 << 15)), -result) << "odd at " << x;
    const double gap = float_from_bits(format, static_cast<uint64_t>(bits + 1)) - x;
    q.largest = std::max(q.largest, error);
    squares += gap * error * error;
    weights += gap;
    q.falls += result < before ? 1 : 0;
    before = result;
  }
  q.root_mean_square = std::sqrt(squares / weights);
  return q;
}

// Exponent, shift and mantissa offset from the paper's table, by entry.
MantissaTable published() {
  const int rows[32][3] = {{126, 2, 119}, {126, 4, 122}, {126, 4, 123}, {126, 4, 123}, {126, 6, 126}, {126, 6, 126},
                           {126, 6, 126}, {126, 6, 126}, {125, 1, 1},   {125, 0, -4},  {125, 0, -6},  {125, 0, -7},
                           {125, 0, -10}, {125, 0, -12}, {125, 0, -15}, {125, 0, -18}, {125, 0, 112}, {126, 1, -4},
                           {126, 1, -1},  {126, 1, 2},   {126, 1, 3},   {126, 1, 4},   {126, 1, 4},   {126, 1, 4},
                           {126, 0, 65},  {126, 1, 72},  {126, 1, 73},  {126, 1, 73},  {126, 2, 88},  {126, 2, 89},
                           {126, 2, 89},  {126, 4, 110}};
  MantissaTable table;
  for (const auto& [exponent, shift, offset] : rows) table.entries.push_back({shift, (exponent << 7) + offset});
  return table;
}

TEST(KTanh, IsNoWorseThanThePublishedTable) {
  const Tensor ours = computed(search_mantissa_table(tanh_in_double, Scalar::bf16)), theirs = computed(published());
  const Quality found = quality_of(ours, Scalar::bf16), paper = quality_of(theirs, Scalar::bf16);
  RecordProperty("found", "largest " + std::to_string(found.largest) + ", rms " +
                              std::to_string(found.root_mean_square) + ", falls " + std::to_string(found.falls));
  RecordProperty("published", "largest " + std::to_string(paper.largest) + ", rms " +
                                  std::to_string(paper.root_mean_square) + ", falls " + std::to_string(paper.falls));
  EXPECT_LE(found.largest, 8.93e-3);
  EXPECT_LT(found.root_mean_square, paper.root_mean_square);
  EXPECT_LT(found.root_mean_square, 1.94e-3);
  EXPECT_LE(found.falls, 8);
  EXPECT_NEAR(paper.largest, 8.93e-3, 1e-4);
}

TEST(KTanh, KeepsSpecialValues) {
  for (Scalar format : {Scalar::bf16, Scalar::f16}) {
    const Tensor y = computed(search_mantissa_table(tanh_in_double, format));
    for (int64_t bits = 0; bits < 1 << 16; ++bits) {
      const double x = float_from_bits(format, static_cast<uint64_t>(bits)), result = y.float_at(bits);
      if (std::isnan(x)) {
        EXPECT_TRUE(std::isnan(result));
      } else if (std::fabs(x) >= 4) {
        EXPECT_EQ(result, x > 0 ? 1 : -1);
      } else if (std::fabs(x) < 0.25) {
        EXPECT_EQ(result, x);
        EXPECT_EQ(std::signbit(result), std::signbit(x));
      } else {
        EXPECT_LE(std::fabs(result), 1);
        EXPECT_NEAR(result, std::tanh(x), 9e-3);
      }
      if (HasFailure()) break;
    }
  }
}

// No other entry is better: some are tried on the inputs that use them.
TEST(KTanh, EntriesAreTheBestOfTheirInterval) {
  const MantissaTable table = search_mantissa_table(tanh_in_double, Scalar::bf16);
  auto squares = [&](const MantissaTable::Entry& e, int first, double& largest) {
    double sum = 0;
    largest = 0;
    for (int bits = first; bits < first + 16; ++bits) {
      const double x = float_from_bits(Scalar::bf16, static_cast<uint64_t>(bits));
      const double y = float_from_bits(Scalar::bf16, static_cast<uint64_t>(e.offset + ((bits & 127) >> e.shift)));
      largest = std::max(largest, std::fabs(y - std::tanh(x)));
      sum += (y - std::tanh(x)) * (y - std::tanh(x));
    }
    return sum;
  };
  for (int first = 125 << 7; first < 129 << 7; first += 16) {
    const MantissaTable::Entry& chosen = table.entries[static_cast<size_t>(first >> 4 & 31)];
    double largest = 0, other_largest = 0;
    const double sum = squares(chosen, first, largest);
    EXPECT_LE(largest, table.error);
    for (int shift = 0; shift <= 7; ++shift) {
      for (int offset = (124 << 7); offset <= 127 << 7; ++offset) {
        const double other = squares({shift, offset}, first, other_largest);
        EXPECT_TRUE(other_largest > table.error || other >= sum) << first;
      }
    }
  }
}

}  // namespace hoist::k_tanh_test
