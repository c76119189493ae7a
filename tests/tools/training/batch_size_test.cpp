// The noise scale of a gradient from norms of batches, and the batch with the least time to the same loss.
#include "tools/training/batch_size.h"

#include <gmock/gmock.h>

#include <cmath>

#include "ir/base/seeded.h"

namespace hoist::batch_size_test {

// Batches of gradients mean + noise in `dimensions` dimensions: the scale is dimensions * deviation^2 / |mean|^2.
std::vector<MeasuredBatch> measured_with(double deviation, int64_t dimensions) {
  uint64_t state = 5;
  const auto uniform = [&] { return static_cast<double>(next_random(state) >> 11) / 0x1p53; };
  std::vector<MeasuredBatch> out;
  for (const int64_t batch : {8, 32, 128}) {
    MeasuredBatch one{batch, 1, 0};
    for (int run = 0; run < 200; ++run) {
      for (int64_t d = 0; d < dimensions; ++d) {
        // A mean of 12 uniform numbers is nearly normal, with a variance of 1 / 144.
        double sum = -6;
        for (int i = 0; i < 12; ++i) sum += uniform();
        const double g = 0.5 + deviation * sum / std::sqrt(static_cast<double>(batch));
        one.squares += g * g / 200;
      }
    }
    out.push_back(one);
  }
  return out;
}

TEST(BatchSize, FindsTheNoiseScale) {
  EXPECT_NEAR(noise_scale(measured_with(2, 10)), 4 / 0.25, 2);
  EXPECT_NEAR(noise_scale(measured_with(8, 10)), 64 / 0.25, 60);
  EXPECT_EQ(noise_scale({{8, 1, 3}, {32, 1, 3}}), 0);
  EXPECT_TRUE(std::isinf(noise_scale({{8, 1, 4}, {32, 1, 1}})));
}

TEST(BatchSize, TakesTheLeastTime) {
  // Squares of 1 + 100 / batch: a noise scale of 100.
  const auto at = [](int64_t batch, double seconds) {
    return MeasuredBatch{batch, seconds, 1 + 100 / static_cast<double>(batch)};
  };
  // A step whose time grows with the batch: noise is as cheap to average by more steps.
  EXPECT_EQ(choose_batch({at(8, 1), at(32, 4), at(128, 16)}).batch, 8);
  // A step whose time is constant.
  EXPECT_EQ(choose_batch({at(8, 1), at(32, 1), at(128, 1)}).batch, 128);
  const ChosenBatch between = choose_batch({at(8, 1), at(32, 1.2), at(128, 4)});
  EXPECT_EQ(between.batch, 32);
  EXPECT_NEAR(between.noise, 100, 1e-9);
  EXPECT_THAT(between.text(), testing::HasSubstr("batch 32: the gradient's noise scale is 100"));
  EXPECT_THAT(between.text(), testing::HasSubstr("1.00 with 32 (1.2e+03 ms a step)"));
  // If only noise is seen, the most samples in a second.
  EXPECT_EQ(choose_batch({{8, 1, 4}, {32, 3, 1}}).batch, 32);
}

}  // namespace hoist::batch_size_test
