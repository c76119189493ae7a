// Tests the pass "drop-copies": the copies that it removes, the values that it keeps, and that replay refuses false
// steps.
#include "lowering/graph/copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/text/program_text.h"
#include "lowering/graph/steps.h"
#include "lowering/pipeline/replay.h"
#include "lowering/terms/arrangement.h"

namespace hoist::copies_test {

using testing::HasSubstr;

Program parsed(const std::string& text) {
  auto program = parse_program("program version 21\n" + text);
  HOIST_CHECK(program.ok(), program.errors()[0].text());
  return *program;
}

std::string left_of(const std::string& text, bool share_equal = true) {
  Program program = parsed(text);
  drop_copies(program, share_equal);
  return print_program(program);
}

constexpr char relu_after[] = "define %y : [2][6]f32 = Relu(%v) from \"relu\"\noutput %y\n";

TEST(Copies, ViewsThatUndoEachOtherAreOne) {
  const std::string back =
      "input %x : [2][6]f32\n"
      "define %a : [3][4]f32 = Reshape(%x; shape = [3, 4]) from \"a\"\n"
      "define %v : [2][6]f32 = Reshape(%a; shape = [2, 6]) from \"b\"\n";
  EXPECT_THAT(left_of(back + relu_after), HasSubstr("Relu(%x)"));
  const std::string shuffled =
      "input %x : [2][6]f32\n"
      "define %a : [6][2]f32 = Transpose(%x; perm = [1, 0]) from \"a\"\n"
      "define %v : [2][6]f32 = Reshape(%a; shape = [2, 6]) from \"b\"\n";
  EXPECT_THAT(left_of(shuffled + relu_after), HasSubstr("Relu(%v)"));
  const std::string square =
      "input %x : [4][4]f32\n"
      "define %v : [4][4]f32 = Transpose(%x; perm = [1, 0]) from \"a\"\n"
      "define %y : [4][4]f32 = Relu(%v) from \"relu\"\noutput %y\n";
  EXPECT_THAT(left_of(square), HasSubstr("Relu(%v)"));
}

TEST(Copies, OnlyTheSameTypeIsACopy) {
  EXPECT_THAT(
      left_of("input %x : [2][6]f32\ndefine %v : [2][6]f32 = Cast(%x; to = 1) from \"a\"\n" + std::string(relu_after)),
      HasSubstr("Relu(%x)"));
  EXPECT_THAT(
      left_of("input %x : [2][6]f16\ndefine %v : [2][6]f32 = Cast(%x; to = 1) from \"a\"\n" + std::string(relu_after)),
      HasSubstr("Relu(%v)"));
}

TEST(Copies, LayersThatStandTwiceAreOneUnlessTheyMayDiffer) {
  const std::string twice =
      "input %x : [2][6]f32\n"
      "define %a : [2][6]f32 = Tanh(%x) from \"a\"\n"
      "define %b : [2][6]f32 = Tanh(%x) from \"b\"\n"
      "define %c : [2][6]f32 = Exp(%a) from \"c\"\n"
      "define %d : [2][6]f32 = Exp(%b) from \"d\"\n"
      "define %y : [2][6]f32 = Add(%c, %d) from \"e\"\n"
      "output %y\n";
  EXPECT_THAT(left_of(twice), HasSubstr("Add(%c, %c)"));
  EXPECT_THAT(left_of(twice), HasSubstr("from \"a\", \"b\""));
  EXPECT_THAT(left_of(twice, false), HasSubstr("Add(%c, %d)"));
}

TEST(Copies, ARepeatedPartOfAConcatenationIsTheFirst) {
  const std::string concatenation =
      "input %x : [2][6]f32\n"
      "define %a : [2][6]f32 = map2d exp %x from \"a\"\n"
      "define %b : [2][6]f32 = map2d exp %x from \"b\"\n"
      "define %y : [4][6]f32 = concat(%a, %b) from \"c\" with parts %a %b along 0\n"
      "output %y\n";
  EXPECT_THAT(left_of(concatenation), HasSubstr("with parts %a %a along 0"));
}

TEST(Copies, OutputsStay) {
  const std::string left = left_of(
      "input %x : [2][6]f32\n"
      "define %v : [2][6]f32 = Identity(%x) from \"a\"\n"
      "define %y : [2][6]f32 = Relu(%v) from \"relu\"\noutput %y\noutput %v\n");
  EXPECT_THAT(left, HasSubstr("%v : [2][6]f32 = Identity(%x)"));
  EXPECT_THAT(left, HasSubstr("Relu(%x)"));
}

TEST(Copies, ReplayChecksWhatAStepSays) {
  ProgramDerivation derivation;
  derivation.start = parsed(
      "input %x : [4][4]f32\ninput %z : [4][4]f32\n"
      "define %v : [4][4]f32 = Identity(%x) from \"a\"\n"
      "define %t : [4][4]f32 = Transpose(%x; perm = [1, 0]) from \"b\"\n"
      "define %y : [4][4]f32 = Add(%v, %t) from \"c\"\noutput %y\n");
  ProgramStep step = replayed_step("drop-copies", derivation.start.definitions[2]);
  for (const auto& [copy, of, right] : {std::tuple("v", "x", true), std::tuple("v", "z", false),
                                        std::tuple("t", "x", false), std::tuple("v", "missing", false)}) {
    step.parameters = {{"copy", copy}, {"of", of}};
    derivation.steps = {step};
    const auto replayed = replay(derivation, {});
    EXPECT_EQ(replayed.ok(), right) << copy << " of " << of;
  }
}

}  // namespace hoist::copies_test
