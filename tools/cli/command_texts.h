// The help of every command as data, from the tables of options and commands, for completions of shells and man pages.
#pragma once

#include <string>
#include <vector>

namespace hoist {

struct OptionText {
  std::vector<std::string> names;    ///< "-o", "--output"; none for a positional argument
  std::string value;                 ///< "FILE"; "" if it takes none
  std::vector<std::string> choices;  ///< the only allowed values, if they are limited
  std::string what, preset;          ///< its help; the value if it is not given
  std::string group;                 ///< the heading in --help
  bool required = false;
  std::vector<std::string> old_names = {};  ///< still accepted
};

struct CommandText {
  std::string name;  ///< "" is the program itself
  std::string what, example;
  std::vector<OptionText> options, places;
};

/// The program first, then its commands in order.
std::vector<CommandText> command_texts();

/// Completion of commands, options, their values and files.
std::string bash_completion(const std::vector<CommandText>& commands);
std::string zsh_completion(const std::vector<CommandText>& commands);
std::string fish_completion(const std::vector<CommandText>& commands);

/// The page of a command in roff, as man reads it; of the program where the command is commands[0].
std::string man_page(const std::vector<CommandText>& commands, const CommandText& command);

}  // namespace hoist
