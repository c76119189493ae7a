// Tests programs with symbolic sizes: as text, typed, and with numbers substituted.
#include "ir/program/sizes.h"

#include <gmock/gmock.h>

#include "ir/evaluate/evaluate.h"
#include "ir/text/program_text.h"
#include "ir/text/text.h"

namespace hoist::sizes_test {

using testing::HasSubstr;

constexpr char classifier[] =
    "program %classifier version 28\n"
    "size batch from 1 to 512\n"
    "size n\n"
    "size steps from 2\n"
    "input %x : [batch][3]f32\n"
    "input %y : [steps][batch][n]f32\n"
    "constant %b : [2]f32 = {0.5, -1}\n"
    "constant %w : [3][2]f32 = {1, 2, 3, 4, 5, 6}\n"
    "define %p : [batch][2]f32 = MatMul(%x, %w) from \"product\"\n"
    "define %s : [batch][2]f32 = Add(%p, %b) from \"bias\"\n"
    "define %q : [batch][2]f32 = Softmax(%s; axis = 1) from \"softmax\"\n"
    "define %m : [batch]f32 = ReduceMean(%q; axes = [1], keepdims = 0) from \"mean\"\n"
    "define %k : [batch][1]f32 = ReduceMax(%q; axes = [1]) from \"largest\"\n"
    "define %t : [n][steps][batch]f32 = Transpose(%y; perm = [2, 0, 1]) from \"turn\"\n"
    "define %z : [n][steps][batch]f32 = Relu(Mul(%t, %m)) from \"scale\"\n"
    "define %d : [2*batch]f32 = concat(%m, %m)\n"
    "output %k\n"
    "output %z\n"
    "output %d\n";

Program parsed(const std::string& text) {
  auto program = parse_program(text);
  HOIST_CHECK(program.ok(), program.errors()[0].text());
  return *program;
}

std::string error_of(const Result<Program>& program) { return program.ok() ? "no error" : program.errors()[0].text(); }

TEST(Sizes, ProgramsWithThemComeBackFromText) {
  const Program program = parsed(classifier);
  EXPECT_EQ(print_program(program), classifier);
  EXPECT_TRUE(same_program(parsed(print_program(program)), program));
  EXPECT_EQ(program.sizes.at("batch"), (SizeBounds{1, 512}));
  EXPECT_EQ(program.sizes.at("n"), SizeBounds());
  Program wider = program;
  wider.sizes["batch"].most = 513;
  EXPECT_FALSE(same_program(program, wider));
}

TEST(Sizes, NumbersInTheirPlaceMakeAnOrdinaryProgram) {
  const Program open = parsed(classifier);
  EXPECT_THAT(error_of([&]() -> Result<Program> {
                HOIST_TRY_VOID(check_sizes_known(open));
                return open;
              }()),
              HasSubstr("program classifier: has sizes without numbers: batch from 1 to 512, n from 1 to 2147483648, "
                        "steps from 2 to 2147483648 (hoist rewrite FILE.lift --dim batch=1 --dim n=1 --dim steps=2"));
  auto program = with_sizes(open, {{"batch", 4}, {"n", 5}, {"steps", 2}});
  ASSERT_TRUE(program.ok()) << program.errors()[0].text();
  EXPECT_TRUE(check_sizes_known(*program).ok());
  // The text with numbers in place of the sizes is the same program, so it has the same values.
  std::string written = classifier;
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"2*batch", "8"},
                                 {"[batch]", "[4]"},
                                 {"[n]", "[5]"},
                                 {"[steps]", "[2]"},
                                 {"size batch from 1 to 512\n", ""},
                                 {"size n\n", ""},
                                 {"size steps from 2\n", ""}}) {
    for (size_t at = written.find(from); at != std::string::npos; at = written.find(from, at + 1))
      written.replace(at, from.size(), to);
  }
  EXPECT_TRUE(same_program(*program, parsed(written))) << print_program(*program);
  // Only some sizes get numbers.
  auto some = with_sizes(open, {{"n", 5}});
  ASSERT_TRUE(some.ok()) << some.errors()[0].text();
  EXPECT_EQ(some->sizes.size(), 2U);
  EXPECT_EQ(text(value_types(*some).at("z")), "[5][steps][batch]f32");
}

TEST(Sizes, WrongNumbersAreRefused) {
  const Program open = parsed(classifier);
  EXPECT_THAT(error_of(with_sizes(open, {{"batch", 513}})),
              HasSubstr("size batch: 513 lies outside its bounds, from 1 to 512"));
  EXPECT_THAT(error_of(with_sizes(open, {{"bach", 4}})),
              HasSubstr("size bach: the program has no such size (did you mean batch?)"));
  EXPECT_THAT(error_of(with_sizes(parsed("program\nsize n\ninput %x : [n - 5]f32\noutput %x\n"), {{"n", 3}})),
              HasSubstr("input x: has the extent -2 with these sizes"));
  EXPECT_THAT(error_of(with_sizes(parsed("program\nsize n\ninput %x : [n][n]f32\noutput %x\n"), {{"n", 1 << 30}})),
              HasSubstr("has more than 2^48 elements with these sizes"));
  EXPECT_THAT(error_of(with_sizes(parsed("program\nsize n\ninput %x : [n*n*n*n]f32\noutput %x\n"), {{"n", 1 << 30}})),
              HasSubstr("has no types for these sizes"));
  // Types that are valid for some numbers only.
  EXPECT_THAT(
      error_of(with_sizes(parsed("program\nsize n\ninput %x : [n]f32\ndefine %y : [3]f32 = slice 0 3 %x\noutput %y\n"),
                          {{"n", 2}})),
      HasSubstr("value y: slice: element 2 lies outside 0..1"));
}

