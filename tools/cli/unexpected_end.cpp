#include "tools/cli/unexpected_end.h"

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include "ir/base/temporary_folder.h"
#include "tools/base/child_program.h"
#include "tools/base/exit_code.h"
#include "tools/base/file_lock.h"

namespace hoist {
namespace {

std::atomic<bool> expected = true;

void write_text(const char* text) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, std::strlen(text));
}

// Called in a signal handler: nothing that allocates.
void end_with_message() {
  write_text("hoist: error: the OpenCL driver, or another library, ended the program");
  rlimit limit = {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    write_text(" (there is a file-size limit, see ulimit -f: drivers write compiled kernels to files)\n");
  } else {
    write_text(" (see whether the disk has space for compiled kernels; PoCL keeps its own in ~/.cache/pocl)\n");
  }
  ::_exit(static_cast<int>(ExitCode::device));
}

void at_exit() {
  if (!expected) end_with_message();
}

void at_abort(int) { end_with_message(); }

// An exception that can no longer be caught, for example in a destructor of the JSON library, which allocates. There
// may be memory again for the removal.
void at_terminate() {
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    try {
      remove_unfinished();
    } catch (const std::bad_alloc&) {
    }
    end_without_memory();
  } catch (...) {
  }
  std::abort();
}

// Runs before any other object of the program is constructed, since that allocates too.
__attribute__((constructor(101))) void watch_terminations() { std::set_terminate(at_terminate); }

}  // namespace

void remove_unfinished() {
  end_programs();
  remove_locks_on_signal();
  remove_on_signal();
}

void end_without_memory() {
  write_text("hoist: error: out of memory\n");
  ::_exit(static_cast<int>(ExitCode::device));
}

void report_unexpected_end() {
  expected = false;
  std::signal(SIGABRT, at_abort);
  std::atexit(at_exit);
}

void end_is_expected() {
  expected = true;
  std::signal(SIGABRT, SIG_DFL);
}

}  // namespace hoist
