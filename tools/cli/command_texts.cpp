#include "tools/cli/command_texts.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/cli/option_table.h"

namespace hoist {
namespace {

OptionText text_of(const OptionRow& row) {
  const bool has_help_preset = row.help.find("(default") != std::string::npos;
  return {row.names(),    row.is_flag() ? "" : row.argument,      row.choices(),
          row.help,       has_help_preset ? "" : default_of(row), row.group,
          row.is_required};
}

CommandText text_of(std::string_view name, std::string_view meaning, std::string_view example) {
  CommandText out{std::string(name), std::string(meaning), std::string(example), {}, {}};
  out.options.push_back({{"-h", "--help"}, "", {}, "print this help", "", "Options", false});
  std::vector<const OptionRow*> switches;
  const auto add_switches = [&] {
    if (switches.empty()) return;
    OptionText text{switches.front()->names(), "NAME=VALUE", {}, switches_help(switches, "; "), "",
                    switches.front()->group,   false};
    for (const OptionRow* row : switches) {
      if (*row->old_name != '\0') text.old_names.emplace_back(row->old_name);
      for (const std::string& value : row->choices())
        text.choices.push_back(std::string(row->switch_name()) + "=" + value);
    }
    out.options.push_back(std::move(text));
    switches.clear();
  };
  for (const OptionRow* row : rows_of(name)) {
    if (*row->group == '\0') continue;
    if (!row->switch_name().empty() && (switches.empty() || switches.front()->names() == row->names())) {
      switches.push_back(row);
      continue;
    }
    add_switches();
    (row->is_place() ? out.places : out.options).push_back(text_of(*row));
  }
  add_switches();
  return out;
}

std::string escaped(std::string_view text, std::string_view special, std::string_view before) {
  std::string out;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) out += before;
    out += c;
  }
  return out;
}

// Options of the program may follow every command too.
std::vector<OptionText> options_of(const std::vector<CommandText>& commands, const CommandText& command) {
  std::vector<OptionText> out = command.options;
  if (command.name.empty()) return out;
  for (const OptionText& option : commands[0].options) {
    const auto same = [&](const OptionText& known) { return known.names == option.names; };
    if (std::none_of(out.begin(), out.end(), same) && option.names.back() != "--version") out.push_back(option);
  }
  return out;
}

std::string joined(const std::vector<std::string>& words, const char* between = " ") {
  return fmt::format("{}", fmt::join(words, between));
}

std::vector<std::string> command_names(const std::vector<CommandText>& commands) {
  std::vector<std::string> out;
  for (const CommandText& command : commands) {
    if (!command.name.empty()) out.push_back(command.name);
  }
  return out;
}

// A word of a shell in single quotes.
std::string shell_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

}  // namespace

std::vector<CommandText> command_texts() {
  std::vector<CommandText> out = {text_of("", program_meaning, "")};
  out.front().options.push_back({{"-V", "--version"}, "", {}, "print the version", "", "Options", false});
  for (const CommandRow& row : command_rows()) out.push_back(text_of(row.name, row.meaning, row.example));
  return out;
}

