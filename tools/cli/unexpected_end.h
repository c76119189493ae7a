// Libraries under the program end the process when they cannot go on: OpenCL drivers exit or abort when they cannot
// write the kernels that they compile. That still has to be a message with the exit code of device trouble. Broken
// invariants of hoist itself (HOIST_CHECK) abort as they say. Memory that runs out is an exception, which ends where
// the program began or where nothing may be thrown; both say so.
#pragma once

namespace hoist {

/// From here until end_is_expected(), an unexpected exit or abort prints a message and has exit code 4.
void report_unexpected_end();
void end_is_expected();

/// When memory has run out; allocates nothing. No exit handler is called: where the exception came out of a library
/// that was being loaded by another thread, the loader's lock stays taken, and handlers would wait for it.
[[noreturn]] void end_without_memory();

}  // namespace hoist
