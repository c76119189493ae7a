// Runs other programs: argument vectors without a shell, output into files, a time limit for each run. A timeout also
// ends every process that the program has started.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "ir/base/result.h"

namespace hoist {

/// The command that starts this program again: its own file, unless a host process has set another command.
std::vector<std::string> this_program();
void set_this_program(std::vector<std::string> words);

/// Runs a program and returns its exit status in the form of waitpid. Standard input is empty. Errors: the program
/// cannot be started (the hint is `install`), or it ran longer than `seconds` and was ended.
Result<int> run_program(const std::vector<std::string>& words, const std::filesystem::path& out,
                        const std::filesystem::path& err, double seconds, const std::string& install = "");

struct ProgramOptions {
  std::filesystem::path out, err;  ///< files; an empty `err` shares this program's standard error
  double seconds = 0;
  std::string install = {};                   ///< the hint if the program cannot be started
  std::vector<std::string> environment = {};  ///< NAME=VALUE; replaces this program's own environment if not empty
  std::function<void()> meanwhile = {};       ///< called repeatedly while the program runs
};
Result<int> run_program(const std::vector<std::string>& words, const ProgramOptions& options);

/// Options of a program that runs on its own while this program continues.
struct ProgramStart {
  std::filesystem::path out, err;             ///< as in ProgramOptions
  std::string install = {};                   ///< as in ProgramOptions
  std::vector<std::string> environment = {};  ///< as in ProgramOptions
  int standard_input = -1;                    ///< an open file descriptor; -1 means empty input
  bool own_group = false;                     ///< makes it possible to end the program with its children
};
Result<pid_t> start_program(const std::vector<std::string>& words, const ProgramStart& start);

/// The environment of this program, as NAME=VALUE strings.
std::vector<std::string> own_environment();
/// The environment with one variable set to another value.
std::vector<std::string> with_variable(std::vector<std::string> environment, const std::string& name,
                                       const std::string& value);

/// Ends the program that run_program is waiting for. It is in a process group of its own, which the terminal's signals
/// do not reach.
void end_programs();

}  // namespace hoist