TEST(Sizes, TextThatDeclaresThemWronglyIsRefused) {
  const auto error = [](const std::string& text) { return error_of(parse_program(text)); };
  EXPECT_THAT(error("program\ninput %x : [n]f32\n"),
              HasSubstr("2:13: the size n is not declared (write size n from 1 to 512 before the inputs)"));
  EXPECT_THAT(error("program\nsize n\nsize n\n"), HasSubstr("3:6: the size n is declared twice"));
  EXPECT_THAT(error("program\nsize n from 0\n"), HasSubstr("sizes lie between 1 and 2147483648"));
  EXPECT_THAT(error("program\nsize n from 9 to 8\n"), HasSubstr("the size n from 9 to 8"));
  EXPECT_THAT(error("program\nsize n to 9999999999\n"), HasSubstr("sizes lie between"));
  EXPECT_THAT(error("program\nsize map\n"), HasSubstr("map is a keyword of the language"));
  EXPECT_THAT(error("program\ninput %x : f32\nsize n\n"), HasSubstr("sizes come before them"));
  EXPECT_THAT(error("program\ndefine %y : f32 = Relu(1f32; body = { program size n })\n"),
              HasSubstr("a body has no sizes of its own"));
  EXPECT_THAT(error("program\ninput %x : [4]f32\ndefine %y : [4]f32 = slice 0 n %x\n"),
              HasSubstr("the size n is not declared"));
}

TEST(Sizes, CallsThatNeedANumberSaySo) {
  const auto call = [](const std::string& text) {
    return error_of(
        parse_program("program\nsize n\nsize m\ninput %x : [n][3]f32\ninput %y : [m][3]f32\n"
                      "define %z : f32 = " +
                      text + "\n"));
  };
  EXPECT_THAT(call("Add(%x, %y)"), HasSubstr("Add: [m][3] does not broadcast with [n][3]: m and n may differ"));
  EXPECT_THAT(call("MatMul(%x, Transpose(%x))"), HasSubstr("%z is declared as f32, its term has type [n][n]f32"));
  EXPECT_THAT(call("MatMul(Transpose(%x), %y)"), HasSubstr("inner dimensions differ: n of [3][n] and m of [m][3]"));
  EXPECT_THAT(call("ReduceMean(%x; axes = [0])"),
              HasSubstr("ReduceMean has no type that holds for every n: the size n has to be a number"));
  EXPECT_THAT(call("ReduceSum(%x; axes = [0])"), HasSubstr("its term has type [1][3]f32"));
  EXPECT_THAT(call("Shape(%x)"), HasSubstr("Shape has no type that holds for every n: the size n has to be a number"));
  EXPECT_THAT(call("Softmax(%x; axis = 2)"), HasSubstr("axis 2 lies outside -2..1"));
}

TEST(Sizes, BodiesMentionThoseAroundThem) {
  constexpr char text[] =
      "program version 28\n"
      "size n from 1 to 9\n"
      "input %c : bool\n"
      "input %x : [n]f32\n"
      "define %y : [n]f32 =\n"
      "  If(%c, %x;\n"
      "    else_branch = { program version 28\n"
      "      input %x : [n]f32\n"
      "      define %v : [n]f32 = Neg(%x) from \"negate\"\n"
      "      output %v\n"
      "      },\n"
      "    then_branch = { program version 28\n"
      "      input %x : [n]f32\n"
      "      output %x\n"
      "      })\n"
      "output %y\n";
  const Program open = parsed(text);
  EXPECT_TRUE(same_program(parsed(print_program(open)), open)) << print_program(open);
  auto program = with_sizes(open, {{"n", 3}});
  ASSERT_TRUE(program.ok()) << program.errors()[0].text();
  EXPECT_EQ(print_program(*program).find("[n]"), std::string::npos) << print_program(*program);
  const Tensor x = Tensor::of(Scalar::f32, {3}, std::vector<double>{1, -2, 3});
  auto y = evaluate(program->definitions[0].expression,
                    {{"c", Tensor::of(Scalar::boolean, {}, std::vector<int>{0})}, {"x", x}});
  ASSERT_TRUE(y.ok()) << y.errors()[0].text();
  EXPECT_EQ(y->float_at(1), 2);
}

}  // namespace hoist::sizes_test
