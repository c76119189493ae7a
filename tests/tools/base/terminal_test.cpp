// Tests the terminal output: untrusted names, and progress of long work.
#include "tools/base/terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/base/temporary_folder.h"
#include "tests/tools/program.h"
#include "tools/base/files.h"
#include "tools/cli/command_line.h"

namespace hoist::terminal_test {

TEST(Printable, KeepsTextAndNothingThatActs) {
  EXPECT_EQ(printable("conv1 \"a/b:0\" \\"), "conv1 \"a/b:0\" \\");
  EXPECT_EQ(printable("Größe 大きさ 😀"), "Größe 大きさ 😀");
  EXPECT_EQ(printable("\x1b[2J\a\r\n\t\x7f"), "\\x1b[2J\\x07\\x0d\\x0a\\x09\\x7f");
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m");                               // CSI in one character
  EXPECT_EQ(printable("\xe2\x80\xae"), "\\xe2\\x80\\xae");  // reverses the text after it
  EXPECT_EQ(printable("\xe2\x81\xa6"
                      "x"),
            "\\xe2\\x81\\xa6x");
  EXPECT_EQ(printable("\xe2\x80\xa8"), "\\xe2\\x80\\xa8");                    // a line separator
  EXPECT_EQ(printable("\xff\x9b\xc3"), "\\xff\\x9b\\xc3");                    // invalid UTF-8
  EXPECT_EQ(printable("\xc0\x9b\xe0\x82\x9b"), "\\xc0\\x9b\\xe0\\x82\\x9b");  // overlong encodings
  EXPECT_EQ(printable("\xed\xa0\x80\xf4\x90\x80\x80"), "\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80");
}

TEST(Printable, LinesAndTables) {
  testing::internal::CaptureStdout();
  say("one\ntwo \x1b[1m\n");
  print_line("{} of {} in {:.1f}", std::string("a\nb"), 3, 0.25);
  ASSERT_TRUE(finish_output().ok());
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "one\ntwo \\x1b[1m\na\\x0ab of 3 in 0.2\n");
}

TEST(Printable, CellsOfTables) { EXPECT_EQ(table({{"a\nb", "x"}, {"c", "\x1b"}}), "a\\x0ab  x\nc       \\x1b\n"); }

TEST(Width, TextIsBrokenBetweenWords) {
  EXPECT_EQ(wrapped("one two three\nfour\n", 8, 2), "one two\n  three\nfour\n");
  EXPECT_EQ(wrapped("one two three\n", 0, 2), "one two three\n");
  EXPECT_EQ(wrapped("abcdefghij\n", 4, 1), "abcd\n efg\n hij\n");
}

TEST(Width, TablesBreakTheirLastColumnOrGoOnBelow) {
  const std::string words = "a text of several words that are many";
  EXPECT_EQ(table({{"name", words}}, 0), "name  " + words + "\n");
  EXPECT_EQ(table({{"name", words}}, 32), "name  a text of several words\n      that are many\n");
  EXPECT_EQ(table({{"a name that is long", words}}, 32),
            "a name that is long\n    a text of several words that\n    are many\n");
  EXPECT_EQ(table({{"site", "aaaaaaaa", "bbbbbbbb", "cccccccc", "d"}, {"s", "1", "2", "3", "4"}}, 26),
            "site  aaaaaaaa  bbbbbbbb\ns     1         2\n\nsite  cccccccc  d\ns     3         4\n");
}

// A program that embeds the compiler.
struct Heard {
  std::string results, files;
  std::vector<std::string> messages;
  Audience audience() {
    return {[this](std::string_view lines) { results += lines; },
            [this](std::string_view content) { files += content; },
            [this](std::string_view kind, const Diagnostic& problem) {
              messages.push_back(std::string(kind) + " " + problem.text());
            },
            [this](const std::string& text) { messages.push_back("progress " + text); }};
  }
};

