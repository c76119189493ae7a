// Parses a command line by the tables of options and commands.
#pragma once

#include "tools/cli/option_table.h"

namespace hoist {

struct ParsedCommand {
  const CommandRow* command = nullptr;  ///< null after --help and --version, which print their text
  Options options;
};

/// The words of a command line, with the name of the command. Errors are wrong use, with a hint for a misspelt name. An
/// old name of an option prints a note.
Result<ParsedCommand> parse_command(const std::vector<std::string>& words);

/// The text of `hoist --help`.
std::string program_help();

}  // namespace hoist
