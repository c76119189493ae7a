#include "tools/cli/parse_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <regex>
#include <sstream>

#include "ir/text/parse/near_miss.h"
#include "tools/base/terminal.h"

namespace hoist {
namespace {

using Words = std::vector<std::string>;

std::optional<CLI::Validator> validator_of(const OptionRow& row) {
  if (row.check != nullptr) {
    return CLI::Validator(
        [check = row.check](std::string& text) {
          const auto checked = check(text);
          return checked ? std::string() : checked.errors().front().what + ", " + checked.errors().front().hint;
        },
        "");
  }
  if (row.values.empty()) return std::nullopt;
  const size_t dots = row.values.find("..");
  if (dots == std::string::npos) return CLI::IsMember(row.choices());
  const std::string low = row.values.substr(0, dots), high = row.values.substr(dots + 2);
  const auto is_integer = [](const std::string& text) {
    return text.find_first_not_of("0123456789") == std::string::npos;
  };
  if (is_integer(low) && is_integer(high)) return CLI::Range(int64_t{std::stoll(low)}, int64_t{std::stoll(high)});
  return CLI::Range(std::stod(low), std::stod(high));
}

/// The options of one command, or of the program, in the parser.
class CommandOptions {
 public:
  CommandOptions(CLI::App& app, const std::string& command) : app_(app), command_(command) {
    for (const OptionRow* row : rows_of(command)) {
      if (*row->old_name != '\0') add_old_name(*row);
      if (row->switch_name().empty())
        options_.emplace_back(row, add(*row));
      else
        switches_[row->names().back()].push_back(row);
    }
    for (const auto& [name, rows] : switches_) {
      const std::string help = switches_help(rows, "\n");
      CLI::Option* option = app_.add_option(name, help);
      option->type_name("NAME=VALUE")->group(rows.front()->group)->expected(1);
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
      switch_options_.emplace_back(name, option);
    }
    for (const auto& [row, option] : options_) relate(*row, *option);
  }

  /// Sets the members of all options on the command line.
  Result<Nothing> read(Options& out) const {
    for (const auto& [row, option] : options_) {
      if (option->count() == 0) continue;
      out.given.insert(row->key());
      for (const std::string& text : option->results())
        HOIST_TRY_VOID(with_kind(ErrorKind::usage, assign(*row, text, out)));
    }
    for (const auto& [name, option] : switch_options_) {
      for (const std::string& text : option->results()) {
        const size_t equals = std::min(text.find('='), text.size());
        const OptionRow* row = find_option(command_, name + " " + text.substr(0, equals));
        if (row == nullptr) return unknown_switch(name, text.substr(0, equals));
        HOIST_TRY_VOID(set_switch(*row, equals == text.size() ? "" : text.substr(equals + 1), out));
      }
    }
    for (const auto& [row, option] : old_names_) {
      if (option->count() == 0) continue;
      const std::string& value = option->results().back();
      print_old_name(std::string(row->old_name), row->key() + "=" + value);
      HOIST_TRY_VOID(set_switch(*row, value, out));
    }
    return Nothing{};
  }

  /// Long names that --help shows.
  Words long_names() const {
    Words out = {"--help"};
    for (const auto& [row, option] : options_) {
      if (!row->is_place() && *row->group != '\0') out.push_back(row->key());
    }
    for (const auto& [name, option] : switch_options_) out.push_back(name);
    return out;
  }
  bool has(const std::string& long_name) const { return app_.get_option_no_throw(long_name) != nullptr; }

