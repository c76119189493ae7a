// Work shared by several threads. An exception of one thread (out of memory) reaches the caller, as with one thread; if
// a thread cannot be created, the others do its work.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>

namespace hoist {

/// Calls `work` in this thread and in others and waits for all: one call per core, at most `most` in total. `work` has
/// to take pieces of the task until none is left. Rethrows the first exception after all calls have ended.
void run_in_threads(unsigned most, const std::function<void()>& work);

/// Calls `piece` once for each number below `count`, in any order, with one thread per core, at most `most` in total.
void for_each_in_threads(size_t count, const std::function<void(size_t)>& piece,
                         unsigned most = std::numeric_limits<unsigned>::max());

/// A condition that remains true, as the end of a time limit does: any threads may call it, one of them at a time calls
/// `condition`, and none does after it was true.
std::function<bool()> latched(std::function<bool()> condition);

}  // namespace hoist
