// Running other programs: words without a shell, output into files, an end to each run. A run that is ended takes with
// it whatever it has started.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "ir/result.h"

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

/// This program's own environment, in which one variable has that value.
std::vector<std::string> environment_with(const std::string& name, const std::string& value);

/// Ends those that run: they are in groups of their own, which a terminal's signals do not reach.
void end_programs();

}  // namespace hoist
