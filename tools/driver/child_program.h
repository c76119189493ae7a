// Running other programs: words without a shell, output into files, an end to each run. A run that is ended takes with
// it whatever it has started.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "ir/base/result.h"

namespace hoist {

/// The words that start this program again: its own file, unless it lives in another's process, which says so.
std::vector<std::string> this_program();
void set_this_program(std::vector<std::string> words);

/// The exit status as waitpid has it. Standard input is empty. Errors: it cannot be started (the hint is `install`), or
/// it takes more than `seconds` and was ended.
Result<int> run_program(const std::vector<std::string>& words, const std::filesystem::path& out,
                        const std::filesystem::path& err, double seconds, const std::string& install = "");

struct ProgramOptions {
  std::filesystem::path out, err;  ///< files; no `err` is this program's own
  double seconds = 0;
  std::string install = {};                   ///< the hint where the program cannot be started
  std::vector<std::string> environment = {};  ///< NAME=VALUE; in place of this program's own where there is one
  std::function<void()> meanwhile = {};       ///< called again and again while it runs
};
Result<int> run_program(const std::vector<std::string>& words, const ProgramOptions& options);

/// For a program that nobody waits for here.
struct ProgramStart {
  std::filesystem::path out, err;             ///< as in ProgramOptions
  std::string install = {};                   ///< as in ProgramOptions
  std::vector<std::string> environment = {};  ///< as in ProgramOptions
  int standard_input = -1;                    ///< an open file; empty where there is none
  bool own_group = false;                     ///< so that what it starts can be ended with it
};
Result<pid_t> start_program(const std::vector<std::string>& words, const ProgramStart& start);

/// This program's own environment, NAME=VALUE each.
std::vector<std::string> own_environment();
/// The same with another value of one variable.
std::vector<std::string> with_variable(std::vector<std::string> environment, const std::string& name,
                                       const std::string& value);

/// Ends those that run: they are in groups of their own, which a terminal's signals do not reach.
void end_programs();

}  // namespace hoist
