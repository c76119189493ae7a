// Cancellation of a running call: another thread requests it, and long computations poll cancellation_point(). There is
// one request per process, since only one call at a time can be cancelled. A cancelled computation leaves the same
// state as a failed one. The hoist program does not use this: a signal ends its process.
#pragma once

namespace hoist {

/// Thrown by cancellation_point(). Not a std::exception, so that no handler takes it for a failure of a library.
struct Cancelled {};

/// Until withdraw_cancellation(), every cancellation_point() in every thread throws.
void request_cancellation();
void withdraw_cancellation();

/// For loops whose iterations take between microseconds and a second. Throws Cancelled if cancellation is requested.
void cancellation_point();

}  // namespace hoist
