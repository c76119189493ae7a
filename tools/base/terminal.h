// The user's view: results on standard output, messages and progress on standard error. Progress is a changing line on
// a terminal, and otherwise an occasional line. Names in models and bundles may hold any bytes, and a terminal must not
// act on them: all output through these functions is escaped here, and nowhere else. A program that contains the
// compiler receives all output as an Audience instead.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "ir/base/result.h"
#include "ir/base/stopwatch.h"

namespace hoist {

/// Text that is safe to print on a terminal: control characters (of ASCII and Unicode), marks that change the
/// writing direction, and bytes that are not UTF-8 become \x1b, byte by byte.
std::string printable(std::string_view text);

/// The receiver of all output instead of standard output and standard error. The functions may be called by any thread,
/// one at a time.
struct Audience {
  std::function<void(std::string_view lines)> result;  ///< printable lines, as passed by say()
  std::function<void(std::string_view content)> file;  ///< output for the file "-"
  std::function<void(std::string_view kind, const Diagnostic& problem)> message;  ///< diagnostics, not escaped
  std::function<void(const std::string& text)> progress;                          ///< "" at the end
};

/// During the lifetime of this object `audience` receives all output, and afterwards the previous audience does. One
/// per process. The audience must live longer.
class WithAudience {
 public:
  explicit WithAudience(const Audience& audience);
  explicit WithAudience(Audience&&) = delete;
  ~WithAudience();
  WithAudience(const WithAudience&) = delete;
  WithAudience& operator=(const WithAudience&) = delete;

 private:
  const Audience* before_;
};

/// Writes text of several lines to standard output, each of them printable; a failure is kept for finish_output.
void say(std::string_view lines);

/// From now on results are not printed on standard output, which is reserved for JSON. An audience receives both
/// separately.
void keep_results_quiet();

/// Passes the content of the file "-" to the audience; false if there is none and the caller has to write it to
/// standard output.
bool heard_as_file(std::string_view content);

/// The argument of print_line: strings are escaped, other types stay.
template <class Argument>
decltype(auto) shown(const Argument& argument) {
  if constexpr (std::is_convertible_v<const Argument&, std::string_view>)
    return printable(argument);
  else
    return argument;
}

/// Prints one line, whatever the arguments contain.
template <class... Arguments>
void print_line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  const std::tuple<std::decay_t<decltype(shown(arguments))>...> texts(shown(arguments)...);
  say(std::apply(
          [&](const auto&... text) { return fmt::vformat(fmt::string_view(format), fmt::make_format_args(text...)); },
          texts) +
      "\n");
}

/// From now on only errors and results are printed: no progress, notes, warnings or summaries.
/// An audience still receives everything.
void print_only_errors();
bool prints_summaries();

/// Prints one line about the files that a command has written, which are its result.
template <class... Arguments>
void print_summary(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  if (prints_summaries()) print_line(format, std::forward<Arguments>(arguments)...);
}

/// "hoist: error: where: what (hint)", one line per problem; `kind` is "error", "warning" or "note".
void print_message(std::string_view kind, const Diagnostics& problems);
void print_message(std::string_view kind, const std::string& text);
/// A note that `name`, a former name (perhaps after its place in a file), is now `present`.
void print_old_name(const std::string& name, const std::string& present);
/// The present name for a user's name of a pass, rule or strategy, with a note if that is a former name.
std::string with_present_name(const std::string& name);

/// Flushes standard output: an error if any output could not be written.
Result<Nothing> finish_output();

/// The number of columns of results: COLUMNS, or the width of their terminal; 0 (no limit) in files and pipes, whose
/// lines are for programs.
size_t output_width();

/// Breaks lines longer than `width` (0: none) between words; the next line starts with `indent` spaces.
std::string wrapped(std::string_view text, size_t width, size_t indent);

/// Rows with columns of equal width, the last one as wide as its text; cells are escaped. If that exceeds `width` (0:
/// no limit), the last column is broken between words, below the others if they leave too little space; columns that do
/// not fit at all follow as a table of their own, with the first column before them.
std::string table(const std::vector<std::vector<std::string>>& rows, size_t width = output_width());

/// The progress of long work. On a terminal one line that is updated and cleared at the end; messages clear it first.
/// Otherwise a line every `seconds_between_lines`, the first one `seconds_before_lines` after the command began.
class Progress {
 public:
  Progress() = default;
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();
  /// `share` is the finished part of the whole, 0 to 1, from which the remaining time follows; NaN if it is unknown.
  void show(const std::string& text, double share = std::nan(""));

  static constexpr double seconds_before_lines = 10, seconds_between_lines = 20;

 private:
  std::string how_far(double share);

  std::optional<Stopwatch> since_;  ///< set once a share was known
  double first_share_ = 0;
};

/// An approximate duration: "12 s", "3 min", "2 h".
std::string rough_time(double seconds);

/// "#####-----" and so on, `width` characters.
std::string progress_bar(double share, size_t width);

}  // namespace hoist
