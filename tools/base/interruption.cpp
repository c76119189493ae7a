#include "tools/base/interruption.h"

#include <fmt/format.h>

#include <atomic>
#include <csignal>

#include "tools/base/child_program.h"
#include "tools/base/terminal.h"

namespace hoist {
namespace {

std::atomic<bool> armed{false};
std::atomic<bool> was_interrupted{false};
std::atomic<const char*> what_comes_of_it{""};
std::atomic<const char*> what_is_kept{""};

}  // namespace

Interruptible::Interruptible() { was_interrupted = false; }
Interruptible::~Interruptible() {
  armed = false;
  what_is_kept = "";
}
void Interruptible::arm(const char* note) {
  what_comes_of_it = note;
  armed = true;
}
void Interruptible::explain_end(const char* note) { what_is_kept = note; }
bool Interruptible::interrupted() const { return was_interrupted; }

bool taken_as_interruption(int signal_number) {
  if (!armed) {
    if (const char* kept = what_is_kept; *kept != '\0') print_message("note", fmt::format("ended: {}", kept));
    return false;
  }
  if (signal_number == SIGHUP || was_interrupted.exchange(true)) return false;
  end_programs();
  print_message("note", fmt::format("stopping: {} (interrupt again to end at once)", what_comes_of_it.load()));
  return true;
}

}  // namespace hoist
