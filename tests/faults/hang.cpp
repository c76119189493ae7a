// Reports where a program hangs. With HOIST_FAULT_SECONDS=N, a program that still runs after N seconds writes the call
// stack of each of its threads to standard error and ends with exit code 124, like timeout(1). Frames of the program
// itself are offsets, for addr2line; frames of libraries have names.
#include <dirent.h>
#include <execinfo.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

#include "tests/faults/faults.h"

namespace {

// LLVM, which drivers load, uses SIGUSR1 and SIGUSR2.
int stack_signal() { return SIGRTMIN; }
constexpr useconds_t for_one_stack = 50'000;

void write_text(const char* text) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, std::strlen(text));
}

void write_stack(int) {
  void* frames[64];
  write_text("thread:\n");
  ::backtrace_symbols_fd(frames, ::backtrace(frames, 64), STDERR_FILENO);
}

void write_stacks_and_end(int) {
  fault_disarm();
  write_text("hangs\n");
  if (DIR* threads = ::opendir("/proc/self/task"); threads != nullptr) {
    while (const dirent* thread = ::readdir(threads)) {
      const long id = std::atol(thread->d_name);
      if (id == 0) continue;
      ::syscall(SYS_tgkill, ::getpid(), id, stack_signal());
      ::usleep(for_one_stack);  // keeps the stacks from being interleaved
    }
  }
  ::_exit(124);
}

struct Watch {
  Watch() {
    const char* seconds = std::getenv("HOIST_FAULT_SECONDS");
    if (seconds == nullptr) return;
    void* frame[1];
    ::backtrace(frame, 1);  // the first call loads a library, which is not allowed in a handler
    std::signal(stack_signal(), write_stack);
    std::signal(SIGALRM, write_stacks_and_end);
    ::alarm(static_cast<unsigned>(std::atol(seconds)));
  }
};
const Watch watch __attribute__((init_priority(102)));

}  // namespace