std::string bash_completion(const std::vector<CommandText>& commands) {
  std::string values, words;
  for (const CommandText& command : commands) {
    std::vector<std::string> names;
    for (const OptionText& option : options_of(commands, command)) {
      names.insert(names.end(), option.names.begin(), option.names.end());
      if (option.choices.empty()) continue;
      std::vector<std::string> cases;
      for (const std::string& name : option.names) cases.push_back(command.name + "/" + name);
      values += fmt::format("    {}) words={} ;;\n", joined(cases, "|"), shell_quoted(joined(option.choices)));
    }
    for (const OptionText& place : command.places)
      names.insert(names.end(), place.choices.begin(), place.choices.end());
    if (command.name.empty()) {
      const std::vector<std::string> all = command_names(commands);
      names.insert(names.begin(), all.begin(), all.end());
    }
    words +=
        fmt::format("      {}) words={} ;;\n", command.name.empty() ? "''" : command.name, shell_quoted(joined(names)));
  }
  return "# Completion of hoist for bash: source <(hoist completion bash)\n"
         "_hoist() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command='' words='' i\n"
         "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
         "    if [[ ${COMP_WORDS[i]} != -* ]]; then command=${COMP_WORDS[i]}; break; fi\n"
         "  done\n"
         "  case $command/$previous in\n" +
         values +
         "  esac\n"
         "  if [[ -z $words ]]; then\n"
         "    case $command in\n" +
         words +
         "    esac\n"
         "  fi\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "  if [[ ${#COMPREPLY[@]} -eq 0 && -n $command ]]; then COMPREPLY=($(compgen -f -- \"$word\")); fi\n"
         "}\n"
         "complete -o filenames -F _hoist hoist\n";
}

std::string zsh_completion(const std::vector<CommandText>& commands) {
  const auto described = [](const std::string& text) { return escaped(text, "[]:\\", "\\"); };
  std::string list, cases;
  for (const CommandText& command : commands) {
    if (command.name.empty()) continue;
    list += "    " + shell_quoted(described(command.name) + ":" + described(command.what)) + "\n";
    cases += "    " + command.name + ")\n      _arguments \\\n";
    for (const OptionText& option : options_of(commands, command)) {
      std::string value;
      if (!option.choices.empty())
        value = ":" + option.value + ":(" + joined(option.choices) + ")";
      else if (!option.value.empty())
        value = ":" + described(option.value) + ":_files";
      for (const std::string& name : option.names)
        cases += "        " + shell_quoted("*" + name + "[" + described(option.what) + "]" + value) + " \\\n";
    }
    std::vector<std::string> choices;
    for (const OptionText& place : command.places)
      choices.insert(choices.end(), place.choices.begin(), place.choices.end());
    cases += "        " + shell_quoted("*:file:" + (choices.empty() ? "_files" : "(" + joined(choices) + ")")) +
             "\n      ;;\n";
  }
  return "#compdef hoist\n"
         "# Completion of hoist for zsh: hoist completion zsh > \"${fpath[1]}/_hoist\"\n"
         "_hoist() {\n"
         "  local -a commands=(\n" +
         list +
         "  )\n"
         "  if ((CURRENT == 2)); then\n"
         "    _describe command commands\n"
         "    return\n"
         "  fi\n"
         "  local command=$words[2]\n"
         "  words=(\"${(@)words[2,-1]}\")\n"
         "  ((CURRENT -= 1))\n"
         "  case $command in\n" +
         cases +
         "  esac\n"
         "}\n"
         "if [[ $funcstack[1] == _hoist ]]; then _hoist \"$@\"; else compdef _hoist hoist; fi\n";
}

std::string fish_completion(const std::vector<CommandText>& commands) {
  const auto quoted = [](const std::string& text) { return "'" + escaped(text, "\\'", "\\") + "'"; };
  std::string out = "# Completion of hoist for fish: hoist completion fish > ~/.config/fish/completions/hoist.fish\n";
  for (const CommandText& command : commands) {
    if (!command.name.empty())
      out += fmt::format("complete -c hoist -f -n __fish_use_subcommand -a {} -d {}\n", command.name,
                         quoted(command.what));
  }
  for (const CommandText& command : commands) {
    const std::string where =
        command.name.empty() ? "" : " -n " + quoted("__fish_seen_subcommand_from " + command.name);
    for (const OptionText& option : command.options) {
      out += "complete -c hoist" + where;
      for (const std::string& name : option.names)
        out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (!option.choices.empty())
        out += " -x -a " + quoted(joined(option.choices));
      else if (!option.value.empty())
        out += " -r";
      out += " -d " + quoted(option.what) + "\n";
    }
    for (const OptionText& place : command.places) {
      if (!place.choices.empty()) out += "complete -c hoist -f" + where + " -a " + quoted(joined(place.choices)) + "\n";
    }
  }
  return out;
}

namespace {

// Text in roff, with requests at the start of a line and special characters escaped.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '-')
      out += "\\-";
    else if (c == '\\')
      out += "\\e";
    else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n'))
      out += std::string("\\&") + c;
    else
      out += c;
  }
  return out;
}

std::string option_entry(const OptionText& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) names.push_back("\\fB" + roff(name) + "\\fR");
  std::string out = ".TP\n" + joined(names, ", ");
  if (!option.value.empty() && option.names.front().starts_with("-")) out += " \\fI" + roff(option.value) + "\\fR";
  out += "\n" + roff(option.what) + "\n";
  if (!option.choices.empty()) out += ".br\nOne of: " + roff(joined(option.choices, ", ")) + "\n";
  if (!option.preset.empty()) out += ".br\nDefault: " + roff(option.preset) + "\n";
  return out;
}

std::string synopsis(const CommandText& command) {
  if (command.name.empty()) return "\\fBhoist\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR]...";
  std::string out = "\\fBhoist " + roff(command.name) + "\\fR";
  for (const OptionText& place : command.places) {
    const std::string value = "\\fI" + roff(place.value.empty() ? place.names.front() : place.value) + "\\fR";
    out += place.required ? " " + value : " [" + value + "]";
  }
  return out + " [\\fIOPTION\\fR]...";
}

}  // namespace

std::string man_page(const std::vector<CommandText>& commands, const CommandText& command) {
  const std::string title = command.name.empty() ? "hoist" : "hoist-" + command.name;
  const std::string what = command.name.empty() ? "compiler of neural networks from ONNX to OpenCL" : command.what;
  std::string out = fmt::format(".TH {} 1 \"\" \"hoist {}\" \"hoist\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}\n",
                                roff(title), HOIST_VERSION, roff(title), roff(what), synopsis(command));
  if (command.name.empty()) {
    out += ".SH DESCRIPTION\n" + roff(command.what) + "\n.SH COMMANDS\n";
    for (const CommandText& each : commands) {
      if (!each.name.empty()) out += ".TP\n\\fB" + roff(each.name) + "\\fR\n" + roff(each.what) + "\n";
    }
  }
  out += ".SH OPTIONS\n";
  for (const OptionText& place : command.places) {
    OptionText shown = place;
    if (!place.value.empty()) shown.names = {place.value};
    out += option_entry(shown);
  }
  for (const OptionText& option : options_of(commands, command)) out += option_entry(option);
  if (!command.example.empty()) out += ".SH EXAMPLES\n.nf\n" + roff(command.example) + "\n.fi\n";
  std::vector<std::string> others;
  for (const CommandText& each : commands) {
    if (each.name != command.name)
      others.push_back("\\fB" + roff(each.name.empty() ? "hoist" : "hoist-" + each.name) + "\\fR(1)");
  }
  out += ".SH SEE ALSO\n" + joined(others, ",\n") + "\n";
  return out;
}

}  // namespace hoist
