// Tests If, Loop and Scan: calls with programs as attributes, printed and parsed, typed from their bodies, and
// interpreted.
#include <gmock/gmock.h>

#include "ir/evaluate/evaluate.h"
#include "ir/operators/operators.h"
#include "ir/program/sizes.h"
#include "ir/text/program_text.h"
#include "ir/text/text.h"

namespace hoist::control_test {

using testing::ElementsAre;
using testing::HasSubstr;

Program parsed(const std::string& text) {
  auto program = parse_program(text);
  HOIST_CHECK(program.ok(), program.errors()[0].text());
  auto again = parse_program(print_program(*program));
  HOIST_CHECK(again.ok(), print_program(*program) + again.errors()[0].text());
  HOIST_CHECK(same_program(*again, *program), print_program(*program));
  return *program;
}

std::string error_of(const std::string& text) {
  auto program = parse_program(text);
  return program.ok() ? "no error" : program.errors()[0].text();
}

Tensor floats(const std::vector<double>& values) {
  return Tensor::of(Scalar::f32, {static_cast<int64_t>(values.size())}, values);
}
Tensor truth(bool value) { return Tensor::of(Scalar::boolean, {}, std::vector<int>{value ? 1 : 0}); }
Tensor whole(int64_t value) { return Tensor::of(Scalar::i64, {}, std::vector<int64_t>{value}); }

// The value by the evaluator, which must agree with the interpreter.
std::vector<double> value_of(const Program& program, const std::string& name, Bindings values) {
  for (const auto& [constant, tensor] : program.constants) values[constant] = tensor;
  std::map<std::string, Expr> terms;
  for (const Definition& definition : program.definitions) {
    const Expr e = substitute_parameters(definition.expression, terms);
    terms[definition.value] = e;
    if (definition.value != name) continue;
    auto fast = evaluate(e, values);
    HOIST_CHECK(fast.ok(), fast.errors()[0].text());
    auto slow = interpret(e, values);
    HOIST_CHECK(slow.ok(), slow.errors()[0].text());
    EXPECT_EQ(*fast, *slow);
    std::vector<double> out;
    for (int64_t i = 0; i < fast->size(); ++i)
      out.push_back(is_float(fast->scalar()) ? fast->float_at(i) : static_cast<double>(fast->integer_at(i)));
    return out;
  }
  return {};
}

constexpr char branches[] =
    "program version 28\n"
    "input %c : [1]bool\n"
    "input %x : [3]f32\n"
    "input %w : [3]f32\n"
    "define %r : ([3]f32, f32) = If(%c, %x, %w;\n"
    "  then_branch = { program input %x : [3]f32 input %w : [3]f32 constant %two : f32 = {2}\n"
    "    define %y : [3]f32 = Mul(%x, %w) from \"product\"\n"
    "    define %s : f32 = ReduceSum(%y; keepdims = 0) output %y output %s },\n"
    "  else_branch = { program input %a : [3]f32 input %b : [3]f32 constant %two : f32 = {2}\n"
    "    define %y : [3]f32 = Mul(%b, %two) output %y output %two }, results = 2) from \"if\"\n"
    "define %y : [3]f32 = %r.0\n"
    "define %s : f32 = %r.1\n"
    "output %y\n";

TEST(If, GivesWhatTheBranchGives) {
  const Program program = parsed(branches);
  Bindings values = {{"x", floats({1, 2, 3})}, {"w", floats({4, 5, 6})}};
  values["c"] = Tensor::of(Scalar::boolean, {1}, std::vector<int>{1});
  EXPECT_THAT(value_of(program, "y", values), ElementsAre(4, 10, 18));
  EXPECT_THAT(value_of(program, "s", values), ElementsAre(32));
  values["c"] = Tensor::of(Scalar::boolean, {1}, std::vector<int>{0});
  EXPECT_THAT(value_of(program, "y", values), ElementsAre(8, 10, 12));
  EXPECT_THAT(value_of(program, "s", values), ElementsAre(2));
}

TEST(If, ABranchIsPickedWhereTheConditionIsKnown) {
  const Program program = parsed(branches);
  auto picked =
      inline_call(*program.definitions[0].expression, {{"c", Tensor::of(Scalar::boolean, {1}, std::vector<int>{0})}});
  ASSERT_TRUE(picked.ok());
  EXPECT_EQ(parameters_of(*picked).size(), 1U) << print(*picked);
}

TEST(If, WhatDoesNotFitIsSaid) {
  const auto error = [](const std::string& operands, const std::string& yes, const std::string& no) {
    return error_of("program input %c : bool input %x : [3]f32 input %i : [3]i32 define %y : [3]f32 = If(" + operands +
                    "; then_branch = { program " + yes + " }, else_branch = { program " + no + " })");
  };
  const std::string same = "input %x : [3]f32 output %x";
  EXPECT_THAT(
      error("%c, %x", same, "input %x : [3]f32 define %y : [2]f32 = slice 0 2 %x output %y"),
      HasSubstr(
          "result 0 is [3]f32 of then_branch and [2]f32 of else_branch (both branches have to give the same types)"));
  EXPECT_THAT(error("%c, %i", same, same), HasSubstr("input x of then_branch is [3]f32, and is given [3]i32"));
  EXPECT_THAT(error("%c", same, same), HasSubstr("then_branch has 1 inputs, and is given 0 values"));
  EXPECT_THAT(error("%c, %x", same, "input %x : [3]f32"), HasSubstr("then_branch gives 1 values, else_branch 0"));
  EXPECT_THAT(error("%x, %x", same, same), HasSubstr("If takes booleans, found f32"));
  EXPECT_THAT(error_of("program input %c : bool define %y : f32 = If(%c; then_branch = 1)"),
              HasSubstr("attribute then_branch has to be a program"));
}

// Computes powers of two times the captured factor, as a carried value and as rows.
constexpr char counted_loop[] =
    "program version 28\n"
    "input %x : [2]f32\n"
    "input %f : f32\n"
    "define %r : ([2]f32, [4][2]f32, [4]i64) = Loop(_, _, %x, %f; M = 4, captured = 1, results = 3,\n"
    "  body = { program input %i : i64 input %go : bool input %v : [2]f32 input %f : f32\n"
    "    define %on : bool = Identity(%go)\n"
    "    define %next : [2]f32 = Mul(%v, %f)\n"
    "    define %row : [2]f32 = Neg(%v)\n"
    "    output %on output %next output %row output %i }) from \"loop\"\n"
    "define %last : [2]f32 = %r.0\n"
    "define %rows : [4][2]f32 = %r.1\n"
    "define %numbers : [4]i64 = %r.2\n"
    "output %rows\n";

TEST(Loop, CountsAndGathersRows) {
  const Program program = parsed(counted_loop);
  const Bindings values = {{"x", floats({1, 3})}, {"f", Tensor::of(Scalar::f32, {}, std::vector<double>{2})}};
  EXPECT_THAT(value_of(program, "last", values), ElementsAre(16, 48));
  EXPECT_THAT(value_of(program, "rows", values), ElementsAre(-1, -3, -2, -6, -4, -12, -8, -24));
  EXPECT_THAT(value_of(program, "numbers", values), ElementsAre(0, 1, 2, 3));
}

// Doubles until the value is 100 or more, at most five times, or as often as %m.
std::string doubling(const std::string& operands, const std::string& trips) {
  return "program version 28\n"
         "input %m : i64\n"
         "input %go : bool\n"
         "input %x : f32\n"
         "define %y : f32 = Loop(" +
         operands + ", %x;" + trips +
         "\n"
         "  body = { program input %i : i64 input %go : bool input %v : f32 constant %limit : f32 = {100}\n"
         "    define %next : f32 = Add(%v, %v)\n"
         "    define %on : bool = Less(%next, %limit)\n"
         "    output %on output %next }) from \"loop\"\n"
         "output %y\n";
}

TEST(Loop, EndsWhereItsConditionSays) {
  const auto run = [](const Program& program, double x, int64_t m, bool go) {
    return value_of(
        program, "y",
        {{"x", Tensor::of(Scalar::f32, {}, std::vector<double>{x})}, {"m", whole(m)}, {"go", truth(go)}})[0];
  };
  const Program five = parsed(doubling("_, %go", " M = 5,"));
  EXPECT_EQ(run(five, 1, 0, true), 32);
  EXPECT_EQ(run(five, 30, 0, true), 120);
  EXPECT_EQ(run(five, 200, 0, true), 400);
  EXPECT_EQ(run(five, 1, 0, false), 1);
}

TEST(Loop, HasATypeWhereDataSayHowOften) {
  // Typed, printed and parsed, but not run for 2^31 iterations.
  const Program program = parsed(doubling("%m, %go", ""));
  EXPECT_EQ(text(program.definitions[0].expression->type), "f32");
  parsed(doubling("_, %go", ""));
  parsed(doubling("_, %go", " M = 9223372036854775807,"));  // in practice no limit
}

TEST(Loop, CountsTheRowsThatDataLeave) {
  const Program program = parsed(
      "program version 28\ninput %x : f32\n"
      "define %r : (f32, [6]f32, i64) = Loop(_, _, %x; M = 6, results = 3,\n"
      "  body = { program input %i : i64 input %go : bool input %v : f32 constant %limit : f32 = {20}\n"
      "    define %next : f32 = Add(%v, %v)\n    define %on : bool = Less(%next, %limit)\n"
      "    output %on output %next output %v }) from \"loop\"\n"
      "define %last : f32 = %r.0\ndefine %rows : [6]f32 = %r.1\ndefine %count : i64 = %r.2\n"
      "output %last output %rows output %count extent 0 of %rows is %count\n");
  const Bindings values = {{"x", Tensor::of(Scalar::f32, {}, std::vector<double>{3})}};
  EXPECT_THAT(value_of(program, "last", values), ElementsAre(24));
  EXPECT_THAT(value_of(program, "rows", values), ElementsAre(3, 6, 12, 0, 0, 0));
  EXPECT_THAT(value_of(program, "count", values), ElementsAre(3));
}

// Calls that passes make can be printed and parsed, and damaged text is refused.
TEST(Control, IsPrintedAndParsed) {
  const std::string loop =
      "program version 28\ninput %x : f32\ninput %i : i64\ninput %before : f32\ninput %after : f32\n"
      "define %next : f32 = %before + 1f32\ndefine %y : f32 = %after * 2f32\n"
      "output %y\noutput %x\noutput %next\n";
  const std::string good = "perform loop %l, most 9, fails, number %i, carry %x %before %next %after from \"l\"\n";
  const Program program = parsed(loop + good);
  EXPECT_EQ(program.controls.size(), 1u);
  EXPECT_EQ(model_input_count(program), 1u);
  EXPECT_EQ(model_output_count(program), 1u);
  EXPECT_EQ(program.controls[0].layers, std::vector<std::string>{"l"});
  for (const auto& [from, to, error] : {std::tuple{"number %i", "number %x", "its values have wrong types"},
                                        {"carry %x %before", "carry %before %x", "are the last inputs and outputs"},
                                        {"most 9", "most 9, choose %x %x %after", "a loop has no choices"},
                                        {"perform loop", "perform branch", "a branch has a condition"},
                                        {"%next %after", "%next", "expected a value"},
                                        {"fails", "succeeds", "expected a part of a loop"}}) {
    std::string bad = good;
    const size_t at = bad.find(from);
    ASSERT_NE(at, std::string::npos);
    bad.replace(at, std::string(from).size(), to);
    EXPECT_THAT(error_of(loop + bad), HasSubstr(error)) << bad;
  }
}

TEST(Loop, NestedOnesAreBounded) {
  // Each level has scan outputs, so the definition of a level contains the next one three times.
  const auto nested = [](int levels) {
    std::string value = "Neg(%v)";
    for (int i = 0; i < levels; ++i) {
      value =
          "Loop(_, _, %v; M = 1, results = 2, body = { program input %i : i64 input %go : bool input %v : f32 "
          "define %w : f32 = " +
          value + " output %go output %w output %w }).0";
    }
    return "program input %v : f32 define %w : f32 = " + value + " output %w";
  };
  EXPECT_EQ(error_of(nested(8)), "no error");
  EXPECT_THAT(error_of(nested(9)), HasSubstr("programs are nested more than 8 deep"));
  EXPECT_THAT(error_of(nested(60)), HasSubstr("programs are nested more than 8 deep"));
}

TEST(Loop, WhatDoesNotFitIsSaid) {
  const auto error = [](const std::string& operands, const std::string& attributes, const std::string& body) {
    return error_of("program input %m : i64 input %x : [3]f32 define %y : [3]f32 = Loop(" + operands + "; " +
                    attributes + "body = { program input %i : i64 input %go : bool input %v : [3]f32 " + body + " })");
  };
  EXPECT_THAT(error("_, _, %x", "M = 3, ", "define %n : [2]f32 = slice 0 2 %v output %go output %n"),
              HasSubstr("carried value 0 is [3]f32 before body, and [2]f32 after it"));
  EXPECT_THAT(error("_, _, %x", "M = 3, ", "output %v output %v"),
              HasSubstr("the condition that body gives is [3]f32, not one bool"));
  EXPECT_THAT(error("_, _, %x", "M = 3, captured = 2, ", "output %go output %v"),
              HasSubstr("captured is 2, and there are only 1 operands"));
  EXPECT_THAT(error("%m, _, %x", "most = 3000000000, ", "output %go output %v"),
              HasSubstr("at most 2147483648 are supported"));
  EXPECT_THAT(error("_, _, %x", "M = 3, ", "output %go"), HasSubstr("body returns 1 values, and the loop carries 2"));
}

// Running sums from the end of the second axis, minus the captured value.
constexpr char running_sums[] =
    "program version 28\n"
    "size n from 1 to 100\n"
    "input %s : [2]f32\n"
    "input %x : [2][n]f32\n"
    "input %z : [2]f32\n"
    "define %r : ([2]f32, [2][n]f32) = Scan(%s, %x, %z; num_scan_inputs = 1, captured = 1, results = 2,\n"
    "  scan_input_axes = [1], scan_input_directions = [1], scan_output_axes = [-1], scan_output_directions = [1],\n"
    "  body = { program input %s : [2]f32 input %e : [2]f32 input %z : [2]f32\n"
    "    define %next : [2]f32 = Add(%s, %e)\n"
    "    define %row : [2]f32 = Sub(%next, %z)\n"
    "    output %next output %row }) from \"scan\"\n"
    "define %last : [2]f32 = %r.0\n"
    "define %rows : [2][n]f32 = %r.1\n"
    "output %rows\n";

TEST(Scan, RunsOverSequences) {
  const Program open = parsed(running_sums);
  auto program = with_sizes(open, {{"n", 3}});
  ASSERT_TRUE(program.ok()) << program.errors()[0].text();
  const Bindings values = {{"s", floats({10, 20})},
                           {"x", Tensor::of(Scalar::f32, {2, 3}, std::vector<double>{1, 2, 3, 4, 5, 6})},
                           {"z", floats({1, 0})}};
  EXPECT_THAT(value_of(*program, "last", values), ElementsAre(16, 35));
  EXPECT_THAT(value_of(*program, "rows", values), ElementsAre(15, 14, 12, 35, 31, 26));
}

TEST(Scan, WhatDoesNotFitIsSaid) {
  const auto error = [](const std::string& attributes) {
    return error_of("program input %x : [3]f32 input %y : [4]f32 define %z : [3]f32 = Scan(%x, %y; " + attributes +
                    "body = { program input %a : f32 input %b : f32 define %c : f32 = Add(%a, %b) output %c })");
  };
  EXPECT_THAT(error("num_scan_inputs = 2, "), HasSubstr("scan inputs of 3 and of 4 elements"));
  EXPECT_THAT(error(""), HasSubstr("num_scan_inputs is 0, and there are 2 operands"));
  EXPECT_THAT(error("num_scan_inputs = 3, "), HasSubstr("num_scan_inputs is 3"));
  EXPECT_THAT(error("num_scan_inputs = 2, scan_input_axes = [0], "),
              HasSubstr("1 axes and 2 directions for 2 scan inputs"));
  EXPECT_THAT(error("num_scan_inputs = 2, scan_input_axes = [0, 1], "), HasSubstr("axis 1 lies outside -1..0"));
}

}  // namespace hoist::control_test
