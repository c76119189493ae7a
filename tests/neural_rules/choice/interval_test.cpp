// Compares intervals with independent values (exact fractions or forty digits), also for cases without certainty.
#include "neural_rules/choice/solver/interval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "ir/base/special_values.h"
#include "tests/support/prediction_quality.h"

namespace hoist::interval_test {

TEST(Interval, WilsonOfSharesInside) {
  // The interval of 7600 of 10,000 has a half-width of about 0.8 percentage points.
  const Interval found = wilson(7600, 10000);
  EXPECT_DOUBLE_EQ(found.value, 0.76);
  EXPECT_NEAR(found.low, 0.7515304967, 1e-9);
  EXPECT_NEAR(found.high, 0.7682698241, 1e-9);
  // 81 of 263: Newcombe 1998, table I.
  EXPECT_NEAR(wilson(81, 263).low, 0.2553, 5e-5);
  EXPECT_NEAR(wilson(81, 263).high, 0.3662, 5e-5);
}

TEST(Interval, WilsonAtTheEnds) {
  EXPECT_EQ(wilson(0, 20).low, 0);
  EXPECT_NEAR(wilson(0, 20).high, 0.1611, 5e-5);  // the same table
  EXPECT_EQ(wilson(20, 20).high, 1);
  EXPECT_NEAR(wilson(20, 20).low, 1 - 0.1611, 5e-5);
  EXPECT_TRUE(std::isnan(wilson(0, 0).value));
  EXPECT_EQ(wilson(0, 0).low, 0);
  EXPECT_EQ(wilson(0, 0).high, 1);
}

TEST(Interval, McNemarIsTheBinomialTail) {
  EXPECT_EQ(mcnemar_p_value(0, 0), 1);
  EXPECT_NEAR(mcnemar_p_value(1, 0), 1, 1e-12);
  EXPECT_NEAR(mcnemar_p_value(5, 0), 2.0 / 32, 1e-12);
  EXPECT_NEAR(mcnemar_p_value(2, 8), 2 * (1 + 10 + 45) / 1024.0, 1e-12);
  EXPECT_EQ(mcnemar_p_value(8, 2), mcnemar_p_value(2, 8));
  EXPECT_EQ(mcnemar_p_value(4, 4), 1);
  EXPECT_GT(mcnemar_p_value(500, 1500), 0);  // far beyond the range of factorials
  EXPECT_LT(mcnemar_p_value(500, 1500), 1e-100);
}

TEST(Interval, PairedDropOfNewcombesMethodTen) {
  // Computed from the formula with forty digits.
  const Interval found = paired_drop({.both_right = 900, .lost = 30, .gained = 10, .both_wrong = 60});
  EXPECT_DOUBLE_EQ(found.value, 0.02);
  EXPECT_NEAR(found.low, 0.007518938028, 1e-9);
  EXPECT_NEAR(found.high, 0.033248954034, 1e-9);
}

TEST(Interval, PairedDropWithoutDifference) {
  const Interval same = paired_drop({.both_right = 50, .lost = 0, .gained = 0, .both_wrong = 50});
  EXPECT_EQ(same.value, 0);
  EXPECT_LE(same.low, 0);
  EXPECT_GE(same.high, 0);
  EXPECT_NEAR(same.low, -same.high, 1e-12);
  const Interval all = paired_drop({.both_right = 20, .lost = 0, .gained = 0, .both_wrong = 0});
  EXPECT_EQ(all.value, 0);
  EXPECT_LT(all.low, 0);
  EXPECT_TRUE(std::isnan(paired_drop({}).value));
  EXPECT_EQ(paired_drop({}).high, 1);
}

TEST(Interval, PairedDropHoldsTheTruthAboutAsOftenAsItSays) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> unit(0, 1);
  constexpr double lost = 0.03, gained = 0.01, right = 0.85;
  int inside = 0;
  constexpr int trials = 2000;
  for (int trial = 0; trial < trials; ++trial) {
    PairedCounts counts;
    for (int i = 0; i < 400; ++i) {
      const double u = unit(random);
      ++(u < lost                    ? counts.lost
         : u < lost + gained         ? counts.gained
         : u < lost + gained + right ? counts.both_right
                                     : counts.both_wrong);
    }
    const Interval found = paired_drop(counts);
    inside += found.low <= lost - gained && lost - gained <= found.high ? 1 : 0;
  }
  EXPECT_GT(inside, trials * 0.93);
  EXPECT_LT(inside, trials * 0.98);
}

