#include "ir/base/cancellation.h"

#include <atomic>

namespace hoist {
namespace {

std::atomic<bool> requested{false};

}  // namespace

void request_cancellation() { requested = true; }
void withdraw_cancellation() { requested = false; }

void cancellation_point() {
  if (requested.load(std::memory_order_relaxed)) throw Cancelled();
}

}  // namespace hoist
