// Tests states: their text, pairs of inputs and outputs that become states, and sequences of runs.
#include "ir/program/states.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/text/program_text.h"

namespace hoist::states_test {

using testing::ElementsAre;
using testing::HasSubstr;

// s and c are states; both are sums over the runs, c of the outputs.
constexpr char sums[] =
    "program %sums version 21\n"
    "input %x : [2]f32\n"
    "state %s : [2]f32 = %start\n"
    "state %c : [2]f32 = zeros\n"
    "constant %start : [2]f32 = {1, 2}\n"
    "define %t : [2]f32 = Add(%s, %x) from \"t\"\n"
    "define %y : [2]f32 = Add(%t, %c) from \"y\"\n"
    "output %y\n"
    "next %s is %t\n"
    "next %c is %y\n";

constexpr char pairs[] =
    "program %pairs version 21\n"
    "input %past_a : [2]f32\n"
    "input %x : [2]f32\n"
    "input %h : [3]f32\n"
    "define %y : [2]f32 = Add(%x, %past_a) from \"y\"\n"
    "define %present_a : [2]f32 = Mul(%x, %past_a) from \"a\"\n"
    "define %hn : [3]f32 = Tanh(%h) from \"h\"\n"
    "output %present_a\n"
    "output %y\n"
    "output %hn\n";

Program parsed(const std::string& text) {
  auto program = parse_program(text);
  HOIST_CHECK(program.ok(), program.errors()[0].text());
  return *program;
}

std::string error_of(const std::string& text) {
  auto program = parse_program(text);
  return program.ok() ? "no error" : program.errors()[0].text();
}

std::string changed(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  HOIST_CHECK(at != std::string::npos, from);
  return text.replace(at, from.size(), to);
}

Tensor floats(const std::vector<double>& values) {
  return Tensor::of(Scalar::f32, {static_cast<int64_t>(values.size())}, values);
}

std::vector<std::string> names(const std::vector<ValueInfo>& infos) {
  std::vector<std::string> out;
  for (const ValueInfo& info : infos) out.push_back(info.name);
  return out;
}

TEST(States, TheTextIsTheProgram) {
  const Program program = parsed(sums);
  EXPECT_EQ(print_program(program), sums);
  EXPECT_TRUE(same_program(parsed(print_program(program)), program));
  ASSERT_EQ(program.states.size(), 2U);
  EXPECT_EQ(program.states[0], (StateValue{"s", "t", "start"}));
  EXPECT_EQ(program.states[1], (StateValue{"c", "y", ""}));
  EXPECT_THAT(names(input_infos(program)), ElementsAre("x"));
  EXPECT_THAT(names(output_infos(program)), ElementsAre("y"));
  EXPECT_FALSE(same_program(program, without_states(program)));
}

TEST(States, ProgramsThatAreNoneAreRefused) {
  EXPECT_THAT(error_of(changed(sums, "next %c is %y\n", "")), HasSubstr("next is missing"));
  EXPECT_THAT(error_of(changed(sums, "next %c", "next %x")), HasSubstr("expected a state"));
  EXPECT_THAT(error_of(changed(sums, "is %t", "is %absent")), HasSubstr("expected a value"));
  EXPECT_THAT(error_of(changed(sums, "is %t", "is %x")), HasSubstr("is an input"));
  EXPECT_THAT(error_of(std::string(sums) + "next %c is %t\n"), HasSubstr("two values"));
  EXPECT_THAT(error_of(changed(sums, "= zeros", "= ones")), HasSubstr("zeros"));
  EXPECT_THAT(error_of(changed(sums, "= %start", "= %x")), HasSubstr("no constant of the type"));
  EXPECT_THAT(error_of(changed(sums, "%start : [2]f32 = {1, 2}", "%start : [1]f32 = {1}")),
              HasSubstr("no constant of the type"));
  EXPECT_NE(error_of(changed(sums, "state %c : [2]f32", "state %c : [3]f32")), "no error");
  EXPECT_THAT(error_of(changed(sums, "%c : [2]f32", "%c : [2]string")), HasSubstr("no array of numbers"));
  EXPECT_THAT(error_of(changed(sums, "output %y", "output %s")), HasSubstr("is an output"));
  // States come after the inputs, next values after the outputs.
  EXPECT_THAT(error_of(std::string(sums) + "input %late : f32\n"), HasSubstr("in their order"));
  EXPECT_THAT(error_of(std::string(sums) + "output %t\n"), HasSubstr("in their order"));
  EXPECT_THAT(error_of(std::string(sums) + "extent 0 of %y is %t\n"), HasSubstr("not an i64 scalar"));
  EXPECT_THAT(error_of("program version 21\nstate %n : i64 = zeros\nconstant %one : i64 = {1}\ninput %y : [4]f32\n"
                       "define %m : i64 = Add(%n, %one)\noutput %y\nnext %n is %m\nextent 0 of %y is %m\n"),
              HasSubstr("in their order"));
}

TEST(States, RunsAreASequence) {
  const Program program = parsed(sums);
  RunSequence sequence(program);
  for (int round = 0; round < 2; ++round, sequence.reset()) {
    EXPECT_THAT(sequence.states(), ElementsAre(floats({1, 2}), floats({0, 0})));
    for (const std::vector<double>& y : {std::vector<double>{11, 22}, {32, 64}, {63, 126}}) {
      const auto outputs = sequence.run({floats({10, 20})});
      ASSERT_TRUE(outputs.ok()) << outputs.errors()[0].text();
      EXPECT_THAT(*outputs, ElementsAre(floats(y)));
      EXPECT_EQ(sequence.states()[1], floats(y));
    }
    EXPECT_EQ(sequence.states()[0], floats({31, 62}));
  }
}

TEST(States, PairsBecomeStatesAndBack) {
  const Program program = parsed(pairs);
  StateRequest request{{"past_a=present_a", "h=hn"}, {{"h", floats({1, 2, 3})}}, {}};
  auto made = with_states(program, request);
  ASSERT_TRUE(made.ok()) << made.errors()[0].text();
  EXPECT_EQ(print_program(*made),
            "program %pairs version 21\n"
            "input %x : [2]f32\n"
            "state %past_a : [2]f32 = zeros\n"
            "state %h : [3]f32 = %\"h.initial\"\n"
            "constant %\"h.initial\" : [3]f32 = {1, 2, 3}\n"
            "define %y : [2]f32 = Add(%x, %past_a) from \"y\"\n"
            "define %present_a : [2]f32 = Mul(%x, %past_a) from \"a\"\n"
            "define %hn : [3]f32 = Tanh(%h) from \"h\"\n"
            "output %y\n"
            "next %past_a is %present_a\n"
            "next %h is %hn\n");
  EXPECT_TRUE(same_program(parsed(print_program(*made)), *made));
  const Program back = without_states(*made);
  EXPECT_THAT(names(input_infos(back)), ElementsAre("x", "past_a", "h"));
  EXPECT_THAT(names(output_infos(back)), ElementsAre("y", "present_a", "hn"));
  EXPECT_TRUE(back.constants.empty());
}

TEST(States, PairsWithUsualNamesAreFound) {
  auto made = with_states(parsed(pairs), {{"auto"}});
  ASSERT_TRUE(made.ok()) << made.errors()[0].text();
  EXPECT_THAT(made->states, ElementsAre(StateValue{"past_a", "present_a", ""}, StateValue{"h", "hn", ""}));
  EXPECT_THAT(made->notes, ElementsAre("past_a is a state, and present_a its value in the next run",
                                       "h is a state, and hn its value in the next run"));
  // A pair that is named takes no part.
  made = with_states(parsed(pairs), {{"x=present_a", "auto"}});
  ASSERT_TRUE(made.ok()) << made.errors()[0].text();
  EXPECT_THAT(made->states, ElementsAre(StateValue{"x", "present_a", ""}, StateValue{"h", "hn", ""}));
  const auto none =
      with_states(parsed(changed(changed(pairs, "output %hn\n", ""), "output %present_a\n", "")), {{"auto"}});
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.errors()[0].text(), HasSubstr("have the usual names"));
}

