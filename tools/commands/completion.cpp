// hoist completion and hoist manual: what --help says, for shells and for man.
#include "ir/text/near_miss.h"
#include "tools/command.h"
#include "tools/command_texts.h"
#include "tools/files.h"
#include "tools/terminal.h"

namespace hoist {
namespace {

struct CompletionCommand {
  const CLI::App* program = nullptr;
  std::string shell;
};

Attempt<> completion(const CompletionCommand& command) {
  const std::vector<CommandText> texts = command_texts(*command.program);
  if (command.shell == "bash") say(bash_completion(texts));
  if (command.shell == "zsh") say(zsh_completion(texts));
  if (command.shell == "fish") say(fish_completion(texts));
  return ExitCode::done;
}

struct ManualCommand {
  const CLI::App* program = nullptr;
  std::string command, folder;
};

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
  if (!command.folder.empty()) return write_pages(texts, command.folder);
  for (const CommandText& text : texts) {
    if (text.name == command.command) {
      say(man_page(texts, text));
      return ExitCode::done;
    }
  }
  std::vector<std::string> names;
  for (const CommandText& text : texts) names.push_back(text.name);
  return usage_failure(command.command, "is not a command", did_you_mean(command.command, names));
}

}  // namespace

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
}

void add_manual(CLI::App& program, Action& action) {
  auto options = std::make_shared<ManualCommand>();
  options->program = &program;
  CLI::App& command = add_command(program, action, "manual", "print the man page of hoist or of a command",
                                  "  hoist manual compile | man -l -\n"
                                  "  hoist manual --output-dir man1",
                                  options, manual);
  command.add_option("command", options->command, "of which command (default: hoist itself)")->type_name("COMMAND");
  command.add_option("--output-dir", options->folder, "write all pages into this folder instead")->type_name("FOLDER");
}

}  // namespace hoist
