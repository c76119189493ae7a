// hoist help, hoist completion and hoist manual: the --help texts for readers, for shells and for man.
#include <nlohmann/json.hpp>

#include "ir/text/parse/near_miss.h"
#include "tools/base/files.h"
#include "tools/base/json_answer.h"
#include "tools/base/terminal.h"
#include "tools/cli/command.h"
#include "tools/cli/command_line.h"
#include "tools/cli/command_texts.h"

namespace hoist {

Result<ExitCode> commands::completion(const Options& command) {
  const std::vector<CommandText> texts = command_texts();
  std::string script;
  if (command.subject == "bash") script = bash_completion(texts);
  if (command.subject == "zsh") script = zsh_completion(texts);
  if (command.subject == "fish") script = fish_completion(texts);
  say(script);
  return done(answer_json(command.json, {{"shell", command.subject}, {"script", script}}));
}

namespace {

nlohmann::ordered_json options_json(const std::vector<OptionText>& options) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const OptionText& option : options) {
    out.push_back({{"names", option.names},
                   {"value", option.value},
                   {"choices", option.choices},
                   {"meaning", option.what},
                   {"default", option.preset},
                   {"group", option.group},
                   {"required", option.required},
                   {"old_names", option.old_names}});
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

Result<Nothing> write_pages(const std::vector<CommandText>& texts, const std::string& folder) {
  HOIST_TRY(FileSet files, FileSet::begin(folder));
  for (const CommandText& text : texts) {
    const std::string name = (text.name.empty() ? "hoist" : "hoist-" + text.name) + ".1";
    HOIST_TRY_VOID(write_file(files.reserve(name), man_page(texts, text)));
  }
  HOIST_TRY_VOID(files.commit());
  print_line("{}: {} pages, man -l {}/hoist.1 shows the first", folder, texts.size(), folder);
  return Nothing{};
}

}  // namespace

Result<ExitCode> commands::manual(const Options& command) {
  const std::vector<CommandText> texts = command_texts();
  if (!command.output.empty()) {
    HOIST_TRY_VOID(write_pages(texts, command.output));
    return done(answer_json(command.json, manual_json(texts, "")));
  }
  for (const CommandText& text : texts) {
    if (text.name == command.subject) {
      say(man_page(texts, text));
      return done(answer_json(command.json, manual_json(texts, command.subject)));
    }
  }
  std::vector<std::string> names;
  for (const CommandText& text : texts) names.push_back(text.name);
  return usage_error(command.subject, "is not a command", did_you_mean(command.subject, names));
}

Result<ExitCode> commands::help(const Options& command) {
  std::vector<std::string> words = {"--help"};
  if (!command.subject.empty()) words.insert(words.begin(), command.subject);
  HOIST_TRY_VOID(do_command(words));
  return done(answer_json(command.json, manual_json(command_texts(), command.subject)));
}

}  // namespace hoist
