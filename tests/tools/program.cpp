#include "tests/tools/program.h"

#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "ir/base/temporary_folder.h"

namespace hoist {
namespace {

std::string quoted(const std::string& word) {
  std::string out = "'";
  for (char c : word) {
    if (c == '\'')
      out += "'\\''";
    else
      out += c;
  }
  return out + "'";
}

std::string content(const std::filesystem::path& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

}  // namespace

Ran run_shell(const std::string& command) {
  auto folder = TemporaryFolder::make();
  if (!folder) return {-1, "", folder.errors()[0].text()};
  const auto out = folder->path() / "out", err = folder->path() / "err";
  const int status = std::system(("(" + command + ") >" + quoted(out) + " 2>" + quoted(err) + " </dev/null").c_str());
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {code, content(out), content(err)};
}

Ran run_hoist(const std::vector<std::string>& words, const std::string& before) {
  std::string command = before + quoted(HOIST_PROGRAM);
  for (const std::string& word : words) command += " " + quoted(word);
  return run_shell(command);
}

std::vector<std::string> files_below(const std::filesystem::path& folder) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    out.push_back(std::filesystem::relative(entry.path(), folder).string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace hoist
