#include "tools/cli/interruption.h"

#include <fmt/format.h>

#include <atomic>
#include <csignal>

#include "tools/cli/terminal.h"
#include "tools/driver/child_program.h"

namespace hoist {
namespace {

std::atomic<bool> armed{false};
std::atomic<bool> was_interrupted{false};
std::atomic<const char*> what_comes_of_it{""};

}  // namespace

Interruptible::Interruptible() { was_interrupted = false; }
Interruptible::~Interruptible() { armed = false; }
void Interruptible::arm(const char* note) {
  what_comes_of_it = note;
  armed = true;
}
bool Interruptible::interrupted() const { return was_interrupted; }

bool taken_as_interruption(int signal_number) {
  if (signal_number == SIGHUP || !armed || was_interrupted.exchange(true)) return false;
  end_programs();
  complain("note", fmt::format("stopping: {} (once more to end at once)", what_comes_of_it.load()));
  return true;
}

}  // namespace hoist
