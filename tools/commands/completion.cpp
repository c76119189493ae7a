// hoist help, hoist completion and hoist manual: the --help texts for readers, for shells and for man.
#include <nlohmann/json.hpp>

#include "ir/text/parse/near_miss.h"
#include "tools/cli/command.h"
#include "tools/cli/command_line.h"
#include "tools/cli/command_texts.h"
#include "tools/cli/json_answer.h"
#include "tools/cli/terminal.h"
#include "tools/data/files.h"

namespace hoist {
namespace {

struct CompletionCommand {
  const CLI::App* program = nullptr;
  std::string shell, json;
};

Attempt<> completion(const CompletionCommand& command) {
  const std::vector<CommandText> texts = command_texts(*command.program);
  std::string script;
  if (command.shell == "bash") script = bash_completion(texts);
  if (command.shell == "zsh") script = zsh_completion(texts);
  if (command.shell == "fish") script = fish_completion(texts);
  say(script);
  return answer_json(command.json, {{"shell", command.shell}, {"script", script}});
}

struct ManualCommand {
  const CLI::App* program = nullptr;
  std::string command, folder, json;
};

nlohmann::ordered_json options_json(const std::vector<OptionText>& options) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const OptionText& option : options) {
    out.push_back({{"names", option.names},
                   {"value", option.value},
                   {"choices", option.choices},
                   {"meaning", option.what},
                   {"default", option.preset},
                   {"required", option.required}});
  }
  return out;
}

// The command that is named, or all of them.
nlohmann::ordered_json manual_json(const std::vector<CommandText>& texts, const std::string& named) {
  nlohmann::ordered_json out = {{"commands", nlohmann::ordered_json::array()}};
  for (const CommandText& text : texts) {
    if (!named.empty() && text.name != named) continue;
    out["commands"].push_back({{"name", text.name},
                               {"meaning", text.what},
                               {"example", text.example},
                               {"arguments", options_json(text.places)},
                               {"options", options_json(text.options)}});
  }
  return out;
}

Attempt<> write_pages(const std::vector<CommandText>& texts, const std::string& folder) {
  HOIST_STEP(FileSet files, ExitCode::bad_input, FileSet::begin(folder));
  for (const CommandText& text : texts) {
    const std::string name = (text.name.empty() ? "hoist" : "hoist-" + text.name) + ".1";
    HOIST_STEP_VOID(ExitCode::bad_input, write_file(files.reserve(name), man_page(texts, text)));
  }
  HOIST_STEP_VOID(ExitCode::bad_input, files.commit());
  say_line("{}: {} pages, man -l {}/hoist.1 shows the first", folder, texts.size(), folder);
  return ExitCode::done;
}

Attempt<> manual(const ManualCommand& command) {
  const std::vector<CommandText> texts = command_texts(*command.program);
  if (!command.folder.empty()) {
    HOIST_ATTEMPT([[maybe_unused]] ExitCode written, write_pages(texts, command.folder));
    return answer_json(command.json, manual_json(texts, ""));
  }
  for (const CommandText& text : texts) {
    if (text.name == command.command) {
      say(man_page(texts, text));
      return answer_json(command.json, manual_json(texts, command.command));
    }
  }
  std::vector<std::string> names;
  for (const CommandText& text : texts) names.push_back(text.name);
  return usage_failure(command.command, "is not a command", did_you_mean(command.command, names));
}

struct HelpCommand {
  const CLI::App* program = nullptr;
  std::string command, json;
};

// Parsed anew: the parser shows the help of the command that it has just seen.
Attempt<> help(const HelpCommand& command) {
  std::vector<std::string> words = {"--help"};
  if (!command.command.empty()) words.insert(words.begin(), command.command);
  HOIST_ATTEMPT([[maybe_unused]] ExitCode code, do_command(words));
  return answer_json(command.json, manual_json(command_texts(*command.program), command.command));
}

}  // namespace

void add_help(CLI::App& program, Action& action) {
  auto options = std::make_shared<HelpCommand>();
  options->program = &program;
  CLI::App& command =
      add_command(program, action, "help", "print the description and the options of a command, as its --help does",
                  "  hoist help compile", options, help);
  command.add_option("command", options->command, "the command (default: hoist itself)")->type_name("COMMAND");
  add_json_option(command, options->json, "commands with their options");
}

void add_completion(CLI::App& program, Action& action) {
  auto options = std::make_shared<CompletionCommand>();
  options->program = &program;
  CLI::App& command = add_command(program, action, "completion", "print a script that completes commands and options",
                                  "  source <(hoist completion bash)\n"
                                  "  hoist completion fish > ~/.config/fish/completions/hoist.fish",
                                  options, completion);
  command.add_option("shell", options->shell, "for which shell")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}))
      ->type_name("SHELL");
  add_json_option(command, options->json, "the script");
}

void add_manual(CLI::App& program, Action& action) {
  auto options = std::make_shared<ManualCommand>();
  options->program = &program;
  CLI::App& command = add_command(program, action, "manual", "print the man page of hoist or of a command",
                                  "  hoist manual compile | man -l -\n"
                                  "  hoist manual --output-dir man1",
                                  options, manual);
  command.add_option("command", options->command, "the command (default: hoist itself)")->type_name("COMMAND");
  command.add_option("--output-dir", options->folder, "write all pages into this folder instead")->type_name("FOLDER");
  add_json_option(command, options->json, "commands with their options");
}

}  // namespace hoist