TEST(States, AllWrongPairsAreReported) {
  const auto errors_of = [](const StateRequest& request) {
    const auto made = with_states(parsed(pairs), request);
    return made.ok() ? Diagnostics{} : made.errors();
  };
  const Diagnostics all = errors_of({{"past=present_a", "x=hm", "h=y", "h", "c=y", "h=hn", "x=present_a"},
                                     {{"x", floats({1, 2, 3})}, {"y", floats({1})}},
                                     {"c"}});
  std::string text;
  for (const Diagnostic& each : all) text += each.text() + "\n";
  EXPECT_EQ(text,
            "--state past=present_a: the model has no input past (did you mean past_a?)\n"
            "--state x=hm: the model has no output hm (it has: present_a, y, hn)\n"
            "--state h=y: h is [3]f32, and y is [2]f32 (a state keeps its type; --dim gives open sizes a value)\n"
            "--state h: is not INPUT=OUTPUT (write --state h=hn, or --state auto)\n"
            "--state c=y: the input c is fixed by --value (leave --value out, or use --initial)\n"
            "--state c=y: the output y is the next value of a state already\n"
            "--state h=hn: the input h is a state already\n"
            "--state x=present_a: the input x is a state already\n"
            "--state x=present_a: the output present_a is the next value of a state already\n"
            "--initial x: is no state (add --state x=OUTPUT)\n"
            "--initial y: is no state (add --state y=OUTPUT)\n");
  const Diagnostics none_left = errors_of({{"past_a=present_a", "x=y", "h=hn"}});
  ASSERT_EQ(none_left.size(), 1U);
  EXPECT_THAT(none_left[0].text(), HasSubstr("without an output"));
  const Diagnostics other_type = errors_of({{"h=hn"}, {{"h", floats({1})}}});
  ASSERT_EQ(other_type.size(), 1U);
  EXPECT_EQ(other_type[0].text(), "--initial h: is [1]f32, and the state is [3]f32");
}

}  // namespace hoist::states_test
