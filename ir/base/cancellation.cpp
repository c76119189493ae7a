#include "ir/base/cancellation.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>

namespace hoist {
namespace {

constexpr int64_t no_deadline = std::numeric_limits<int64_t>::max();

std::atomic<bool> requested{false};
std::atomic<int64_t> deadline{no_deadline};  // nanoseconds of the clock below

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int64_t after(double seconds) {
  constexpr double most_seconds = 1e8;  // nanoseconds of three years fit into 64 bits
  if (!(seconds < most_seconds)) return no_deadline;
  return now() + static_cast<int64_t>(std::max(seconds, 0.0) * 1e9);
}

}  // namespace

void request_cancellation() { requested = true; }
void withdraw_cancellation() { requested = false; }

Deadline::Deadline(double seconds) : outer_(deadline) { deadline = std::min(outer_, after(seconds)); }
Deadline::~Deadline() { deadline = outer_; }

void cancellation_point() {
  if (requested.load(std::memory_order_relaxed)) throw Cancelled();
  const int64_t end = deadline.load(std::memory_order_relaxed);
  if (end != no_deadline && now() >= end) throw TimeIsOver();
}

}  // namespace hoist