TEST(Audience, HearsWhatTheProcessDoesNotSay) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Heard heard, inner;
  {
    const Audience all = heard.audience(), other = inner.audience();
    const WithAudience hears(all);
    print_line("{}\x1b", 1);
    print_message("note", "a\x1b");
    Progress().show("half");
    ASSERT_TRUE(write_file("-", "a file\x1b").ok());
    const WithAudience hears_instead(other);
    print_message("warning", Diagnostics{{"where", "what", "hint"}});
  }
  EXPECT_EQ(heard.results, "1\\x1b\n");
  EXPECT_EQ(heard.files, "a file\x1b");
  EXPECT_EQ(heard.messages, (std::vector<std::string>{"note a\x1b", "progress half", "progress "}));
  EXPECT_EQ(inner.messages, std::vector<std::string>{"warning where: what (hint)"});
  say("two\n");
  ASSERT_TRUE(finish_output().ok());
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "two\n") << "nobody hears it any more";
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Progress, SaysHowFarItIsWhereThatIsKnown) {
  Heard heard;
  {
    const Audience all = heard.audience();
    const WithAudience hears(all);
    Progress progress;
    progress.show("half", 0.5);
    progress.show("more than all", 1.5);
    progress.show("who knows");
  }
  EXPECT_EQ(heard.messages, (std::vector<std::string>{"progress 50 %: half", "progress 100 %: more than all",
                                                      "progress who knows", "progress "}));
  EXPECT_EQ(progress_bar(0.5, 4), "##--");
  EXPECT_EQ(progress_bar(-1, 3), "---");
  EXPECT_EQ(progress_bar(2, 3), "###");
  EXPECT_EQ(rough_time(0.2), "1 s");
  EXPECT_EQ(rough_time(99), "99 s");
  EXPECT_EQ(rough_time(600), "10 min");
  EXPECT_EQ(rough_time(7200), "2 h");
}

// The program with a terminal, with a pipe, and with --quiet.
TEST(Progress, IsABarOnATerminalAndNothingInShortPipes) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer warns on standard error of the stack on which Halide compiles";
#endif
  if (run_shell("command -v script").code != 0) GTEST_SKIP() << "script makes terminals; it is of bsdutils";
  auto folder = TemporaryFolder::make();
  ASSERT_TRUE(folder.ok());
  const std::string model = HOIST_SOURCE_DIR "/models/digits_fully_connected",
                    bundle = (folder->path() / "a.hoist").string();
  const std::vector<std::string> compile = {"compile", model + ".onnx", "-o", bundle, "--force", "--target", "native"};
  const auto with = [&](std::vector<std::string> words, const std::string& more) {
    words.push_back(more);
    return run_hoist(words);
  };
  Ran ran = run_hoist(compile);
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.err, "hoist: note: dimension N has no size in the model: compiled for 1 (--dim N=8 compiles for 8)\n");
  ran = with(compile, "--quiet");
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(ran.out, "") << "the bundle is the result";
  EXPECT_THAT(with(compile, "-v").err, testing::HasSubstr("hoist: info: "));
  ran = run_hoist({"evaluate", bundle, "--data", "/dev/null", "-q"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, testing::StartsWith("hoist: error: ")) << "errors are said all the same";
  const std::string evaluate = run_shell("script -qec '" + std::string(HOIST_PROGRAM) + " evaluate " + bundle +
                                         " --data " + model + "_test.npz' /dev/null")
                                   .out;
  EXPECT_THAT(evaluate, testing::HasSubstr("\r\x1b[K[#####---------------] 25 %"));
  EXPECT_THAT(evaluate, testing::HasSubstr("of 500"));
}

// Each model of a study takes long to compile, above all the first two.
TEST(Progress, CountsTheKernelsOfEveryModelOfAStudy) {
  auto folder = TemporaryFolder::make();
  ASSERT_TRUE(folder.ok());
  const std::string model = HOIST_SOURCE_DIR "/models/digits_fully_connected";
  Heard heard;
  {
    const Audience all = heard.audience();
    const WithAudience hears(all);
    auto done = do_command({"compile", model + ".onnx", "--target", "native", "--budget", "sqnr=20dB", "--calibrate",
                            model + "_calibration.npz", "--no-check", "-o", (folder->path() / "a.hoist").string()});
    ASSERT_TRUE(done.ok()) << done.errors()[0].text();
  }
  for (const char* stage : {"preparing the unchanged model, kernel 1 of ", "preparing calibration, kernel 1 of ",
                            "preparing rules", "kernel 1 of "})
    EXPECT_THAT(heard.messages, testing::Contains(testing::HasSubstr(stage)));
}

TEST(Audience, HasResultsAndJsonApart) {
  Heard heard;
  {
    const Audience all = heard.audience();
    const WithAudience hears(all);
    for (int i = 0; i < 2; ++i) {  // the first run resets the quiet mode
      auto done = do_command({"completion", "bash", "--json", "-"});
      ASSERT_TRUE(done.ok());
    }
    auto refused = do_command({"chek"});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.errors().front().hint, "did you mean check?");
    EXPECT_EQ(heard.messages, std::vector<std::string>()) << "failures are the caller's";
  }
  EXPECT_EQ(heard.files.rfind("{", 0), 0U);
  EXPECT_NE(heard.results.find("complete"), std::string::npos);
  EXPECT_EQ(heard.results.substr(0, heard.results.size() / 2), heard.results.substr(heard.results.size() / 2));
}

}  // namespace hoist::terminal_test