 private:
  CLI::Option* add(const OptionRow& row) {
    CLI::Option* option = row.is_flag() ? app_.add_flag(row.name, row.help) : app_.add_option(row.name, row.help);
    option->group(row.group)->required(row.is_required);
    if (const auto validator = validator_of(row)) option->check(*validator);
    if (row.is_flag()) return option;
    const std::string argument = row.argument, preset = default_of(row);
    option->type_name(argument);
    if (!preset.empty() && row.help.find("(default") == std::string::npos) option->default_str(preset);
    Options unused;
    const OptionMember member = row.member(unused);
    if (argument.ends_with(",...")) option->delimiter(',');
    if (argument.find(' ') != std::string::npos)
      option->expected(2);
    else if (argument.ends_with("...") && !argument.ends_with(",..."))
      option->expected(-1);
    else if (!std::holds_alternative<std::string*>(member))
      option->expected(1);
    const bool repeats = std::holds_alternative<std::vector<std::string>*>(member) || argument.ends_with(",...") ||
                         (std::holds_alternative<SetOption>(member) && argument.find('=') != std::string::npos);
    if (repeats) option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    return option;
  }

  void add_old_name(const OptionRow& row) {
    old_names_.emplace_back(&row, app_.add_option(row.old_name, row.help)->group(""));
  }

  void relate(const OptionRow& row, CLI::Option& option) {
    for (const char* others : {row.excludes, row.needs}) {
      std::istringstream names(others);
      for (std::string name; names >> name;) {
        CLI::Option* other = app_.get_option_no_throw(name);
        if (other == nullptr) continue;
        if (others == row.excludes)
          option.excludes(other);
        else
          option.needs(other);
      }
    }
  }

  Diagnostic unknown_switch(const std::string& option, const std::string& name) const {
    Words names;
    for (const OptionRow* row : switches_.at(option)) names.emplace_back(row->switch_name());
    return usage_error(option + " " + name, "is not a switch of hoist " + command_,
                       did_you_mean(name, names, "hoist " + command_ + " --help lists them"));
  }

  Result<Nothing> set_switch(const OptionRow& row, std::string value, Options& out) const {
    if (const auto validator = validator_of(row)) {
      const std::string error = (*validator)(value);
      if (!error.empty())
        return usage_error(row.key(), error,
                           did_you_mean(value, row.choices(), "hoist " + command_ + " --help shows how"));
    }
    out.given.insert(row.key());
    HOIST_TRY_VOID(with_kind(ErrorKind::usage, assign(row, value, out)));
    return Nothing{};
  }

  CLI::App& app_;
  std::string command_;
  std::vector<std::pair<const OptionRow*, CLI::Option*>> options_, old_names_;
  std::map<std::string, std::vector<const OptionRow*>> switches_;
  std::vector<std::pair<std::string, CLI::Option*>> switch_options_;
};

/// CLI11 lists excluded and needed options by address, in an order that differs between runs; here names are sorted.
class SortedRelations : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    std::istringstream text(CLI::Formatter::make_option_opts(option));
    Words words{std::istream_iterator<std::string>(text), {}};
    const auto is_label = [](const std::string& word) { return word == "Excludes:" || word == "Needs:"; };
    for (auto label = std::find_if(words.begin(), words.end(), is_label); label != words.end();) {
      const auto end = std::find_if(label + 1, words.end(), is_label);
      std::sort(label + 1, end);
      label = end;
    }
    std::string out;
    for (const std::string& word : words) out += " " + word;
    return out;
  }
};

/// The parser with all commands.
struct Parser {
  CLI::App app{program_meaning, "hoist"};
  std::map<std::string, CommandOptions> options;  ///< options by command; "" is the program

  Parser() {
    app.formatter(std::make_shared<SortedRelations>());
    app.set_version_flag("-V,--version", "hoist " HOIST_VERSION);
    app.set_help_flag("-h,--help", "print this help");
    app.fallthrough();             // options of the program may follow a command's name
    app.require_subcommand(0, 1);  // a word after a command is never another command: hoist manual compile
    options.try_emplace("", app, "");
    for (const CommandRow& row : command_rows()) {
      CLI::App& command = *app.add_subcommand(row.name, row.meaning);
      command.footer("Example:\n" + row.example);
      options.try_emplace(row.name, command, row.name);
    }
  }
};

