// Compares metrics of an output with values computed by hand, for any content of outputs.
#include "neural_rules/choice/metric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ir/base/special_values.h"
#include "neural_rules/choice/outputs.h"

namespace hoist::metric_test {

using testing::HasSubstr;

Tensor floats(std::vector<int64_t> shape, const std::vector<double>& values) {
  return Tensor::of(Scalar::f32, std::move(shape), values);
}

// Compares as many samples as there are labels, or all samples of the runs without labels.
OutputMetrics compared(OutputKind kind, const std::vector<Tensor>& reference, const std::vector<Tensor>& changed,
                       int64_t samples_a_run = 1, const std::vector<int64_t>& labels = {}) {
  Samples samples;
  samples.samples_a_run = samples_a_run;
  samples.labels = labels;
  samples.count = static_cast<int64_t>(labels.empty() ? reference.size() : labels.size());
  if (labels.empty()) samples.count *= samples_a_run;
  RunOutputs was, is;
  for (size_t run = 0; run < reference.size(); ++run) {
    was.push_back({reference[run]});
    is.push_back({changed[run]});
  }
  const Result<OutputMetrics> found = compare_runs({{kind}}, samples, was, is);
  EXPECT_TRUE(found.ok()) << (found.ok() ? "" : found.errors()[0].text());
  return found.ok() ? *found : OutputMetrics{};
}

TEST(Metric, ErrorAndSignalOfValues) {
  const OutputMetrics found =
      compared(OutputKind::values, {floats({4}, {1, -2, 3, 0})}, {floats({4}, {1, -1, 3, 0.5})});
  EXPECT_DOUBLE_EQ(found.signal_power, 14.0 / 4);
  EXPECT_DOUBLE_EQ(found.mean_squared_error, 1.25 / 4);
  EXPECT_DOUBLE_EQ(found.sqnr, 10 * std::log10(14 / 1.25));
  EXPECT_EQ(found.largest_error, 1);
  EXPECT_EQ(found.low, -2);
  EXPECT_EQ(found.high, 3);
  EXPECT_DOUBLE_EQ(found.psnr, 10 * std::log10(25 / 0.3125));
  EXPECT_TRUE(std::isnan(found.agreement.value));
}

TEST(Metric, AConstantAddedToAllScoresIsNoError) {
  const std::vector<Tensor> reference = {floats({1, 3}, {1, 2, 6})}, changed = {floats({1, 3}, {11, 12, 16})};
  const OutputMetrics scores = compared(OutputKind::logits, reference, changed);
  EXPECT_NEAR(scores.mean_squared_error, 0, 1e-28);
  EXPECT_DOUBLE_EQ(scores.signal_power, (4.0 + 1 + 9) / 3);
  EXPECT_NEAR(scores.divergence, 0, 1e-15);
  EXPECT_EQ(scores.flips, 0);
  EXPECT_DOUBLE_EQ(compared(OutputKind::values, reference, changed).mean_squared_error, 100);
}

TEST(Metric, NothingChangedAndNoSignal) {
  const OutputMetrics same = compared(OutputKind::values, {floats({2}, {1, 2})}, {floats({2}, {1, 2})});
  EXPECT_EQ(same.sqnr, infinity);
  EXPECT_EQ(same.psnr, infinity);
  EXPECT_EQ(compared(OutputKind::values, {floats({2}, {0, 0})}, {floats({2}, {0, 1})}).sqnr, -infinity);
  EXPECT_EQ(compared(OutputKind::values, {floats({2}, {0, 0})}, {floats({2}, {0, 0})}).sqnr, infinity);
  // All scores are equal: the first class in both.
  EXPECT_EQ(compared(OutputKind::logits, {floats({3}, {2, 2, 2})}, {floats({3}, {1, 1, 1})}).flips, 0);
}

TEST(Metric, NoSamples) {
  const OutputMetrics found = compared(OutputKind::logits, {}, {});
  EXPECT_EQ(found.samples, 0);
  EXPECT_TRUE(std::isnan(found.mean_squared_error));
  EXPECT_TRUE(std::isnan(found.sqnr));
  EXPECT_TRUE(std::isnan(found.agreement.value));
  EXPECT_TRUE(std::isnan(found.drop.value));
  EXPECT_EQ(found.p_value, 1);
  EXPECT_EQ(found.worst_class, -1);
}

TEST(Metric, DivergenceOfSoftmax) {
  const double a = std::log(0.75), b = std::log(0.25);
  const OutputMetrics logits = compared(OutputKind::logits, {floats({2}, {a, b})}, {floats({2}, {0, 0})});
  const double expected = 0.75 * std::log(0.75 / 0.5) + 0.25 * std::log(0.25 / 0.5);
  EXPECT_NEAR(logits.divergence, expected, 1e-7);
  const OutputMetrics shares =
      compared(OutputKind::probabilities, {floats({2}, {0.75, 0.25})}, {floats({2}, {0.5, 0.5})});
  EXPECT_NEAR(shares.divergence, expected, 1e-12);
  // A probability that is rounded to 0 gives a finite divergence.
  EXPECT_LT(compared(OutputKind::probabilities, {floats({2}, {1, 0})}, {floats({2}, {0, 1})}).divergence, 100);
}

// Labels 0 0 1 1 2; the reference is right for 4 of them, the changed model for 3.
TEST(Metric, PairedCountsAndWorstClass) {
  const Tensor reference = floats({5, 3}, {9, 0, 0, 9, 0, 0, 0, 9, 0, 0, 9, 0, 9, 0, 0});
  const Tensor changed = floats({5, 3}, {9, 0, 0, 0, 9, 0, 0, 0, 9, 0, 9, 0, 0, 0, 9});
  const OutputMetrics found = compared(OutputKind::logits, {reference}, {changed}, 5, {0, 0, 1, 1, 2});
  EXPECT_EQ(found.paired, (PairedCounts{.both_right = 2, .lost = 2, .gained = 1, .both_wrong = 0}));
  EXPECT_EQ(found.flips, 3);
  EXPECT_DOUBLE_EQ(found.agreement.value, 0.4);
  EXPECT_DOUBLE_EQ(found.reference_top1.value, 0.8);
  EXPECT_DOUBLE_EQ(found.top1.value, 0.6);
  EXPECT_DOUBLE_EQ(found.drop.value, 0.2);
  EXPECT_EQ(found.p_value, 1);
  EXPECT_EQ(found.worst_class, 0);  // the first of two equal ones
  EXPECT_DOUBLE_EQ(found.worst_class_drop, 0.5);
  EXPECT_EQ(found.worst_class_samples, 2);
}

TEST(Metric, NotANumberIsWrongAndCounted) {
  const Tensor reference = floats({3, 2}, {1, 2, 1, 2, 1, 2});
  const Tensor changed = floats({3, 2}, {nan_value, 2, 1, infinity, 1, 2});
  const OutputMetrics found = compared(OutputKind::logits, {reference}, {changed}, 3, {1, 1, 1});
  EXPECT_EQ(found.not_finite, 2);
  EXPECT_EQ(found.reference_not_finite, 0);
  EXPECT_EQ(found.paired.lost, 1);
  EXPECT_EQ(found.flips, 1);  // an infinity is the highest score too
  EXPECT_EQ(found.sqnr, -infinity);
  EXPECT_EQ(found.mean_squared_error, infinity);
  EXPECT_EQ(found.divergence, infinity);
}

TEST(Metric, WhatTheReferenceHadAlreadyIsNoChange) {
  const std::vector<double> values = {nan_value, 2, infinity, 4};
  const OutputMetrics same = compared(OutputKind::values, {floats({4}, values)}, {floats({4}, values)});
  EXPECT_EQ(same.mean_squared_error, 0);
  EXPECT_EQ(same.sqnr, infinity);
  EXPECT_EQ(same.reference_not_finite, 1);
  EXPECT_DOUBLE_EQ(same.signal_power, 20.0 / 4);
  const OutputMetrics scores = compared(OutputKind::logits, {floats({4}, values)}, {floats({4}, values)}, 1, {0});
  EXPECT_EQ(scores.mean_squared_error, 0);
  EXPECT_EQ(scores.divergence, 0);
  EXPECT_EQ(scores.flips, 0);
  EXPECT_EQ(scores.paired.both_wrong, 1);  // no class is right
}

TEST(Metric, TopClassIsTheFirstOfEquals) {
  const Tensor scores = floats({6}, {5, 1, 3, 3, nan_value, 7});
  EXPECT_EQ(top_class(scores, 0, 2), 0);
  EXPECT_EQ(top_class(scores, 1, 3), 1);
  EXPECT_EQ(top_class(scores, 3, 3), -1);
  EXPECT_EQ(top_class(Tensor::of<int>(Scalar::u8, {3}, {200, 255, 3}), 0, 3), 1);
}

TEST(Metric, IntegersAreNumbers) {
  const OutputMetrics found = compared(OutputKind::values, {Tensor::of<int>(Scalar::i8, {2}, {-128, 127})},
                                       {Tensor::of<int>(Scalar::i8, {2}, {-127, 127})});
  EXPECT_DOUBLE_EQ(found.mean_squared_error, 0.5);
}

TEST(Metric, BatchesDoNotMatter) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  constexpr int64_t samples = 12, classes = 5;
  std::vector<double> reference(samples * classes), changed;
  std::vector<int64_t> labels;
  for (double& value : reference) {
    value = normal(random);
    changed.push_back(value + 0.3 * normal(random));
  }
  for (int64_t i = 0; i < samples; ++i) labels.push_back(static_cast<int64_t>(random() % classes));
  const auto with_batch = [&](int64_t batch) {
    const int64_t runs = (samples + batch - 1) / batch;
    std::vector<Tensor> was, is;
    for (int64_t run = 0; run < runs; ++run) {
      std::vector<double> a, b;
      for (int64_t i = run * batch * classes; i < (run + 1) * batch * classes; ++i) {
        a.push_back(i < samples * classes ? reference[static_cast<size_t>(i)] : 99);  // the last run is padded
        b.push_back(i < samples * classes ? changed[static_cast<size_t>(i)] : -99);
      }
      was.push_back(floats({batch, classes}, a));
      is.push_back(floats({batch, classes}, b));
    }
    return compared(OutputKind::logits, was, is, batch, labels);
  };
  const OutputMetrics one = with_batch(1);
  EXPECT_GT(one.flips, 0);
  for (int64_t batch : {3, 5, 12, 20}) {
    const OutputMetrics other = with_batch(batch);
    EXPECT_EQ(other.samples, samples);
    EXPECT_EQ(other.mean_squared_error, one.mean_squared_error);
    EXPECT_EQ(other.signal_power, one.signal_power);
    EXPECT_EQ(other.divergence, one.divergence);
    EXPECT_EQ(other.paired, one.paired);
    EXPECT_EQ(other.worst_class, one.worst_class);
  }
}

