// Tests predicted times: exact sums of small amounts of work, and that more work never takes less time.
#include "lowering/cost/predicted_time.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/text/text.h"

namespace hoist::predicted_time_test {

// A thousand of everything in a microsecond, but memory ten times slower than caches.
Profile device() {
  Profile out;
  out.first_cache = 1024;
  out.second_caches = 8192;
  Rates& r = out.rates;
  r.threads = 2;
  r.multiply_adds = r.byte_products = r.comparisons = r.divisions = r.transcendentals = r.integers = r.conversions =
      1000;
  r.first_cache = 4000;
  r.second_caches = 1000;
  r.memory = 100;
  r.step = 300;
  r.barrier = 200;
  return out;
}

KernelLoad load_of(const std::string& text) {
  const auto term = parse(text);
  HOIST_CHECK(term.ok(), term.errors()[0].text());
  return {.work = executed_work(*term)};
}

double part(const KernelLoad& load, TimePart which) {
  return predicted_time(load, device()).parts[static_cast<size_t>(which)];
}

std::string product(int64_t rows, int64_t steps) {
  return fmt::format("%x : [{0}][{1}]f32 |> map (\\r. zip(r, %w : [{1}]f32) |> fold (\\s (a, b). fma(s, a, b)) 0f32)",
                     rows, steps);
}

TEST(PredictedTimeTest, ASmallProductIsASum) {
  const KernelLoad load = load_of(product(10, 20));
  EXPECT_EQ(load.work.fused, 200);
  EXPECT_NEAR(part(load, TimePart::contractions), 1.03 * 200e-9, 1e-15);
  EXPECT_NEAR(part(load, TimePart::arrays), 0.5 * (800 + 80 + 40) / 4e9, 1e-15);
  EXPECT_NEAR(part(load, TimePart::step), 1.2 * 300e-9, 1e-15);
  EXPECT_EQ(part(load, TimePart::functions), 0);
  const PredictedTime time = predicted_time(load, device());
  EXPECT_NEAR(time.seconds(), 1.03 * 200e-9 + 0.5 * 920 / 4e9 + 1.2 * 300e-9, 1e-14);
}

TEST(PredictedTimeTest, ClassesHaveRatesOfTheirOwn) {
  const KernelLoad load = load_of("%x : [100]f32 |> map (\\v. exp(v) / (v + max(v, 2f32)))");
  EXPECT_NEAR(part(load, TimePart::functions), 1.1 * 200e-9, 1e-15);
  EXPECT_NEAR(part(load, TimePart::operations), 3.0 * 200e-9, 1e-15);
}

TEST(PredictedTimeTest, ArraysFillOneLevelAfterTheOther) {
  KernelLoad load;
  load.work.written = 2048;
  EXPECT_NEAR(part(load, TimePart::arrays), 0.5 * 2048 / 4e9, 1e-15);
  load.work.written = 8192;
  EXPECT_NEAR(part(load, TimePart::arrays), 0.5 * (2048 / 4e9 + 6144 / 1e9), 1e-15);
  EXPECT_EQ(part(load, TimePart::memory), 0);
  load.work.written = 10000;
  EXPECT_NEAR(part(load, TimePart::memory), 0.6 * 1808 / 1e8, 1e-12);
}

TEST(PredictedTimeTest, WeightsComeFromMemoryIfTheyDisplaceEachOther) {
  KernelLoad load;
  load.work.read = {{"p0", 4000}};
  load.weights = load.all_weights = 4000;
  EXPECT_EQ(part(load, TimePart::weights), 0);
  load.all_weights = 1 << 20;
  EXPECT_NEAR(part(load, TimePart::weights), 0.35 * 4000 / 1e8, 1e-12);
  EXPECT_EQ(part(load, TimePart::arrays), 0);
}

TEST(PredictedTimeTest, ThreadsThatShareAStepWait) {
  KernelLoad load;
  load.shared = true;
  EXPECT_NEAR(part(load, TimePart::step), 1.2 * 500e-9, 1e-15);
}

TEST(PredictedTimeTest, WithoutRatesThereIsNoTime) {
  EXPECT_EQ(predicted_time(load_of(product(10, 20)), Profile()).seconds(), 0);
}

TEST(PredictedTimeTest, MoreWorkNeverTakesLess) {
  for (int64_t rows : {1, 7, 64, 1000}) {
    double before = 0;
    for (int64_t steps = 1; steps < 5000; steps = steps * 3 / 2 + 1) {
      KernelLoad load = load_of(product(rows, steps));
      load.weights = load.all_weights = load.work.read.at("w");
      const double seconds = predicted_time(load, device()).seconds();
      EXPECT_GT(seconds, before) << rows << " " << steps;
      before = seconds;
    }
  }
}

}  // namespace hoist::predicted_time_test
