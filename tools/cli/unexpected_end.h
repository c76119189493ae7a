// Libraries may end the process: OpenCL drivers exit or abort if they cannot write the kernels that they compile. The
// user then still gets a message, and the exit code of a device error. Broken invariants of hoist itself (HOIST_CHECK)
// abort with their own message. Exhausted memory is an exception, which ends in main() or in std::terminate; both print
// a message.
#pragma once

namespace hoist {

/// From here until end_is_expected(), an unexpected exit or abort prints a message and has exit code 4.
void report_unexpected_end();
void end_is_expected();

/// Ends child programs, and removes temporary folders and the files of locks: for an end without destructors. Other
/// threads may still run; no lock can be taken and no temporary folder be made afterwards.
void remove_unfinished();

/// Ends the program when memory has run out; allocates nothing. Calls no exit handlers: if the exception left a library
/// that another thread was loading, the loader's lock is still held, and handlers would wait for it.
[[noreturn]] void end_without_memory();

}  // namespace hoist
