// What people see: results on standard output, messages and progress on standard error. Progress shows on a terminal
// only, so that a pipe gets nothing but results.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "tools/attempt.h"

namespace hoist {

/// Writes to standard output; a failure is kept for finish_output.
void say(std::string_view text);
template <class... Arguments>
void say_line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  say(fmt::format(format, std::forward<Arguments>(arguments)...) + "\n");
}

/// Names in models may hold anything; a terminal must not act on them: control characters are written as \x1b.
std::string printable(std::string_view text);

/// "hoist: error: where: what (hint)", one line a problem; `kind` is "error", "warning" or "note".
void complain(std::string_view kind, const Diagnostics& problems);
void complain(std::string_view kind, const std::string& text);

/// Flushes standard output: an error when not everything that was said could be written.
Result<Nothing> finish_output();

/// Rows with columns of equal width, the last one as long as it is.
std::string table(const std::vector<std::vector<std::string>>& rows);

/// One line on a terminal that is replaced as work goes on and gone at the end. Messages clear it first.
class Progress {
 public:
  Progress() = default;
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();
  void show(const std::string& text);
};

}  // namespace hoist
