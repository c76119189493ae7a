// Work shared by several threads. An exception of one thread (out of memory) reaches the caller, as with one thread; if
// a thread cannot be created, the others do its work.
#pragma once

#include <functional>

namespace hoist {

/// Calls `work` in this thread and in others and waits for all: one call per core, at most `most` in total. `work` has
/// to take pieces of the task until none is left. Rethrows the first exception after all calls have ended.
void run_in_threads(unsigned most, const std::function<void()>& work);

}  // namespace hoist
