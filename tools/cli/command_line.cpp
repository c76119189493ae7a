#include "tools/cli/command_line.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <new>
#include <optional>
#include <regex>
#include <sstream>
#include <thread>

#include "backends/runtime/hoist_runtime.h"
#include "ir/base/temporary_folder.h"
#include "ir/text/parse/near_miss.h"
#include "lowering/rules/rules.h"
#include "tools/cli/command.h"
#include "tools/cli/interruption.h"
#include "tools/cli/log.h"
#include "tools/cli/terminal.h"
#include "tools/cli/unexpected_end.h"
#include "tools/data/file_lock.h"
#include "tools/driver/child_program.h"

namespace hoist {
namespace {

constexpr char about[] =
    "hoist compiles ONNX models to OpenCL bundles, and shows every intermediate stage. Exit codes: 0 success, 1 a "
    "negative answer, 2 wrong use, 3 bad input, 4 device error, 5 a self-check failed.";

// Explains errors that the parser would only call unexpected, or would report after another error.
std::optional<Failure> misspelt(CLI::App& program, const std::vector<std::string>& words) {
  if (words.empty()) return std::nullopt;
  std::vector<std::string> commands;
  for (const CLI::App* command : program.get_subcommands({})) commands.push_back(command->get_name());
  const std::string& name = words.front();
  if (name.starts_with("-")) return std::nullopt;
  if (std::find(commands.begin(), commands.end(), name) == commands.end()) {
    if (name.ends_with(".onnx")) return usage_failure(name, "is not a command", "hoist check " + name);
    return usage_failure(name, "is not a command", did_you_mean(name, commands, "hoist --help lists them"));
  }
  CLI::App* command = program.get_subcommand(name);
  std::vector<std::string> known;
  for (const CLI::App* app : {static_cast<const CLI::App*>(command), static_cast<const CLI::App*>(&program)}) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& long_name : option->get_lnames()) known.push_back("--" + long_name);
    }
  }
  Diagnostics problems;
  for (size_t i = 1; i < words.size() && words[i] != "--"; ++i) {
    const std::string option = words[i].substr(0, words[i].find('='));
    if (!option.starts_with("--") || std::find(known.begin(), known.end(), option) != known.end()) continue;
    problems.push_back({option, "is not an option of hoist " + name,
                        did_you_mean(option, known, "hoist " + name + " --help lists them")});
  }
  if (problems.empty()) return std::nullopt;
  return Failure{ExitCode::usage, problems};
}

std::string lower_case_start(std::string text) {
  if (text.size() > 1 && std::islower(static_cast<unsigned char>(text[1])) != 0) {
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  }
  while (text.ends_with('.') || text.ends_with('\n')) text.pop_back();
  return text;
}

// The parser writes limits as 1.000000.
std::string without_zeros(const std::string& text) {
  static const std::regex decimals(R"(\d+\.\d+)");
  std::string out;
  auto from = text.begin();
  for (std::sregex_iterator found(text.begin(), text.end(), decimals), end; found != end; ++found) {
    out.append(from, text.begin() + found->position());
    std::string number = found->str();
    while (number.ends_with('0')) number.pop_back();
    if (number.ends_with('.')) number.pop_back();
    out += number;
    from = text.begin() + found->position() + found->length();
  }
  return out.append(from, text.end());
}

// A script's variable that is not set, most often: no option and no argument has a use for "".
std::optional<Failure> empty_word(const CLI::App& program) {
  for (const CLI::App* command : program.get_subcommands()) {
    for (const CLI::Option* option : command->get_options()) {
      const auto& given = option->results();
      if (std::find(given.begin(), given.end(), "") != given.end())
        return usage_failure(option->get_name(), "is empty", "hoist " + command->get_name() + " --help shows how");
    }
  }
  return std::nullopt;
}

// Descriptions in their column; examples stay as they are, so that they can be copied.
std::string help_text(const std::string& help) {
  constexpr size_t usual_width = 80, description_column = 30;
  const size_t width = output_width() == 0 ? usual_width : output_width();
  const size_t example = std::min(help.find("Example:\n"), help.size());
  std::string out;
  std::istringstream lines(help.substr(0, example));
  for (std::string line; std::getline(lines, line);)
    out += wrapped(line + "\n", width, line.starts_with("  ") ? description_column : 0);
  return out + help.substr(example);
}

}  // namespace

Attempt<> do_command(const std::vector<std::string>& words) {
  if (std::getenv("HOIST_RULES_FOLDER") != nullptr) HOIST_STEP_VOID(ExitCode::bad_input, check_own_rules());
  CLI::App program(about, "hoist");
  program.set_version_flag("-V,--version", "hoist " HOIST_VERSION);
  program.set_help_flag("-h,--help", "list the commands, and print an example");
  program.fallthrough();             // options for every command may follow its name
  program.require_subcommand(0, 1);  // a word after a command is never another command: hoist manual compile
  program
      .add_option_function<std::string>("--log-level", set_log_level,
                                        "log to standard error, for any command: passes and kernels with their times, "
                                        "hits of the cache (default: warning)")
      ->type_name("LEVEL")
      ->check(CLI::IsMember(log_levels()));
  auto* verbose = program.add_flag_callback(
      "-v,--verbose", [] { set_log_level("info"); }, "--log-level info");
  program
      .add_flag_callback("-q,--quiet", say_only_errors, "print only errors on standard error: no progress, no notes")
      ->excludes(verbose);
  Action action;
  for (auto add : {add_check,     add_compile, add_run,         add_evaluate, add_test,     add_verify,   add_inspect,
                   add_explain,   add_rewrite, add_bisect,      add_reduce,   add_export,   add_bench,    add_tune,
                   add_worker,    add_report,  add_sensitivity, add_devices,  add_profiles, add_language, add_rules,
                   add_operators, add_help,    add_completion,  add_manual}) {
    add(program, action);
  }
  if (words.empty()) {
    say(help_text(program.help()));
    return usage_failure("", "no command given", "hoist COMMAND --help explains one");
  }
  if (auto failure = misspelt(program, words)) return *failure;
  try {
    program.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // the parser takes them from the end
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    if (program.exit(error, out, err) == 0) {  // --help and --version
      say(help_text(out.str()));
      return ExitCode::done;
    }
    const auto used = program.get_subcommands();
    const std::string name = used.empty() ? "" : " " + used.front()->get_name();
    return usage_failure("hoist" + name, lower_case_start(without_zeros(error.what())),
                         "hoist" + name + " --help shows how");
  }
  if (auto failure = empty_word(program)) return *failure;
  if (!action) return usage_failure("", "no command given", "hoist --help lists them");
  return action();
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
  // All threads that are started from here on have them blocked too.
  if (::pthread_sigmask(SIG_BLOCK, &signals, nullptr) != 0) return;
  const auto wait = [signals] {
    int number = 0;
    do {
      if (::sigwait(&signals, &number) != 0) return;
    } while (taken_as_interruption(number));
    end_programs();
    remove_locks_on_signal();
    remove_on_signal();
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
  if (outcome.ok()) {
    code = *outcome;
  } else {
    complain("error", outcome.failure().problems);
    code = outcome.failure().code;
  }
  if (auto written = finish_output(); !written) {
    complain("error", written.errors());
    if (code == ExitCode::done || code == ExitCode::no) code = ExitCode::bad_input;
  }
  end_is_expected();
  return code;
} catch (const std::bad_alloc&) {
  end_without_memory();
}

}  // namespace hoist
