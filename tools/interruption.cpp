#include "tools/interruption.h"

#include <atomic>
#include <csignal>

#include "tools/child_program.h"
#include "tools/terminal.h"

namespace hoist {
namespace {

std::atomic<bool> armed{false};
std::atomic<bool> was_interrupted{false};

}  // namespace

Interruptible::Interruptible() { was_interrupted = false; }
Interruptible::~Interruptible() { armed = false; }
void Interruptible::arm() { armed = true; }
bool Interruptible::interrupted() const { return was_interrupted; }

bool taken_as_interruption(int signal_number) {
  if (signal_number == SIGHUP || !armed || was_interrupted.exchange(true)) return false;
  end_programs();
  complain("note", "stopping: what is verified by now is chosen from (once more to end at once)");
  return true;
}

}  // namespace hoist
