#include "lowering/sizes/size_fit.h"

#include <gtest/gtest.h>

#include "lowering/sizes/open_model.h"

namespace hoist::size_fit_test {

const Nat n = Nat::name("n");

std::vector<int64_t> at(const Nat& size, const std::vector<int64_t>& probes) {
  std::vector<int64_t> out;
  for (const int64_t probe : probes) out.push_back(size.substitute({{"n", probe}}).value());
  return out;
}

TEST(SizeFit, FindsTheFormsOfLoweredTerms) {
  const std::vector<int64_t> probes = probed_sizes(1, 512);
  SizeFit fit("n", probes);
  const std::vector<Nat> sizes = {7,
                                  n,
                                  n * 12,
                                  n * 3 - 5,
                                  n * n,
                                  n * n * 4 + n,
                                  ceiling_division(n, 6),
                                  ceiling_division(n, 6) * 6 - n,
                                  ceiling_division(n, 13),
                                  ceiling_division(n, 64) * 64,
                                  ceiling_division(n, 32) * 32 - n,
                                  n - floor_division(n, 16) * 16,
                                  floor_division(n, 8) * 8};
  for (const Nat& size : sizes) {
    const auto found = fit.of(at(size, probes));
    ASSERT_TRUE(found) << size.text();
    for (int64_t value = 1; value <= 512; ++value)
      EXPECT_EQ(at(*found, {value}), at(size, {value})) << size.text() << " at " << value;
  }
}

TEST(SizeFit, RefusesOtherNumbers) {
  const std::vector<int64_t> probes = probed_sizes(1, 512);
  SizeFit fit("n", probes);
  std::vector<int64_t> cubes;
  for (const int64_t probe : probes) cubes.push_back(probe * probe * probe);
  EXPECT_FALSE(fit.of(cubes));
  EXPECT_FALSE(fit.of({1, 2, 1, 2, 2, 1}));
}

TEST(SizeFit, ProbesAreInTheRangeAndDivideIntoNoTiles) {
  for (const auto& [least, most] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 64}, {1, 512}, {16, 128}, {100, 100000}}) {
    const std::vector<int64_t> probes = probed_sizes(least, most);
    ASSERT_GE(probes.size(), 4U) << least << " to " << most;
    for (const int64_t probe : probes) {
      EXPECT_GE(probe, least);
      EXPECT_LE(probe, most);
      for (const int64_t k : {2, 3, 5, 7, 11, 13, 16}) EXPECT_NE(probe % k, 0);
    }
  }
  EXPECT_TRUE(probed_sizes(1, 16).empty());
  EXPECT_TRUE(probed_sizes(24, 28).empty());
}

}  // namespace hoist::size_fit_test
