// Elapsed time by a monotonic clock, which changes of the system time do not affect.
#pragma once

#include <chrono>

namespace hoist {

class Stopwatch {
 public:
  /// Seconds since construction.
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace hoist
