// Tests work shared by threads: every piece is done once, and exceptions reach the caller.
#include "ir/base/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace hoist::threads_test {

TEST(Threads, EveryPieceIsDoneOnce) {
  for (const size_t count : {0, 1, 2, 1000}) {
    std::vector<std::atomic<int>> done(count);
    for_each_in_threads(count, [&](size_t i) { ++done[i]; });
    for (const std::atomic<int>& times : done) EXPECT_EQ(times, 1);
  }
}

TEST(Threads, AnExceptionOfAPieceReachesTheCaller) {
  const auto work = [](size_t i) {
    if (i == 7) throw std::runtime_error("piece 7");
  };
  EXPECT_THROW(for_each_in_threads(100, work), std::runtime_error);
}

TEST(Threads, ALatchedConditionIsNotCalledAfterItWasTrue) {
  int calls = 0;
  const auto condition = latched([&] { return ++calls == 3; });
  EXPECT_FALSE(condition());
  EXPECT_FALSE(condition());
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(condition());
  EXPECT_EQ(calls, 3);
}

}  // namespace hoist::threads_test
