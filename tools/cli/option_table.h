// The table of all options and the table of all commands. The command line, --help, completion, man pages, the options
// of the Python package and refusals are made from these tables.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tools/base/exit_code.h"
#include "tools/cli/options.h"

namespace hoist {

/// Applies the value of an option that no single member holds.
using SetOption = Result<Nothing> (*)(Options& options, const std::string& value);
using OptionMember = std::variant<bool*, int*, int64_t*, uint64_t*, double*, std::string*, std::vector<std::string>*,
                                  std::vector<double>*, std::optional<int64_t>*, SetOption>;

/// The subject that an option requires.
enum class OptionNeeds { nothing, model, budget };

struct OptionRow {
  const char* commands = "";  ///< separated by spaces; "" is the program itself
  /// "-o,--output"; a word without dashes is positional; "--pass fusion" is set by --pass fusion=VALUE; "--tune{60}" is
  /// a flag that may have a value, 60 by default
  const char* name = "";
  /// "FILE"; "" for a flag. "A,..." is a list with commas, "A..." several words, "A A" two words.
  const char* argument = "";
  std::string help;
  OptionMember (*member)(Options&) = nullptr;
  const char* group = "";  ///< the heading in --help; "" hides the row

  std::string values;  ///< "a|b|c", a range "1..4096", or "" for any value
  OptionNeeds subject = OptionNeeds::nothing;
  const char* excludes = "";  ///< names of other options, separated by spaces
  const char* needs = "";     ///< another option
  const char* old_name = "";  ///< former name, still accepted with a note
  bool is_required = false;
  Result<Nothing> (*check)(const std::string& value) = nullptr;

  OptionRow&& allowing(std::string these) && { return values = std::move(these), std::move(*this); }
  OptionRow&& only_for(OptionNeeds what) && { return subject = what, std::move(*this); }
  OptionRow&& excluding(const char* others) && { return excludes = others, std::move(*this); }
  OptionRow&& needing(const char* other) && { return needs = other, std::move(*this); }
  OptionRow&& formerly(const char* name_before) && { return old_name = name_before, std::move(*this); }
  OptionRow&& required() && { return is_required = true, std::move(*this); }
  OptionRow&& checked_by(Result<Nothing> (*how)(const std::string&)) && { return check = how, std::move(*this); }

  bool is_place() const { return name[0] != '-'; }
  bool is_flag() const { return argument[0] == '\0'; }
  /// "fusion" of "--pass fusion"; "" for other rows.
  std::string_view switch_name() const;
  /// {"-o", "--output"}; {"--pass"} of "--pass fusion".
  std::vector<std::string> names() const;
  /// The last of the names, and the switch: "--output", "--pass fusion".
  std::string key() const;
  std::vector<std::string> choices() const;  ///< of "a|b|c"
  bool is_of(std::string_view command) const;
};

const std::vector<OptionRow>& option_rows();

struct CommandRow {
  const char* name;
  const char* meaning;
  std::string example;
  Result<ExitCode> (*run)(const Options&);
};

const std::vector<CommandRow>& command_rows();

/// The meaning of the program itself.
inline constexpr char program_meaning[] =
    "hoist compiles ONNX models to bundles of OpenCL kernels or native code, and shows every intermediate stage. Exit "
    "codes: 0 success, 1 a negative answer, 2 wrong use, 3 bad input, 4 device error, 5 a self-check failed.";

/// The value of the row's member in `options` that have not been set, as text; "" for 0, none and false.
std::string default_of(const OptionRow& row);
/// Sets the row's member. Errors: the text is not a value of the row.
Result<Nothing> assign(const OptionRow& row, const std::string& text, Options& options);

/// The rows of a command, in order; rows of the program have the command "".
std::vector<const OptionRow*> rows_of(std::string_view command);
/// The row of an option that a command has: "--objective", "--pass fusion"; null if it has none.
const OptionRow* find_option(std::string_view command, std::string_view name);
/// The switches "--pass NAME" among these rows as one help text, each on a line that begins with `separator`.
std::string switches_help(const std::vector<const OptionRow*>& switches, const char* separator);

/// Wrong use if a given option of the command needs a subject that is absent.
Result<Nothing> refuse_given(std::string_view command, const Options& options, OptionNeeds needs);

}  // namespace hoist
