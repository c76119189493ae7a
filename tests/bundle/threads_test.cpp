// Tests threads of native code: every group of a step is computed once, for any number of threads and any divided loop.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "backends/runtime/native/native_device.h"

namespace {

std::vector<std::atomic<int>> computed(1000);

int count_groups(void** arguments) {
  const int32_t first = *static_cast<int32_t*>(arguments[0]), groups = *static_cast<int32_t*>(arguments[1]);
  for (int32_t i = first; i < first + groups; ++i) ++computed.at(static_cast<size_t>(i));
  return 0;
}

TEST(Threads, EveryGroupIsComputedOnce) {
  for (const unsigned threads : {1U, 2U, 3U, 8U}) {
    hoist_workers* workers = hoist_workers_make(threads, 0);
    ASSERT_NE(workers, nullptr);
    using Grid = std::array<uint64_t, 2>;
    for (const Grid grid : {Grid{1, 1}, Grid{2, 1}, Grid{7, 1}, Grid{1, 7}, Grid{3, 5}, Grid{97, 1}, Grid{14, 24},
                            Grid{100, 3}, Grid{400, 2}, Grid{2, 400}}) {
      for (const int64_t operations : {int64_t{0}, int64_t{10'000'000}}) {
        for (std::atomic<int>& count : computed) count = 0;
        hoist_workers_run(workers, count_groups, nullptr, 0, grid.data(), operations, 1);
        for (uint64_t i = 0; i < computed.size(); ++i)
          ASSERT_EQ(computed[i], i < grid[0] * grid[1] ? 1 : 0)
              << threads << " threads, " << grid[0] << " x " << grid[1] << ", group " << i;
      }
    }
    hoist_workers_free(workers);
  }
}

}  // namespace
