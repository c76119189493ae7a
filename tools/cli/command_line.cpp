#include "tools/cli/command_line.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <new>
#include <thread>

#include "backends/runtime/hoist_runtime.h"
#include "ir/base/mapped_file.h"
#include "ir/operators/operators.h"
#include "lowering/rules/rules.h"
#include "tools/base/interruption.h"
#include "tools/base/terminal.h"
#include "tools/cli/log.h"
#include "tools/cli/parse_options.h"
#include "tools/cli/unexpected_end.h"

namespace hoist {
Result<ExitCode> do_command(const std::vector<std::string>& words) {
  if (std::getenv("HOIST_RULES_FOLDER") != nullptr) {
    HOIST_TRY_VOID(check_own_operators());
    HOIST_TRY_VOID(check_own_rules());
  }
  if (words.empty()) {
    say(program_help());
    return usage_error("", "no command given", "hoist COMMAND --help explains one");
  }
  HOIST_TRY(const ParsedCommand parsed, parse_command(words));
  return parsed.command == nullptr ? ExitCode::done : parsed.command->run(parsed.options);
}

namespace {

// A signal ends the program as usual, after the removal of temporary folders and child programs. A thread waits for it,
// because a handler could not do that.
void end_on_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    if (::sigaction(number, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&signals, number);
  }
  // Threads that are started from here on inherit the blocked signals.
  if (::pthread_sigmask(SIG_BLOCK, &signals, nullptr) != 0) return;
  const auto wait = [signals] {
    int number = 0;
    do {
      if (::sigwait(&signals, &number) != 0) return;
    } while (taken_as_interruption(number));
    remove_unfinished();
    end_is_expected();
    std::signal(number, SIG_DFL);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
    ::kill(::getpid(), number);
  };
  try {
    std::thread(wait).detach();
  } catch (const std::exception&) {  // without a thread a signal ends the program at once
    ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  }
}

}  // namespace

ExitCode run_command_line(int argument_count, const char* const* arguments) try {
  // A reader that goes away or a file-size limit then shows as a failed write, which gets a message.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  report_unexpected_end();
  start_log();
  end_on_signals();
  hoist_offer_serial_devices();  // this process has no OpenCL code but hoist's
  ExitCode code = ExitCode::done;
  auto outcome = do_command({arguments + 1, arguments + argument_count});
  if (auto unchanged = mapped_files_unchanged(); outcome.ok() && !unchanged) outcome = unchanged.errors();
  if (outcome.ok()) {
    code = *outcome;
  } else {
    print_message("error", outcome.errors());
    code = exit_code(outcome.errors());
  }
  if (auto written = finish_output(); !written) {
    print_message("error", written.errors());
    if (code == ExitCode::done || code == ExitCode::no) code = ExitCode::bad_input;
  }
  end_is_expected();
  return code;
} catch (const std::bad_alloc&) {
  end_without_memory();
}

}  // namespace hoist
