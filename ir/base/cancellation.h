// Cancellation of a running call: another thread requests it, and long computations poll cancellation_point(). There is
// one request per process, since only one call at a time can be cancelled. A cancelled computation leaves the same
// state as a failed one. The hoist program does not use this: a signal ends its process. Work under a time limit ends
// in the same way, with another exception.
#pragma once

#include <cstdint>

#include "ir/base/result.h"

namespace hoist {

/// Thrown by cancellation_point(). Not a std::exception, so that no handler takes it for a failure of a library.
struct Cancelled {};
/// Thrown by cancellation_point() after a Deadline.
struct TimeIsOver {};

/// Until withdraw_cancellation(), every cancellation_point() in every thread throws.
void request_cancellation();
void withdraw_cancellation();

/// While a Deadline lives, every cancellation_point() of the process throws TimeIsOver once `seconds` have passed.
/// Infinity is no limit. Deadlines nest: the earliest counts. Make and destroy them in one thread.
class Deadline {
 public:
  explicit Deadline(double seconds);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

 private:
  int64_t outer_;
};

/// False if the deadline ends the work, a function of Result<Nothing>, first.
template <class Work>
Result<bool> within(double seconds, const Work& work) {
  const Deadline deadline(seconds);
  try {
    HOIST_TRY_VOID(work());
    return true;
  } catch (const TimeIsOver&) {
    return false;
  }
}

/// For loops whose iterations take between microseconds and a second. Throws Cancelled if cancellation is requested,
/// TimeIsOver after a deadline.
void cancellation_point();

}  // namespace hoist
