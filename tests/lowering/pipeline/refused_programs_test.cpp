// Tests programs that are typed, printed and interpreted but refused by passes: symbolic sizes, and bodies that depend
// on data.
#include <gmock/gmock.h>

#include "ir/text/program_text.h"
#include "lowering/pipeline/passes.h"

namespace hoist::refused_programs_test {

using testing::HasSubstr;

Program program_in(const std::string& text) {
  auto program = parse_program(text);
  HOIST_CHECK(program.ok(), program.errors()[0].text());
  return *program;
}

TEST(Passes, RefuseSizesWithoutNumbers) {
  Program program =
      program_in("program %net\nsize n from 1 to 8\ninput %x : [n]f32\ndefine %y : [n]f32 = Relu(%x)\noutput %y\n");
  const auto done = run_passes(program, Pass::calls, {});
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.errors()[0].text(),
            "program net: has sizes without numbers: n from 1 to 8 (hoist rewrite FILE.lift --dim n=1 replaces them "
            "by numbers)");
}

TEST(Passes, SayOfEveryLoopThatNothingBounds) {
  const std::string body =
      "{ program version 28 input %i : i64 input %go : bool input %v : [2]f32 define %n : [2]f32 = Neg(%v) output %go "
      "output %n }";
  Program program = program_in(
      "program %net version 28\ninput %m : i64\ninput %x : [2]f32\n"
      "define %l : [2]f32 = Loop(_, _, %x; M = 3000, body = " +
      body + ") from \"again\"\ndefine %y : [2]f32 = Loop(%m, _, %x; body = " + body +
      ") from \"as often\"\ndefine %z : [2]f32 = Add(%l, %y)\noutput %z\n");
  const auto done = run_passes(program, Pass::calls, {});
  ASSERT_FALSE(done.ok());
  ASSERT_EQ(done.errors().size(), 2U);
  EXPECT_THAT(done.errors()[0].text(),
              HasSubstr("again: Loop has 3000 steps, at most 1024 are unrolled (--bound unrolled-steps)"));
  EXPECT_THAT(done.errors()[1].text(),
              HasSubstr("as often: the number of iterations of Loop has no bound; at most 1024"));
}

TEST(Passes, RefuseToListArraysWithoutStorage) {
  Program program = program_in("program %net\ninput %x : [4]f32\ndefine %y : [4]f32 = map exp %x\noutput %y\n");
  const auto done = find_pass("collect-arrays")->run(program, {});
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.errors()[0].text(), "y: has no storage (run choose-storage before it)");
}

TEST(Passes, FoldBodiesOverConstants) {
  Program program = program_in(
      "program %net version 28\ninput %x : [2]f32\nconstant %k : [2]f32 = {1, -2}\n"
      "define %l : [2]f32 = Loop(_, _, %k; M = 3, body = { program version 28 input %i : i64 input %go : bool "
      "input %v : [2]f32 define %n : [2]f32 = Add(%v, %v) output %go output %n })\n"
      "define %y : [2]f32 = Add(%x, %l)\noutput %y\n");
  ASSERT_TRUE(run_passes(program, Pass::calls, {}).ok());
  EXPECT_EQ(program.constants.at("l").float_at(1), -16);
}

}  // namespace hoist::refused_programs_test
