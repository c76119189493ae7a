#include "ir/base/threads.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace hoist {

void run_in_threads(unsigned most, const std::function<void()>& work) {
  std::mutex mutex;
  std::exception_ptr first;
  const auto guarded = [&] {
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
    }
  };
  const unsigned count = std::min(most, std::thread::hardware_concurrency());
  std::vector<std::thread> others;
  others.reserve(count);
  try {
    for (unsigned i = 1; i < count; ++i) others.emplace_back(guarded);
  } catch (const std::exception&) {  // no more threads can be created: the existing threads do all the work
  }
  guarded();
  for (std::thread& thread : others) thread.join();
  if (first) std::rethrow_exception(first);
}

void for_each_in_threads(size_t count, const std::function<void(size_t)>& piece) {
  std::atomic<size_t> next = 0;
  const auto most = static_cast<unsigned>(std::min<size_t>(count, std::thread::hardware_concurrency()));
  run_in_threads(most, [&] {
    for (size_t i; (i = next++) < count;) piece(i);
  });
}

}  // namespace hoist