TEST(Metric, DecibelAndBack) {
  EXPECT_DOUBLE_EQ(sqnr_of(1000, 1), 30);
  EXPECT_NEAR(sqnr_of(7, error_at_sqnr(7, 23.5)), 23.5, 1e-12);
}

TEST(Metric, OutputsThatDoNotFitAreRefused) {
  const auto error = [](OutputKind kind, const std::vector<Tensor>& reference, const std::vector<Tensor>& changed,
                        int64_t samples_a_run, const std::vector<int64_t>& labels = {}) -> std::string {
    OutputComparison comparison(kind);
    for (size_t run = 0; run < reference.size(); ++run) {
      const auto added = comparison.add(reference[run], changed[run], samples_a_run, samples_a_run, labels);
      if (!added.ok()) return added.errors()[0].text();
    }
    return "";
  };
  const Tensor two = floats({2}, {1, 2}), three = floats({3}, {1, 2, 3}), none = floats({0}, {});
  EXPECT_THAT(error(OutputKind::values, {two}, {three}, 1), HasSubstr("is [3], the reference model's is [2]"));
  EXPECT_THAT(error(OutputKind::values, {three}, {three}, 2), HasSubstr("expected 2 samples"));
  EXPECT_THAT(error(OutputKind::values, {two, three}, {two, three}, 1), HasSubstr("2 in previous runs"));
  EXPECT_THAT(error(OutputKind::logits, {two}, {two}, 1, {2}), HasSubstr("2 classes, but there is a label 2"));
  EXPECT_THAT(error(OutputKind::logits, {two}, {two}, 1, {-1}), HasSubstr("label -1"));
  EXPECT_THAT(error(OutputKind::logits, {two}, {two}, 1, {0, 1}), HasSubstr("labels"));
  EXPECT_THAT(error(OutputKind::values, {two}, {two}, 1, {0}), HasSubstr("no classes"));
  EXPECT_THAT(error(OutputKind::values, {none}, {none}, 1), HasSubstr("no values"));
}

}  // namespace hoist::metric_test
