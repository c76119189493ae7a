// Ending work from outside: who calls the compiler from another thread may ask it to stop, and whatever takes long
// looks now and then whether somebody has. There is one request for the process, since there is one call at a time that
// anybody asks to stop; what has stopped leaves nothing behind that a failure would not. The hoist program has no need
// of it: a signal ends the process.
#pragma once

namespace hoist {

/// What cancellation_point() throws. Not a std::exception: nobody takes it for a failure of a library.
struct Cancelled {};

/// From now on until withdraw_cancellation(), every cancellation_point() throws, in every thread.
void request_cancellation();
void withdraw_cancellation();

/// For loops whose steps take from microseconds to a second. Throws Cancelled where that is requested.
void cancellation_point();

}  // namespace hoist
