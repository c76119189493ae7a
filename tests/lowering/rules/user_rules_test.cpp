// Tests a user's rules between operator calls: read and tested, applied by the pass, recorded and replayed.
#include "lowering/rules/user_rules.h"

#include <gmock/gmock.h>

#include "ir/text/program_text.h"
#include "lowering/pipeline/lower.h"
#include "lowering/pipeline/replay.h"
#include "tests/lowering/stored_run.h"

namespace hoist::user_rules_test {

using testing::HasSubstr;

constexpr char columns_rules[] =
    "-- a factor of columns\n"
    "rule column-factors rounding\n"
    "  given x: X, w: [k][n]f32, s: [n]f32\n"
    "  left  Mul(MatMul(x, w), s)\n"
    "  right MatMul(x, scaled)\n"
    "    where scaled = Mul(w, s)\n"
    "  where known w, known s, alone\n"
    "  meaning a known factor of each column goes into the weights\n"
    "  example Mul(MatMul(%x : [m][k]f32, %known_w : [k][n]f32), %known_s : [n]f32)\n"
    "  example Mul(MatMul(%x : [b][m][k]f32, %known_w : [k][n]f32),\n"
    "    %known_s : [n]f32)\n"
    "rule loop-of-pairs exact\n"
    "  given x: [2*m]T, f: T -> U\n"
    "  left  map f x\n"
    "  right join (map (map f) (split 2 x))\n"
    "  meaning a loop of pairs\n";

constexpr char factor_program[] =
    "program %net version 28\n"
    "input %x : [2][3]f32\n"
    "constant %s : [2]f32 = {0.5, -1}\n"
    "constant %w : [3][2]f32 = {1, 2, 3, 4, 5, 6}\n"
    "define %p : [2][2]f32 = MatMul(%x, %w) from \"product\"\n"
    "define %y : [2][2]f32 = Mul(%p, %s) from \"scale\"\n"
    "output %y\n";

std::string all_of(const Diagnostics& problems) {
  std::string out;
  for (const Diagnostic& d : problems) out += d.text() + "\n";
  return out;
}

std::string rules_fault(const std::string& text) {
  const auto rules = read_user_rules(text, "my.rules");
  return rules.ok() ? "no fault" : all_of(rules.errors());
}

Program read_text(const std::string& text) {
  auto program = parse_program(text);
  HOIST_CHECK(program.ok(), program.errors()[0].text());
  return *program;
}

TEST(RulesBetweenCalls, AreReadAndTested) {
  auto rules = read_user_rules(columns_rules, "my.rules");
  ASSERT_TRUE(rules.ok()) << all_of(rules.errors());
  ASSERT_EQ(rules->between_calls.size(), 1U);
  const ProgramRuleRow& row = hoist::row(*rules->find_between_calls("column-factors"));
  EXPECT_EQ(row.right, "MatMul(x, scaled) where scaled = Mul(w, s)");
  EXPECT_EQ(row.examples.size(), 2U);
  EXPECT_EQ(row.rule_class, RuleClass::rounding);
  EXPECT_EQ(rules->find_between_calls("loop-of-pairs"), nullptr);
  EXPECT_NE(rules->table.find("loop-of-pairs"), nullptr);
}

TEST(RulesBetweenCalls, WrongOnesAreRefusedWithTheInstance) {
  const auto fault = [](const std::string& sides, const std::string& rule_class = "exact") {
    return rules_fault("rule mine " + rule_class + "\n  meaning m\n" + sides);
  };
  // Rules that are correct for positive values only, except for NaN, and except for rounding.
  EXPECT_THAT(fault("  left Relu(x)\n  right Identity(x)\n  example Relu(%x : [n]f32)\n"),
              HasSubstr("my.rules:1:6: mine: is wrong as a rule of class exact: element"));
  EXPECT_THAT(
      fault("  left Sub(x, x)\n  right Mul(x, zero) where zero = fill 0f32 [1]\n  example Sub(%x : [n]f32, %x)\n"),
      HasSubstr("mine: is wrong"));
  EXPECT_THAT(fault("  left Add(Add(x, y), z)\n  right Add(x, Add(y, z))\n"
                    "  example Add(Add(%x : [n]f32, %y : [n]f32), %z : [n]f32)\n"),
              HasSubstr("mine: is wrong as a rule of class exact"));
  EXPECT_EQ(fault("  left Add(Add(x, y), z)\n  right Add(x, Add(y, z))\n"
                  "  example Add(Add(%x : [n]f32, %y : [n]f32), %z : [n]f32)\n",
                  "rounding"),
            "no fault");
  EXPECT_THAT(fault("  left Relu(x)\n  right Transpose(x)\n  example Relu(%x : [n][m]f32)\n"), HasSubstr("mine"));
  EXPECT_THAT(fault("  left Relu(x)\n  right Relu(y)\n  example Relu(%x : [n]f32)\n"), HasSubstr("mine"));
  EXPECT_THAT(fault("  left Relu(x\n  right x\n  example Relu(%x : [n]f32)\n"), HasSubstr("mine, left side"));
  EXPECT_THAT(fault("  left Relu(x)\n  right x\n  where small x\n  example Relu(%x : [n]f32)\n"),
              HasSubstr("unknown condition small x"));
  EXPECT_THAT(fault("  left Relu(x)\n  right x\n"),
              HasSubstr("has no example, and a rule between operator calls is tested on examples"));
  EXPECT_THAT(fault("  left Relu(x)\n  right x\n  parameters k\n  example Relu(%x : [n]f32)\n"),
              HasSubstr("a rule between operator calls has no parameters"));
  EXPECT_THAT(fault("  left x\n  right x\n  example Relu(%x : [n]f32)\n"),
              HasSubstr("the left side is not an operator call"));
  EXPECT_THAT(fault("  left Relu(x)\n  right Mul(x, s)\n  given s: f32\n  example Relu(%x : [n]f32)\n"),
              HasSubstr("an operand of given appears on the right side alone"));
  EXPECT_THAT(fault("  left Relu(x)\n  right x\n  example Abs(%x : [n]f32)\n"), HasSubstr("no instance was found"));
  EXPECT_THAT(fault("  left Relu(x)\n  right x\n  given x: (f32, i8)\n  example Relu(%x : [n]f32)\n"),
              HasSubstr("an operand is an array of scalars"));
  EXPECT_THAT(
      rules_fault(
          "rule inline-definitions exact\n  meaning m\n  left Relu(x)\n  right Relu(x)\n  example Relu(%x : f32)\n"),
      HasSubstr("hoist has a rule or pass of this name"));
  EXPECT_THAT(
      rules_fault("rule batch-norm-folding exact\n  meaning m\n  left Relu(x)\n  right x\n  example Relu(%x : f32)\n"),
      HasSubstr("hoist has a rule or pass of this name"));
  EXPECT_THAT(rules_fault(std::string(columns_rules) + columns_rules),
              HasSubstr("the rule column-factors appears here twice"));
}

TEST(RulesBetweenCalls, ExamplesOfStrangersAreBounded) {
  const auto fault = [](const std::string& type, const std::string& right = "Relu(x)") {
    return rules_fault("rule mine exact\n  meaning m\n  left Relu(x)\n  right " + right +
                       "\n  example Relu(%x : " + type + ")\n");
  };
  EXPECT_EQ(fault("[n]f32"), "no fault");
  EXPECT_THAT(fault("[1000000000]f32"), HasSubstr("it takes too long to compute: choose smaller sizes"));
  EXPECT_THAT(fault("[N]f32"), HasSubstr("sizes that the test draws are lower-case"));
  EXPECT_THAT(fault("[n]T"), HasSubstr("mine"));
  EXPECT_THAT(fault("f32",
                    "Loop(_, _, x; M = 2000000000, body = { program input %i : i64 input %c : bool input %v : f32 "
                    "define %n : f32 = Neg(%v) output %c output %n })"),
              HasSubstr("the right side: it takes too long to compute"));
  EXPECT_THAT(fault("f32",
                    "Add(x, c) where c = Loop(_, _, 1f32; M = 2000000000, body = { program input %i : i64 "
                    "input %c : bool input %v : f32 define %n : f32 = Neg(%v) output %c output %n })"),
              HasSubstr("takes too long to compute as a constant"));
}

Result<LoweredModel> lowered_with(const UserRules& rules, bool strict = false) {
  LowerOptions options;
  options.strict = strict;
  options.rules = &rules;
  return lower_model(read_text(factor_program), options, {});
}

TEST(RulesBetweenCalls, ApplyAndReplay) {
  auto rules = read_user_rules(columns_rules, "my.rules");
  ASSERT_TRUE(rules.ok()) << all_of(rules.errors());
  auto model = lowered_with(*rules);
  ASSERT_TRUE(model.ok()) << all_of(model.errors());
  EXPECT_EQ(model->groups.size(), 1U);
  auto read = parse_derivation(print_derivation(model->derivation));
  ASSERT_TRUE(read.ok()) << all_of(read.errors());
  EXPECT_EQ(read->rules, columns_rules);
  EXPECT_EQ(read->steps.front().rule, "column-factors");
  EXPECT_EQ(read->steps.front().rule_class, RuleClass::rounding);
  const auto without = replay(*read, {});
  ASSERT_FALSE(without.ok());
  EXPECT_THAT(all_of(without.errors()), HasSubstr("unknown rule or pass column-factors"));
  ReplayOptions options;
  options.user_rules = &*rules;
  std::vector<std::string> notes;
  auto replayed = replay(*read, options, [&](const ReplayedStep& step) { notes.push_back(step.note); });
  ASSERT_TRUE(replayed.ok()) << all_of(replayed.errors());
  EXPECT_EQ(replayed->program.definitions[0].expression, model->groups[0].low);
  EXPECT_EQ(notes.front(), "a known factor of each column goes into the weights");
  // Integers: the result is the same with and without the rule.
  auto plain = lower_model(read_text(factor_program), {}, {});
  ASSERT_TRUE(plain.ok());
  const Tensor x = Tensor::of(Scalar::f32, {2, 3}, std::vector<double>{1, -2, 3, 4, 5, -6});
  EXPECT_TRUE(same_bits(outputs_of(*model, {{"x", x}}).at("y"), outputs_of(*plain, {{"x", x}}).at("y")));
}

TEST(RulesBetweenCalls, RoundingOnesAreRefusedUnderStrict) {
  auto rules = read_user_rules(columns_rules, "my.rules");
  ASSERT_TRUE(rules.ok());
  const auto model = lowered_with(*rules, true);
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(all_of(model.errors()),
            "column-factors: is a rounding rule, and --strict allows only exact rules (leave one of them out)\n");
}

TEST(RulesBetweenCalls, OneThatNeverEndsIsRefused) {
  auto rules = read_user_rules(
      "rule swap exact\n  meaning m\n  left Add(x, y)\n  right Add(y, x)\n"
      "  example Add(%x : [n]f32, %y : [n]f32)\n",
      "my.rules");
  ASSERT_TRUE(rules.ok()) << all_of(rules.errors());
  PassOptions options;
  options.rules = &*rules;
  Program program = read_text("program\ninput %x : f32\ninput %y : f32\ndefine %z : f32 = Add(%x, %y)\noutput %z\n");
  const auto done = run_passes(program, Pass::calls, options);
  ASSERT_FALSE(done.ok());
  EXPECT_THAT(all_of(done.errors()), HasSubstr("swap: applies to its own result at z without end"));
}

}  // namespace hoist::user_rules_test