// Reports faults of words that the parser would only call unexpected, or would report after other faults.
Result<Nothing> check_names(const Parser& parser, const Words& words) {
  const std::string& name = words.front();
  if (name.starts_with("-")) return Nothing{};
  const auto command = parser.options.find(name);
  if (command == parser.options.end()) {
    Words commands;
    for (const CommandRow& row : command_rows()) commands.emplace_back(row.name);
    if (name.ends_with(".onnx")) return usage_error(name, "is not a command", "hoist check " + name);
    return usage_error(name, "is not a command", did_you_mean(name, commands, "hoist --help lists them"));
  }
  Words known = command->second.long_names();
  const Words common = parser.options.at("").long_names();
  known.insert(known.end(), common.begin(), common.end());
  Diagnostics problems;
  for (size_t i = 1; i < words.size() && words[i] != "--"; ++i) {
    const std::string option = words[i].substr(0, words[i].find('='));
    if (!option.starts_with("--") || command->second.has(option) || parser.app.get_option_no_throw(option) != nullptr)
      continue;
    problems.push_back({option, "is not an option of hoist " + name,
                        did_you_mean(option, known, "hoist " + name + " --help lists them")});
  }
  if (problems.empty()) return Nothing{};
  return with_kind(ErrorKind::usage, problems);
}

std::string lower_case_start(std::string text) {
  if (text.size() > 1 && std::islower(static_cast<unsigned char>(text[1])) != 0) {
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  }
  while (text.ends_with('.') || text.ends_with('\n')) text.pop_back();
  return text;
}

// Removes trailing zeros: the parser writes limits as 1.000000.
std::string without_zeros(const std::string& text) {
  static const std::regex decimals(R"(\d+\.\d+)");
  std::string out;
  auto from = text.begin();
  for (std::sregex_iterator found(text.begin(), text.end(), decimals), end; found != end; ++found) {
    out.append(from, text.begin() + found->position());
    std::string number = found->str();
    while (number.ends_with('0')) number.pop_back();
    if (number.ends_with('.')) number.pop_back();
    out += number;
    from = text.begin() + found->position() + found->length();
  }
  return out.append(from, text.end());
}

// An empty word is always wrong, most often an unset variable of a script.
Result<Nothing> refuse_empty_words(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    const auto& given = option->results();
    if (std::find(given.begin(), given.end(), "") != given.end())
      return usage_error(option->get_name(), "is empty", "hoist " + command.get_name() + " --help shows how");
  }
  return Nothing{};
}

// Breaks descriptions in their column; examples stay unchanged, so that they can be copied.
std::string help_text(const std::string& help) {
  constexpr size_t usual_width = 80, description_column = 30;
  const size_t width = output_width() == 0 ? usual_width : output_width();
  const size_t example = std::min(help.find("Example:\n"), help.size());
  std::string out;
  std::istringstream lines(help.substr(0, example));
  for (std::string line; std::getline(lines, line);)
    out += wrapped(line + "\n", width, line.starts_with("  ") ? description_column : 0);
  return out + help.substr(example);
}

}  // namespace

std::string program_help() { return help_text(Parser().app.help()); }

Result<ParsedCommand> parse_command(const Words& words) {
  Parser parser;
  HOIST_TRY_VOID(check_names(parser, words));
  try {
    parser.app.parse(Words(words.rbegin(), words.rend()));  // the parser reads them from the end
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    if (parser.app.exit(error, out, err) == 0) {  // --help and --version
      say(help_text(out.str()));
      return ParsedCommand{};
    }
    const auto used = parser.app.get_subcommands();
    const std::string name = used.empty() ? "" : " " + used.front()->get_name();
    return usage_error("hoist" + name, lower_case_start(without_zeros(error.what())),
                       "hoist" + name + " --help shows how");
  }
  const auto used = parser.app.get_subcommands();
  if (used.empty()) return usage_error("", "no command given", "hoist --help lists them");
  HOIST_TRY_VOID(refuse_empty_words(*used.front()));
  ParsedCommand out;
  HOIST_TRY_VOID(parser.options.at("").read(out.options));
  const std::string name = used.front()->get_name();
  HOIST_TRY_VOID(parser.options.at(name).read(out.options));
  for (const CommandRow& row : command_rows()) {
    if (row.name == name) out.command = &row;
  }
  return out;
}

}  // namespace hoist
