// Work that several threads share. What one of them throws (memory that runs out) reaches the caller, as it would from
// one thread; a thread that cannot be had is done without.
#pragma once

#include <functional>

namespace hoist {

/// Calls `work` in this thread and in others, as many in all as there are cores, at most `most`, and waits for all. It
/// has to take pieces of what there is to do until none is left. Throws what the first of them threw, after all have
/// ended.
void run_in_threads(unsigned most, const std::function<void()>& work);

}  // namespace hoist
