// Ending work from outside: who calls the compiler from another thread may ask it to stop, and whatever takes long
// looks now and then whether somebody has. There is one request for the process, since there is one call at a time that
// anybody asks to stop; what has stopped leaves nothing behind that a failure would not. The hoist program has no need
// of it: a signal ends the process. Work under a time limit ends the same way, with another exception.
#pragma once

#include <cstdint>

namespace hoist {

/// What cancellation_point() throws. Not a std::exception: nobody takes it for a failure of a library.
struct Cancelled {};
/// What it throws after a Deadline.
struct TimeIsOver {};

/// From now on until withdraw_cancellation(), every cancellation_point() throws, in every thread.
void request_cancellation();
void withdraw_cancellation();

/// While it lives, every cancellation_point() of the process throws TimeIsOver once so many seconds have passed.
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

/// For loops whose steps take from microseconds to a second. Throws Cancelled where that is requested.
void cancellation_point();

}  // namespace hoist
