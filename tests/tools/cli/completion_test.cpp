// Tests that shell completion and man page agree with --help, and that the shells accept them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <sstream>

#include "ir/base/temporary_folder.h"
#include "tests/tools/program.h"
#include "tools/base/files.h"

namespace hoist::completion_test {

using testing::HasSubstr;

std::string without(std::string text, const std::string& part) {
  for (size_t place = 0; (place = text.find(part)) != std::string::npos;) text.erase(place, part.size());
  return text;
}

std::vector<std::string> commands() {
  std::vector<std::string> out;
  std::istringstream lines(run_hoist({"--help"}).out);
  bool listed = false;
  for (std::string line; std::getline(lines, line);) {
    if (listed && line.starts_with("  ") && line[2] != ' ') out.push_back(line.substr(2, line.find(' ', 2) - 2));
    listed = listed || line == "Subcommands:";
  }
  return out;
}

std::vector<std::string> options_in(const std::string& help) {
  std::vector<std::string> out;
  std::istringstream lines(help);
  const std::regex option("^  (?:-[A-Za-z],)?(--[a-z0-9-]+)");
  std::smatch found;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_search(line, found, option)) out.push_back(found[1]);
  }
  return out;
}

std::string bash(const std::string& words, int position) {
  const Ran ran = run_shell("bash -c 'source <(" HOIST_PROGRAM " completion bash); COMP_WORDS=(" + words +
                            "); COMP_CWORD=" + std::to_string(position) + "; _hoist; echo \"${COMPREPLY[@]}\"'");
  EXPECT_EQ(ran.err, "");
  return ran.out;
}

TEST(Completion, BashCompletesCommandsOptionsAndTheirValues) {
  EXPECT_EQ(bash("hoist expl", 1), "explain\n");
  EXPECT_EQ(bash("hoist compile --obj", 2), "--objective\n");
  EXPECT_EQ(bash("hoist compile m.onnx --objective \"\"", 4), "time size\n");
  EXPECT_EQ(bash("hoist completion z", 2), "zsh\n");
  EXPECT_THAT(bash("hoist check /", 2), HasSubstr("/tmp"));
}

TEST(Completion, EveryCommandAndOptionIsInEachOfThem) {
  const std::vector<std::string> names = commands();
  ASSERT_GT(names.size(), 15u);
  const std::string scripts[] = {run_hoist({"completion", "bash"}).out, run_hoist({"completion", "zsh"}).out,
                                 run_hoist({"completion", "fish"}).out};
  const auto folder = TemporaryFolder::make();
  ASSERT_TRUE(folder.ok());
  const std::filesystem::path pages = folder->path() / "man";
  const Ran written = run_hoist({"manual", "--output-dir", pages.string()});
  ASSERT_EQ(written.code, 0) << written.err;
  for (const std::string& name : names) {
    const std::vector<std::string> options = options_in(run_hoist({name, "--help"}).out);
    EXPECT_FALSE(options.empty()) << name;
    const auto page = read_file(pages / ("hoist-" + name + ".1"));
    ASSERT_TRUE(page.ok()) << name;
    const std::string text = without(*page, "\\");
    EXPECT_EQ(without(run_hoist({"manual", name}).out, "\\"), text);
    for (const std::string& option : options) {
      EXPECT_THAT(text, HasSubstr(option)) << name;
      for (const std::string& script : scripts) EXPECT_THAT(script, HasSubstr(option.substr(2))) << name;
    }
    for (const std::string& script : scripts) EXPECT_THAT(script, HasSubstr(name));
  }
  if (run_shell("command -v groff").code == 0) {
    const Ran formatted = run_shell("groff -man -ww -z '" + pages.string() + "'/*.1");
    EXPECT_EQ(formatted.err, "");
  }
  for (const char* shell : {"zsh", "fish"}) {
    if (run_shell(std::string("command -v ") + shell).code != 0) continue;
    const Ran read = run_shell(std::string(HOIST_PROGRAM " completion ") + shell + " | " + shell + " -n");
    EXPECT_EQ(read.code, 0) << shell << ": " << read.err;
  }
}

TEST(Habits, ResultsHaveANameWhereNoneIsGiven) {
  const auto folder = TemporaryFolder::make();
  ASSERT_TRUE(folder.ok());
  const std::string model = HOIST_SOURCE_DIR "/models/digits_fully_connected.onnx";
  const std::string there = "cd '" + folder->path().string() + "' && " HOIST_PROGRAM " ";
  const Ran ran = run_shell(there + "export '" + model + "' && " + there + "compile '" + model + "' --no-check");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(std::filesystem::exists(folder->path() / "digits_fully_connected.exported.onnx"));
  EXPECT_TRUE(std::filesystem::exists(folder->path() / "digits_fully_connected.hoist/plan.bin"));
  EXPECT_EQ(run_hoist({"-V"}).out, run_hoist({"--version"}).out);
}

TEST(Habits, HelpIsACommand) {
  EXPECT_EQ(run_hoist({"help"}).out, run_hoist({"--help"}).out);
  const Ran ran = run_hoist({"help", "compile"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, run_hoist({"compile", "--help"}).out);
  const Ran misspelt = run_hoist({"help", "complie"});
  EXPECT_EQ(misspelt.code, 2);
  EXPECT_THAT(misspelt.err, testing::HasSubstr("did you mean compile?"));
}

TEST(Habits, ExplainWithoutALayerListsThem) {
  const std::string model = HOIST_SOURCE_DIR "/models/digits_fully_connected.onnx";
  const Ran ran = run_hoist({"explain", model});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, testing::HasSubstr("classifier  Gemm      classifier\n"));
  EXPECT_THAT(ran.out,
              testing::ContainsRegex("6 layers in 3 kernels, [0-9]+ steps: [0-9]+ exact, [0-9]+ rounding, 0 neural"));
  EXPECT_THAT(ran.out, testing::HasSubstr("hoist explain " + model + " LAYER prints the steps of one\n"));
  EXPECT_EQ(run_hoist({"explain", model, "--terms"}).code, 2);
}

TEST(Habits, HelpFitsATerminal) {
  for (const std::string& name : commands()) {
    std::istringstream lines(run_hoist({name, "--help"}).out);
    for (std::string line; std::getline(lines, line) && line != "Example:";) EXPECT_LE(line.size(), 80u) << line;
  }
}

TEST(Habits, TablesFitTheWidthThatIsAskedFor) {
  for (const int columns : {80, 60}) {
    const Ran ran = run_hoist({"operators"}, "COLUMNS=" + std::to_string(columns) + " ");
    EXPECT_EQ(ran.code, 0) << ran.err;
    std::istringstream lines(ran.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), static_cast<size_t>(columns)) << line;
  }
  EXPECT_EQ(run_hoist({"operators"}).out.find('\x1b'), std::string::npos);
}

}  // namespace hoist::completion_test
