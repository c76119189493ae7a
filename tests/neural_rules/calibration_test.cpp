// Tests calibration: statistics do not depend on the order or the batches, each choice of a range is compared with
// brute force, and unusable data are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "neural_rules/formats/formats.h"
#include "neural_rules/neural_rules.h"
#include "tests/neural_rules/calibrated_model.h"

namespace hoist::calibration_test {

using testing::HasSubstr;

Program one_product() {
  ModelBuilder b(1);
  b.input("x", {1, 6, 7, 7});
  b.layer("Conv", "y", {"x", b.constant("w", {4, 6, 3, 3}, 1)}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  return b.finish({"y"});
}

Result<Statistics> statistics_of(const std::vector<Tensor>& tensors, int64_t most_windows = most_sample_windows) {
  const Program program = one_product();
  Calibrator calibrator(program);
  calibrator.collect_second_moments(program, "y", most_windows);
  for (const Tensor& tensor : tensors) HOIST_TRY_VOID(calibrator.observe_min_max("x", tensor));
  for (const Tensor& tensor : tensors) HOIST_TRY_VOID(calibrator.observe("x", tensor));
  return calibrator.finish();
}

// Joins samples of one tensor each into batches.
std::vector<Tensor> batched(const std::vector<Tensor>& samples, size_t batch) {
  std::vector<Tensor> out;
  for (size_t at = 0; at < samples.size(); at += batch) {
    const size_t size = std::min(batch, samples.size() - at);
    std::vector<std::byte> bytes;
    for (size_t i = 0; i < size; ++i) {
      const auto& part = samples[at + i].bytes();
      bytes.insert(bytes.end(), part.begin(), part.end());
    }
    out.emplace_back(Scalar::f32, std::vector<int64_t>{static_cast<int64_t>(size), 6, 7, 7}, std::move(bytes));
  }
  return out;
}

void expect_same(const ValueStatistics& a, const ValueStatistics& b) {
  EXPECT_EQ(a.count, b.count);
  EXPECT_EQ(a.zeros, b.zeros);
  EXPECT_EQ(a.low, b.low);
  EXPECT_EQ(a.high, b.high);
  EXPECT_EQ(a.mean, b.mean);
  EXPECT_EQ(a.mean_square, b.mean_square);
  EXPECT_EQ(a.histogram, b.histogram);
  EXPECT_EQ(a.block_noise, b.block_noise);
  ASSERT_EQ(a.channels.size(), b.channels.size());
  for (size_t c = 0; c < a.channels.size(); ++c) {
    EXPECT_EQ(a.channels[c].low, b.channels[c].low);
    EXPECT_EQ(a.channels[c].high, b.channels[c].high);
    EXPECT_EQ(a.channels[c].mean, b.channels[c].mean);
    EXPECT_EQ(a.channels[c].mean_square, b.channels[c].mean_square);
  }
  EXPECT_EQ(a.second_moments.at("y")->products, b.second_moments.at("y")->products);
  EXPECT_EQ(a.second_moments.at("y")->means, b.second_moments.at("y")->means);
}

TEST(Calibration, DependsOnNeitherOrderNorBatches) {
  std::vector<Tensor> samples;
  for (uint64_t i = 0; i < 12; ++i)
    samples.push_back(normal_tensor({1, 6, 7, 7}, std::pow(3.0, static_cast<double>(i % 5)), 0.1, 40 + i));
  const ValueStatistics reference = statistics_of(samples)->at("x");
  for (size_t batch : {2, 5, 12}) expect_same(statistics_of(batched(samples, batch))->at("x"), reference);
  std::mt19937_64 random(4);
  for (int i = 0; i < 4; ++i) {
    std::shuffle(samples.begin(), samples.end(), random);
    expect_same(statistics_of(samples)->at("x"), reference);
  }
}

TEST(Calibration, MomentsAreThoseOfTheData) {
  const Tensor x = normal_tensor({2, 6, 7, 7}, 2, 0.5, 3);
  const ValueStatistics s = statistics_of({x})->at("x");
  double sum = 0, squares = 0, channel = 0;
  for (int64_t i = 0; i < x.size(); ++i) {
    sum += x.float_at(i);
    squares += x.float_at(i) * x.float_at(i);
    if (i / 49 % 6 == 2) channel += x.float_at(i);
  }
  EXPECT_NEAR(s.mean, sum / static_cast<double>(x.size()), 1e-12);
  EXPECT_NEAR(s.mean_square, squares / static_cast<double>(x.size()), 1e-12);
  EXPECT_NEAR(s.channels[2].mean, channel / 98, 1e-12);
  EXPECT_EQ(std::accumulate(s.histogram.begin(), s.histogram.end(), uint64_t{0}), static_cast<uint64_t>(x.size()));
}

TEST(Calibration, NoiseOfBlocksIsThatOfTheData) {
  const Tensor x = normal_tensor({2, 6, 7, 7}, 2, 0.5, 3);
  double squares = 0;
  for (int64_t i = 0; i < x.size(); ++i) {
    double largest = 0;
    for (int64_t c = 0; c < 6; ++c) largest = std::max(largest, std::abs(x.float_at(i / 294 * 294 + c * 49 + i % 49)));
    const double step = std::exp2(std::floor(std::log2(largest)) - 6);
    squares += std::pow(std::min(std::nearbyint(x.float_at(i) / step), 127.0) * step - x.float_at(i), 2);
  }
  EXPECT_NEAR(statistics_of({x})->at("x").block_noise, squares / static_cast<double>(x.size()), 1e-12);
}

TEST(Calibration, SecondMomentsAreThoseOfTheWindows) {
  const Tensor x = normal_tensor({1, 6, 7, 7}, 1, 0.5, 3);
  const auto statistics = statistics_of({x});
  const SecondMoments& moments = *statistics->at("x").second_moments.at("y");
  ASSERT_EQ(moments.terms, 54);
  ASSERT_EQ(moments.count, 49);
  // The centre of the window over channel 1, and the element on its left over channel 4: column 0 has none on the left.
  double expected = 0;
  for (int64_t row = 0; row < 7; ++row) {
    for (int64_t column = 1; column < 7; ++column)
      expected += x.float_at(49 + row * 7 + column) * x.float_at(4 * 49 + row * 7 + column - 1) / 49;
  }
  EXPECT_NEAR(moments.products[(9 + 4) * 54 + 36 + 3], expected, 1e-3);
  EXPECT_EQ(moments.products[(9 + 4) * 54 + 36 + 3], moments.products[(36 + 3) * 54 + 9 + 4]);
}

TEST(Calibration, FewerWindowsAreSpreadOverEachSample) {
  std::vector<Tensor> samples;
  for (uint64_t i = 0; i < 4; ++i) samples.push_back(normal_tensor({1, 6, 7, 7}, 1, 0.1, 40 + i));
  const ValueStatistics one_by_one = statistics_of(samples, 10)->at("x");
  const SecondMoments& moments = *one_by_one.second_moments.at("y");
  EXPECT_EQ(moments.count, 4 * 10);  // every fifth of 49
  EXPECT_NE(moments.products, statistics_of(samples)->at("x").second_moments.at("y")->products);
  expect_same(statistics_of(batched(samples, 4), 10)->at("x"), one_by_one);
}

std::string error_of(const std::vector<Tensor>& tensors) {
  auto result = statistics_of(tensors);
  return result.ok() ? "" : result.errors()[0].text();
}

TEST(Calibration, DataThatSayNothingAreRefused) {
  Tensor bad = normal_tensor({1, 6, 7, 7}, 1, 0, 3);
  bad.set_float(17, NAN);
  EXPECT_THAT(error_of({bad}), HasSubstr("x: element 17 of the calibration data is nan"));
  bad.set_float(17, std::numeric_limits<double>::infinity());
  EXPECT_THAT(error_of({bad}), HasSubstr("is inf"));
  EXPECT_THAT(error_of({Tensor(Scalar::f32, {1, 6, 7, 7})}), HasSubstr("zero everywhere"));
  EXPECT_THAT(error_of({}), HasSubstr("no elements"));
}

TEST(Calibration, ValuesWithChannelsThatDataCountHaveNone) {
  Calibrator calibrator(one_product());
  const std::vector<Tensor> runs = {normal_tensor({1, 6, 7, 7}, 1, 0, 1), normal_tensor({1, 5, 7, 7}, 1, 0, 2),
                                    normal_tensor({1, 6, 7, 7}, 1, 0, 3)};
  for (const Tensor& run : runs) ASSERT_TRUE(calibrator.observe_min_max("y", run).ok());
  for (const Tensor& run : runs) ASSERT_TRUE(calibrator.observe("y", run).ok());
  const auto statistics = calibrator.finish();
  ASSERT_TRUE(statistics.ok()) << statistics.errors()[0].text();
  const ValueStatistics& found = statistics->at("y");
  EXPECT_EQ(found.count, 17 * 49);
  EXPECT_TRUE(found.channels.empty());
  EXPECT_NEAR(found.mean_square, 1, 0.2);
}

TEST(Calibration, BothPassesNeedTheSameData) {
  Calibrator calibrator(one_product());
  ASSERT_TRUE(calibrator.observe_min_max("x", normal_tensor({1, 6, 7, 7}, 1, 0, 1)).ok());
  auto wider = calibrator.observe("x", normal_tensor({1, 6, 7, 7}, 9, 0, 1));
  ASSERT_FALSE(wider.ok());
  EXPECT_THAT(wider.errors()[0].text(), HasSubstr("both passes need the same data"));
  auto missing = calibrator.finish();
  ASSERT_FALSE(missing.ok());
}

// ---- Ranges --------------------------------------------------------------------------------------------------------

struct Data {
  const char* name;
  Tensor numbers;
};

std::vector<Data> kinds_of_data() {
  std::mt19937_64 random(8);
  std::normal_distribution<double> normal;
  std::vector<double> gauss, laplace, positive, outliers;
  for (int i = 0; i < 5 * 6 * 49; ++i) {
    gauss.push_back(normal(random) + 0.3);
    const double u = std::uniform_real_distribution<double>(-0.5, 0.5)(random);
    laplace.push_back((u < 0 ? 1 : -1) * std::log(1 - 2 * std::abs(u)));
    positive.push_back(std::max(normal(random), 0.0));
    outliers.push_back(normal(random) * (i % 700 == 0 ? 25 : 1));
  }
  auto tensor = [](const std::vector<double>& v) { return Tensor::of(Scalar::f32, {5, 6, 7, 7}, v); };
  return {{"gauss", tensor(gauss)},
          {"laplace", tensor(laplace)},
          {"positive", tensor(positive)},
          {"outliers", tensor(outliers)}};
}

double error_on(const Tensor& numbers, const Range& range, int64_t steps) {
  const double step = (range.high - range.low) / static_cast<double>(steps);
  const double zero = std::nearbyint(-range.low / step);
  double sum = 0;
  for (int64_t i = 0; i < numbers.size(); ++i) {
    const double x = numbers.float_at(i);
    const double n = std::clamp(std::nearbyint(x / step) + zero, 0.0, static_cast<double>(steps));
    sum += std::pow((n - zero) * step - x, 2);
  }
  return sum / static_cast<double>(numbers.size());
}

TEST(Range, OfTheExtremesHoldsEverythingAndZero) {
  for (const Data& data : kinds_of_data()) {
    const ValueStatistics s = statistics_of({data.numbers})->at("x");
    const Range range = choose_range(s, RangeChoice::min_max, false, 255);
    EXPECT_EQ(range.low, std::min(s.low, 0.0));
    EXPECT_EQ(range.high, std::max(s.high, 0.0));
    EXPECT_EQ(clipped_share(s, range), 0);
  }
  ValueStatistics above;
  above.low = 2;
  above.high = 3;
  EXPECT_EQ(choose_range(above, RangeChoice::min_max, false, 255).low, 0);
  EXPECT_EQ(choose_range(above, RangeChoice::min_max, true, 254).low, -3);
}

TEST(Range, OfPercentilesIsThatOfTheSortedData) {
  for (const Data& data : kinds_of_data()) {
    SCOPED_TRACE(data.name);
    const ValueStatistics s = statistics_of({data.numbers})->at("x");
    std::vector<double> sorted;
    for (int64_t i = 0; i < data.numbers.size(); ++i) sorted.push_back(data.numbers.float_at(i));
    std::sort(sorted.begin(), sorted.end());
    const double bin = (s.high - s.low) / histogram_bins;
    const double outside = (1 - kept_share) * static_cast<double>(sorted.size());
    const auto rank = static_cast<size_t>(std::ceil(outside)) - 1;
    const Range range = choose_range(s, RangeChoice::percentile, false, 255);
    EXPECT_NEAR(range.low, std::min(sorted[rank], 0.0), bin * 1.001);
    EXPECT_GE(range.high + bin * 1.001, sorted[sorted.size() - 1 - rank - 1]);
    EXPECT_LE(range.high, s.high);
    EXPECT_LE(clipped_share(s, range), 2.0 * (1 - kept_share) + 2.0 / static_cast<double>(sorted.size()));
  }
}

TEST(Range, OfLeastSquaredErrorIsAsGoodAsBruteForceOverTheData) {
  for (int64_t steps : {15, 255}) {
    for (const Data& data : kinds_of_data()) {
      SCOPED_TRACE(data.name);
      const ValueStatistics s = statistics_of({data.numbers})->at("x");
      double best = INFINITY;
      for (int i = 1; i <= 40; ++i) {
        for (int j = 1; j <= 40; ++j) {
          if (s.low >= 0 && j > 1) break;
          best = std::min(best, error_on(data.numbers, {std::min(s.low, 0.0) * j / 40, s.high * i / 40}, steps));
        }
      }
      const Range range = choose_range(s, RangeChoice::squared_error, false, steps);
      EXPECT_LT(error_on(data.numbers, range, steps), 1.1 * best);
      EXPECT_NEAR(squared_error(s, range, steps), error_on(data.numbers, range, steps), 0.1 * best);
    }
  }
}

TEST(Range, ClippedShareIsThatOfTheData) {
  const Data data = kinds_of_data()[0];
  const ValueStatistics s = statistics_of({data.numbers})->at("x");
  const Range range{-0.7, 1.9};
  double outside = 0;
  for (int64_t i = 0; i < data.numbers.size(); ++i) {
    const double x = data.numbers.float_at(i);
    outside += x < range.low || x > range.high ? 1 : 0;
  }
  EXPECT_NEAR(clipped_share(s, range), outside / static_cast<double>(data.numbers.size()), 2e-3);
}

TEST(Formats, ZeroStaysZeroAndNumbersInsideMoveByHalfAStep) {
  const ValueStatistics s = statistics_of({normal_tensor({5, 6, 7, 7}, 1.7, 0.4, 11)})->at("x");
  for (const NeuralRule& rule : neural_rules()) {
    if (!rule.stored || rule.stored->block != 0) continue;
    SCOPED_TRACE(rule.name);
    const ValueFormat& format = *rule.stored;
    const Grid grid = grid_of(format, s);
    EXPECT_EQ(rounded(grid, 0), 0);
    if (is_float(format.scalar)) continue;
    const Range range = range_of(grid);
    for (int i = 0; i <= 100; ++i) {
      const double x = range.low + (range.high - range.low) * i / 100;
      EXPECT_LE(std::abs(rounded(grid, x) - x), 0.5001 * grid.scale);
    }
  }
}

TEST(Formats, LevelsAreTheNumbersThatValuesBecome) {
  const ValueStatistics s = statistics_of({normal_tensor({5, 6, 7, 7}, 1.7, 0.4, 11)})->at("x");
  for (const NeuralRule& rule : neural_rules()) {
    if (!rule.stored || rule.stored->block != 0) continue;
    SCOPED_TRACE(rule.name);
    const Grid grid = grid_of(*rule.stored, s);
    const std::vector<double> levels = levels_of(grid, s);
    ASSERT_GT(levels.size(), 2u);
    EXPECT_EQ(levels.front(), rounded(grid, s.low));
    EXPECT_EQ(levels.back(), rounded(grid, s.high));
    for (size_t i = 0; i < levels.size(); ++i) {
      EXPECT_EQ(rounded(grid, levels[i]), levels[i]);
      if (i > 0) {
        EXPECT_LT(levels[i - 1], levels[i]);
      }
    }
    if (byte_size(rule.stored->scalar, {}) > 1) continue;
    // At most 256 levels, all of them found, so that adjacent ones meet halfway.
    EXPECT_LE(levels.size(), 256u);
    for (size_t i = 1; i < levels.size(); ++i) {
      const double middle = (levels[i - 1] + levels[i]) / 2, near = 1e-6 * (levels[i] - levels[i - 1]);
      if (levels[i] - levels[i - 1] < 3 * (s.high - s.low) / histogram_bins)
        continue;  // there may be levels in between
      EXPECT_EQ(rounded(grid, middle - near), levels[i - 1]);
      EXPECT_EQ(rounded(grid, middle + near), levels[i]);
    }
  }
}

}  // namespace hoist::calibration_test
