#include "ir/base/threads.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
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

void for_each_in_threads(size_t count, const std::function<void(size_t)>& piece, unsigned most) {
  std::atomic<size_t> next = 0;
  run_in_threads(static_cast<unsigned>(std::min<size_t>(count, most)), [&] {
    for (size_t i; (i = next++) < count;) piece(i);
  });
}

std::function<bool()> latched(std::function<bool()> condition) {
  struct State {
    std::mutex mutex;
    bool is_true = false;
  };
  return [condition = std::move(condition), state = std::make_shared<State>()] {
    const std::lock_guard lock(state->mutex);
    state->is_true = state->is_true || condition();
    return state->is_true;
  };
}

}  // namespace hoist