TEST(Interval, QuantilesAreLinearBetweenSamples) {
  EXPECT_EQ(quantile({3, 1, 2}, 0.5), 2);
  EXPECT_EQ(quantile({4, 1, 2, 3}, 0.25), 1.75);
  EXPECT_EQ(quantile({7}, 0.25), 7);
  EXPECT_EQ(quantile({1, 2}, 1), 2);
  EXPECT_TRUE(std::isnan(quantile({}, 0.5)));
  EXPECT_EQ(quantile({1, infinity, infinity}, 1), infinity);
}

TEST(Interval, TheQuantileIntervalIsMadeOfOrderStatistics) {
  std::vector<double> ten(10), hundred(100);
  std::iota(ten.begin(), ten.end(), 1);
  std::iota(hundred.begin(), hundred.end(), 1);
  // The textbook interval for the median of ten samples is from the 2nd to the 9th (97.9 %).
  EXPECT_EQ(summarise_times(ten).median.low, 2);
  EXPECT_EQ(summarise_times(ten).median.high, 9);
  // For a hundred samples it is from the 40th to the 61st.
  EXPECT_EQ(summarise_times(hundred).median.low, 40);
  EXPECT_EQ(summarise_times(hundred).median.high, 61);
}

TEST(Interval, FewSamplesHaveNoLimit) {
  const auto of = [](int count) {
    return summarise_times(std::vector<double>(static_cast<size_t>(count), 5)).lower_quartile;
  };
  EXPECT_EQ(of(12).low, 0);
  EXPECT_EQ(of(13).low, 5);
  EXPECT_EQ(of(2).high, infinity);
  EXPECT_EQ(of(3).high, 5);
}

TEST(Interval, TheLowerQuartilesIntervalHoldsIt) {
  std::mt19937_64 random(2);
  std::exponential_distribution<double> times(1);
  int inside = 0;
  constexpr int trials = 2000;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<double> samples(60);
    for (double& sample : samples) sample = times(random);
    const Interval found = summarise_times(samples).lower_quartile;
    inside += found.low <= -std::log(0.75) && -std::log(0.75) <= found.high ? 1 : 0;
  }
  EXPECT_GE(inside, trials * 0.945);
  EXPECT_LT(inside, trials * 0.99);
}

TEST(Interval, TimesAreSummarised) {
  const TimeSummary found = summarise_times({4, 1, 3, 2, 5});
  EXPECT_EQ(found.count, 5);
  EXPECT_EQ(found.minimum, 1);
  EXPECT_EQ(found.lower_quartile.value, 2);
  EXPECT_EQ(found.median.value, 3);
  EXPECT_EQ(found.upper_quartile, 4);
  EXPECT_TRUE(std::isnan(summarise_times({}).minimum));
}

TEST(Interval, PredictionsAreJudgedByTheirRatio) {
  const PredictionQuality found = prediction_quality({{1, 2}, {1, 0.5}, {2, 2.2}, {1, 3}, {0, 0}});
  EXPECT_EQ(found.pairs, 5);
  EXPECT_DOUBLE_EQ(found.median_ratio, 1.1);
  EXPECT_DOUBLE_EQ(found.share_within_two, 0.8);
  EXPECT_EQ(prediction_quality({{0, 1}}).share_within_two, 0);
  EXPECT_EQ(prediction_quality({{NAN, 1}, {1, NAN}}).share_within_two, 0);
  EXPECT_EQ(prediction_quality({{1, NAN}}).median_ratio, infinity);
  EXPECT_TRUE(std::isnan(prediction_quality({}).median_ratio));
}

TEST(Times, HaveThreeDigits) {
  EXPECT_EQ(time_text(4.3211e-7), "0.432 us");
  EXPECT_EQ(time_text(6.4e-5), "64 us");
  EXPECT_EQ(time_text(1.2345e-2), "12.3 ms");
  EXPECT_EQ(time_text(2.5), "2.5 s");
}

}  // namespace hoist::interval_test
