// The --help texts of every command, as data: completions for shells and man pages are made of the same texts, so that
// none of them is written twice. CLI11 decides the layout of the help.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace hoist {

struct OptionText {
  std::vector<std::string> names;    ///< "-o", "--output"; none where it has a place on the line
  std::string value;                 ///< "FILE"; "" where it takes none
  std::vector<std::string> choices;  ///< where only these values are allowed
  std::string what, preset;          ///< the help; the value if it is not given
  bool required = false;
};

struct CommandText {
  std::string name;  ///< "" is the program itself
  std::string what, example;
  std::vector<OptionText> options, places;
};

/// The program first, then its commands in order.
std::vector<CommandText> command_texts(const CLI::App& program);

/// Completion of commands, options, their values and files.
std::string bash_completion(const std::vector<CommandText>& commands);
std::string zsh_completion(const std::vector<CommandText>& commands);
std::string fish_completion(const std::vector<CommandText>& commands);

/// The page of a command in roff, as man reads it; of the program where the command is commands[0].
std::string man_page(const std::vector<CommandText>& commands, const CommandText& command);

}  // namespace hoist
