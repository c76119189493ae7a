// Tests of the option table: its rows are consistent, and the command line, --help, completion, JSON and refusals have
// every row.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/tools/program.h"
#include "tools/base/terminal.h"
#include "tools/cli/command_texts.h"
#include "tools/cli/parse_options.h"

namespace hoist::options_test {

using testing::HasSubstr;

std::vector<std::string> commands_of(const OptionRow& row) {
  std::vector<std::string> out;
  if (*row.commands == '\0') return {""};
  for (const CommandRow& command : command_rows()) {
    if (row.is_of(command.name)) out.emplace_back(command.name);
  }
  return out;
}

// A value that the row accepts.
std::string some_value(const OptionRow& row) {
  if (!row.choices().empty()) return row.choices().back();
  const size_t dots = row.values.find("..");
  return dots == std::string::npos ? "5" : row.values.substr(0, dots);
}

// The words of a command with what it requires.
std::vector<std::string> words_of(const std::string& command) {
  std::vector<std::string> out = {command};
  for (const OptionRow* row : rows_of(command)) {
    if (!row->is_required) continue;
    if (!row->is_place()) out.push_back(row->key());
    out.push_back(some_value(*row));
  }
  return out;
}

TEST(Options, RowsNameCommandsAndOtherOptions) {
  for (const OptionRow& row : option_rows()) {
    const std::string text = row.commands;
    const auto words = static_cast<size_t>(std::count(text.begin(), text.end(), ' ')) + 1;
    EXPECT_EQ(commands_of(row).size(), words) << row.key() << " of " << text;
    EXPECT_TRUE(*row.group == '\0' || !row.help.empty()) << row.key();
    for (const char* others : {row.excludes, row.needs}) {
      std::istringstream names(others);
      for (std::string name; names >> name;) {
        const std::vector<std::string> commands = commands_of(row);
        EXPECT_TRUE(std::any_of(commands.begin(), commands.end(),
                                [&](const std::string& command) { return find_option(command, name) != nullptr; }))
            << row.key() << " names " << name;
      }
    }
  }
}

TEST(Options, NamesAreUniqueInACommand) {
  for (const CommandRow& command : command_rows()) {
    std::set<std::string> names;
    for (const OptionRow* row : rows_of(command.name)) {
      EXPECT_TRUE(names.insert(row->key()).second) << command.name << " " << row->key();
      const bool has_old_name = *row->old_name != '\0';
      EXPECT_TRUE(!has_old_name || names.insert(row->old_name).second) << row->old_name;
    }
  }
}

TEST(Options, DefaultsAndChoicesAreValues) {
  for (const OptionRow& row : option_rows()) {
    const std::vector<std::string> choices = row.choices();
    const std::string preset = default_of(row);
    const bool is_choice = std::find(choices.begin(), choices.end(), preset) != choices.end();
    EXPECT_TRUE(choices.empty() || preset.empty() || is_choice) << row.key() << " " << preset;
    for (const std::string& choice : choices) {
      if (*row.commands == '\0') continue;  // sets the log of this process
      Options options;
      EXPECT_TRUE(assign(row, choice, options).ok()) << row.key() << " " << choice;
    }
  }
}

TEST(Options, TheCommandLineTakesEveryOption) {
  for (const CommandRow& command : command_rows()) {
    for (const OptionRow* row : rows_of(command.name)) {
      if (row->is_place() || row->is_required || row->key() == "--target") continue;
      std::vector<std::string> words = words_of(command.name);
      const std::string value = row->key() == "--dim" ? "N=5" : some_value(*row);
      if (!row->switch_name().empty()) {
        words.insert(words.end(), {row->names().back(), std::string(row->switch_name()) + "=" + value});
      } else {
        words.push_back(row->names().back());
        if (!row->is_flag()) words.push_back(value);
        if (row->key() == "--compare") words.push_back(value);
      }
      for (std::string needed = row->needs; !needed.empty();) {
        const OptionRow* other = find_option(command.name, needed);
        ASSERT_NE(other, nullptr) << row->key();
        words.push_back(needed);
        if (!other->is_flag()) words.emplace_back("5");
        needed = other->needs;
      }
      const auto parsed = parse_command(words);
      ASSERT_TRUE(parsed.ok()) << testing::PrintToString(words) << parsed.errors().front().text();
      EXPECT_TRUE(parsed->options.is_given(row->key())) << command.name << " " << row->key();
    }
  }
}

TEST(Options, OldNamesSetTheSameMember) {
  std::vector<std::string> notes;
  const Audience audience = {[](std::string_view) {}, [](std::string_view) {},
                             [&](std::string_view kind, const Diagnostic& problem) {
                               notes.push_back(std::string(kind) + ": " + problem.text());
                             },
                             [](const std::string&) {}};
  const WithAudience hears(audience);
  size_t count = 0;
  for (const OptionRow& row : option_rows()) {
    if (*row.old_name == '\0') continue;
    ++count;
    const std::string value = some_value(row);
    for (const std::string& command : commands_of(row)) {
      std::vector<std::string> words = words_of(command);
      words.insert(words.end(), {row.old_name, value});
      notes.clear();
      const auto parsed = parse_command(words);
      ASSERT_TRUE(parsed.ok()) << parsed.errors().front().text();
      EXPECT_TRUE(parsed->options.is_given(row.key())) << row.key();
      ASSERT_EQ(notes.size(), 1u) << row.key();
      EXPECT_THAT(notes[0], HasSubstr(std::string(row.old_name) + " is an old name: write " + row.key() + "=" + value));
      words.back() = "none of them";
      EXPECT_FALSE(parse_command(words).ok()) << row.key();
    }
  }
  EXPECT_EQ(count, 9u);
}

TEST(Options, SwitchesAreRefusedWithAHint) {
  const auto refused = [](const std::vector<std::string>& words) {
    const auto parsed = parse_command(words);
    EXPECT_FALSE(parsed.ok());
    return parsed.ok() ? "" : parsed.errors().front().text();
  };
  EXPECT_EQ(refused({"compile", "m.onnx", "--pass", "fussion=none"}),
            "--pass fussion: is not a switch of hoist compile (did you mean fusion?)");
  EXPECT_EQ(refused({"compile", "m.onnx", "--pass", "fusion=nome"}),
            "--pass fusion: nome not in {auto,none,launch} (did you mean none?)");
  EXPECT_EQ(refused({"compile", "m.onnx", "--pas", "fusion=none"}),
            "--pas: is not an option of hoist compile (did you mean --pass?)");
  EXPECT_THAT(refused({"compile", "m.onnx", "--bound", "unrolled-steps=0"}), HasSubstr("--bound unrolled-steps: "));
  EXPECT_THAT(refused({"compile", "m.onnx", "--pass", "fusion"}), HasSubstr("--pass fusion: "));
}

TEST(Options, HelpJsonAndCompletionHaveEveryRow) {
  const std::vector<CommandText> texts = command_texts();
  const std::string scripts[] = {bash_completion(texts), zsh_completion(texts), fish_completion(texts)};
  for (const CommandRow& command : command_rows()) {
    const std::string help = run_hoist({command.name, "--help"}).out;
    const auto text =
        std::find_if(texts.begin(), texts.end(), [&](const auto& each) { return each.name == command.name; });
    ASSERT_NE(text, texts.end());
    for (const OptionRow* row : rows_of(command.name)) {
      if (*row->group == '\0') continue;
      const std::string name = row->names().back();
      EXPECT_THAT(help, HasSubstr(name)) << command.name;
      const std::string on_a_line = "\n" + std::string(30, ' ') + std::string(row->switch_name()) + "=";
      EXPECT_TRUE(row->switch_name().empty() || help.find(on_a_line) != std::string::npos) << row->key();
      const std::vector<OptionText>& rows = row->is_place() ? text->places : text->options;
      EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), [&](const auto& each) { return each.names.back() == name; }))
          << command.name << " " << name;
      if (row->is_place()) continue;
      for (const std::string& script : scripts) EXPECT_THAT(script, HasSubstr(name.substr(2))) << command.name;
    }
  }
}

TEST(Options, HelpOfCompileIsInGroups) {
  const std::string help = run_hoist({"compile", "--help"}).out;
  size_t place = 0;
  for (const char* group :
       {"Output:", "Sizes:", "Device:", "Accuracy:", "Images:", "Speed:", "Checks:", "Queue:", "Expert:"}) {
    const size_t found = help.find(std::string("\n") + group);
    ASSERT_NE(found, std::string::npos) << group;
    EXPECT_GT(found, place) << group;
    place = found;
  }
}

}  // namespace hoist::options_test
