// How long something has taken so far, by a clock that nobody sets.
#pragma once

#include <chrono>

namespace hoist {

class Stopwatch {
 public:
  /// Since it was made.
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace hoist
