// Tests the size from which threads share steps of native code, with simulated times.
#include "backends/runtime/native/sharing.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <vector>

namespace {

hoist_sharing sharing_of(const std::vector<int64_t>& operations) {
  hoist_sharing sharing;
  hoist_sharing_begin(&sharing, operations.data(), operations.size());
  return sharing;
}

// Simulates `runs` runs; returns the number of runs that shared steps from each size on.
std::map<int64_t, int> run(hoist_sharing& sharing, int runs, const std::function<double(int64_t)>& nanoseconds) {
  std::map<int64_t, int> counts;
  for (int i = 0; i < runs; ++i) {
    const int64_t least = hoist_sharing_least(&sharing);
    ++counts[least];
    hoist_sharing_took(&sharing, static_cast<uint64_t>(nanoseconds(least)));
  }
  return counts;
}

const std::vector<int64_t> steps = {1'000, 150'000, 500'000, 2'000'000, 9'000'000};

// Sharing a step halves its operations and adds the cost of cache coherence between two cores.
std::function<double(int64_t)> with_cost(double cost) {
  return [cost](int64_t least) {
    double time = 0;
    for (const int64_t operations : steps) {
      const double alone = static_cast<double>(operations) / 100;
      time += operations < least ? alone : alone / 2 + cost;
    }
    return time;
  };
}

TEST(Sharing, EachSizeSharesOtherSteps) {
  EXPECT_EQ(sharing_of({}).count, 1u);
  EXPECT_EQ(sharing_of({99'999}).count, 1u);
  EXPECT_EQ(sharing_of({100'000}).count, 2u);
  EXPECT_EQ(sharing_of({50'000, 200'000, 3'000'000}).count, 3u);
  EXPECT_EQ(sharing_of({INT64_MAX / 2}).count, 2u);
  hoist_sharing all = sharing_of(steps);
  EXPECT_EQ(all.count, 5u);
  EXPECT_EQ(hoist_sharing_least(&all), 100'000) << "before anything is known";
}

TEST(Sharing, TheRunBeforeIsKnown) {  // long runs wake threads
  hoist_sharing sharing = sharing_of(steps);
  EXPECT_EQ(sharing.last_time, 0u);
  for (const uint64_t nanoseconds : {41'000u, 12'000u}) {
    hoist_sharing_took(&sharing, nanoseconds);
    EXPECT_EQ(sharing.last_time, nanoseconds);
  }
}

TEST(Sharing, TheBestSizeIsFound) {
  for (const double cost : {100.0, 1'500.0, 4'000.0, 30'000.0, 1e6}) {
    SCOPED_TRACE(cost);
    hoist_sharing sharing = sharing_of(steps);
    run(sharing, 1'000, with_cost(cost));
    const double found = with_cost(cost)(sharing.levels[sharing.best]);
    for (unsigned i = 0; i < sharing.count; ++i) EXPECT_LE(found, 1.04 * with_cost(cost)(sharing.levels[i]));
  }
}

TEST(Sharing, FewRunsTryOthers) {
  hoist_sharing sharing = sharing_of(steps);
  const auto counts = run(sharing, 100'000, with_cost(100));
  EXPECT_EQ(counts.size(), sharing.count);
  EXPECT_GE(counts.at(100'000), 99'500);
}

TEST(Sharing, AnotherProcessorIsNoticed) {
  hoist_sharing sharing = sharing_of(steps);
  run(sharing, 20'000, with_cost(100));
  EXPECT_EQ(sharing.levels[sharing.best], 100'000);
  run(sharing, 40'000, with_cost(1e6));
  EXPECT_EQ(sharing.best, sharing.count - 1);
}

TEST(Sharing, RunsThatAreNotTimedTryNothing) {
  hoist_sharing sharing = sharing_of(steps);
  unsigned trials = 0;
  for (int i = 0; i < 1'000; ++i) {
    hoist_sharing_took(&sharing, static_cast<uint64_t>(with_cost(100)(hoist_sharing_least(&sharing))));
    hoist_sharing settled = sharing;
    trials += hoist_sharing_least(&settled) != 100'000;
    hoist_sharing_settle(&settled);
    EXPECT_EQ(hoist_sharing_least(&settled), 100'000);
  }
  EXPECT_GT(trials, 0U);
}

// Other programs use the processor for a while; their effect on the choice is corrected later.
TEST(Sharing, RunsThatAreDisturbedMisleadForAMomentOnly) {
  std::mt19937 random(7);
  hoist_sharing sharing = sharing_of(steps);
  double undisturbed = 0;
  constexpr int runs = 200'000;
  run(sharing, runs, [&](int64_t least) {
    const double time = with_cost(100)(least);
    undisturbed += time;
    return time * (random() % 4 == 0 ? 1.5 + (random() % 100) / 50.0 : 1 + (random() % 100) / 1e4);
  });
  EXPECT_LE(undisturbed, 1.01 * runs * with_cost(100)(100'000));
}

// A virtual machine is slow for some runs, then fast, and changes during measurements.
TEST(Sharing, SpellsOfAnotherSpeedMislead) {
  for (const unsigned mean : {5U, 20U, 100U}) {
    SCOPED_TRACE(mean);
    std::mt19937 random(7);
    hoist_sharing sharing = sharing_of(steps);
    double factor = 1, undisturbed = 0;
    constexpr int runs = 20'000;
    run(sharing, runs, [&](int64_t least) {
      const double time = with_cost(100)(least);
      undisturbed += time;
      if (random() % mean == 0) factor = 3 - factor;
      return time * factor;
    });
    EXPECT_LE(undisturbed, 1.03 * runs * with_cost(100)(100'000));
  }
}

}  // namespace
