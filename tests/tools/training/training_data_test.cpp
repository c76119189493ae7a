// Batches of training data: orders, changes of images, and the samples that fill a batch.
#include "tools/data/training_data.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

namespace hoist::training_data_test {

using testing::ElementsAre;

// Two channels of 3 x 4 pixels; the values of a sample begin at 100 times its number.
BatchShape images() { return {{{"x", Scalar::f32, {3, 2, 3, 4}}}, {"labels", Scalar::i64, {3}}, 5}; }

TrainingData samples(int64_t count) {
  TrainingData out;
  for (int64_t i = 0; i < count; ++i) {
    Tensor image(Scalar::f32, {1, 2, 3, 4}), label(Scalar::i64, {1});
    for (int64_t k = 0; k < 24; ++k) image.set_float(k, static_cast<double>(100 * i + k + 1));
    label.set_integer(0, i);
    out.inputs.push_back({image});
    out.targets.push_back(label);
  }
  return out;
}

TEST(TrainingData, HasAnOrderForEachEpoch) {
  std::vector<int64_t> first = order_of_epoch(20, 1, 0);
  EXPECT_EQ(first, order_of_epoch(20, 1, 0));
  EXPECT_NE(first, order_of_epoch(20, 1, 1));
  EXPECT_NE(first, order_of_epoch(20, 2, 0));
  std::sort(first.begin(), first.end());
  for (int64_t i = 0; i < 20; ++i) EXPECT_EQ(first[static_cast<size_t>(i)], i);
}

TEST(TrainingData, FillsABatchWithoutLabels) {
  const std::vector<Tensor> batch = batch_of(samples(4), {2, 1}, images());
  ASSERT_EQ(batch.size(), 2);
  EXPECT_EQ(batch[0].float_at(0), 201);
  EXPECT_EQ(batch[0].float_at(24), 101);
  EXPECT_EQ(batch[0].float_at(48), 101);
  EXPECT_THAT(batch[1].as_integers(), ElementsAre(2, 1, -1));
}

// A changed image is a window of the image, or of its mirror, among zeros.
TEST(TrainingData, FlipsAndMovesImages) {
  const auto augmentation = augmentation_of({"flip", "crop=1"}, images());
  ASSERT_TRUE(augmentation.ok());
  std::set<std::tuple<bool, int64_t, int64_t>> seen;
  for (int64_t epoch = 0; epoch < 60; ++epoch) {
    const Tensor batch = batch_of(samples(1), {0}, images(), *augmentation, 1, epoch)[0];
    EXPECT_EQ(batch, batch_of(samples(1), {0}, images(), *augmentation, 1, epoch)[0]);
    int matches = 0;
    for (const bool flip : {false, true}) {
      for (int64_t y = -1; y <= 1; ++y) {
        for (int64_t x = -1; x <= 1; ++x) {
          bool is_same = true;
          for (int64_t k = 0; k < 24; ++k) {
            const int64_t c = k / 12, i = k / 4 % 3, j = k % 4;
            const int64_t row = i + y, column = (flip ? 3 - j : j) + x;
            const bool inside = row >= 0 && row < 3 && column >= 0 && column < 4;
            is_same &= batch.float_at(k) == (inside ? static_cast<double>((c * 3 + row) * 4 + column + 1) : 0);
          }
          if (is_same) ++matches, seen.insert({flip, y, x});
        }
      }
    }
    EXPECT_EQ(matches, 1) << epoch;
  }
  EXPECT_GT(seen.size(), 14);
}

TEST(TrainingData, KeepsSamplesApart) {
  const auto parts = split_training_data(samples(10), 0.3, 1);
  ASSERT_TRUE(parts.ok());
  EXPECT_EQ(parts->first.count(), 7);
  EXPECT_EQ(parts->kept_apart.count(), 3);
  std::set<int64_t> all;
  for (const TrainingData* part : {&parts->first, &parts->kept_apart}) {
    for (const Tensor& target : part->targets) all.insert(target.integer_at(0));
  }
  EXPECT_EQ(all.size(), 10);
}

}  // namespace hoist::training_data_test
