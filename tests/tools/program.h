// The built hoist program as a user starts it: a process with its exit code and what it wrote.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hoist {

struct Ran {
  int code = -1;  ///< exit code; 128 + number of the signal that ended it
  std::string out, err;
};

/// Runs hoist with these words; `before` is shell text in front of it ("ulimit -f 1; ").
Ran run_hoist(const std::vector<std::string>& words, const std::string& before = "");
/// Any shell command.
Ran run_shell(const std::string& command);

/// Everything below the folder, as sorted relative paths: to see that nothing was left.
std::vector<std::string> files_below(const std::filesystem::path& folder);

}  // namespace hoist
