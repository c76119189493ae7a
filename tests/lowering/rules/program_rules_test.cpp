// Tests rules between operator calls: each row is checked with the evaluator, conditions exclude invalid cases, and
// faulty rows are reported.
#include "lowering/rules/program_rules.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "ir/rules/program_rule.h"
#include "ir/text/program_text.h"
#include "lowering/pipeline/passes.h"

namespace hoist::program_rules_test {

using testing::HasSubstr;

Program parsed(const std::string& text) {
  auto program = parse_program(text);
  HOIST_CHECK(program.ok(), program.errors()[0].text());
  return *program;
}

const ProgramRule& rule(const std::string& name) { return *operator_rule(name); }

TEST(ProgramRules, EveryRowKeepsWhatItsClassPromises) {
  for (const ProgramRule* each : operator_rules()) {
    const ProgramRuleCheck check = check_program_rule(*each, 30, 7);
    for (const std::string& fault : check.faults) ADD_FAILURE() << row(*each).name << ": " << fault;
    EXPECT_GE(check.compared, 30) << row(*each).name;
    EXPECT_FALSE(row(*each).meaning.empty()) << row(*each).name;
  }
}

TEST(ProgramRules, WrongRowsAreFound) {
  const std::vector<ProgramRuleRow> wrong = {
      {"drops-the-sign", "", "Abs(Neg(x))", "Neg(x)", "alone", RuleClass::exact, "", {"Abs(Neg(%x : [n]f32))"}},
      {"divides-once",
       "",
       "Div(Div(a, b), c)",
       "Div(a, Mul(b, c))",
       "",
       RuleClass::exact,
       "",
       {"Div(Div(%a : [n]f32, %b : [n]f32), %known_c : [n]f32)"}},
      {"never-applies", "", "Exp(Log(x))", "Abs(x)", "known x", RuleClass::exact, "", {"Exp(Log(%x : [n]f32))"}},
  };
  auto rules = load_program_rules(wrong, {});
  ASSERT_TRUE(rules.ok()) << rules.errors()[0].text();
  for (const ProgramRule* each : *rules)
    EXPECT_FALSE(check_program_rule(*each, 50, 3).faults.empty()) << row(*each).name;
  ASSERT_FALSE(check_program_rule(rule("batch-norm-folding"), 1, 1).compared == 0);
}

TEST(ProgramRules, FaultsOfRowsAreFoundWhenTheyAreLoaded) {
  const std::vector<ProgramRuleRow> wrong = {
      {"no-call", "", "x + x", "x", "", RuleClass::exact, "", {}},
      {"no-name", "", "x", "y where y = Abs(x); z = Abs(y)", "", RuleClass::exact, "", {}},
      {"no-operator", "", "Abs(x)", "Nothing(x)", "any Layer", RuleClass::exact, "", {}},
      {"no-condition", "", "Abs(x)", "x", "certainly", RuleClass::exact, "", {}},
      {"no-term", "", "Abs(x", "x +", "", RuleClass::exact, "", {}},
      {"no-type", "x: [n", "Abs(x)", "x", "", RuleClass::exact, "", {}},
  };
  auto rules = load_program_rules(wrong, {});
  ASSERT_FALSE(rules.ok());
  std::string all;
  for (const Diagnostic& d : rules.errors()) all += d.text() + "\n";
  EXPECT_THAT(all, HasSubstr("no-call: the left side is neither an operator call nor a name"));
  EXPECT_THAT(all, HasSubstr("no-name: the right side of a rule for reads is the name that it defines last"));
  EXPECT_THAT(all, HasSubstr("no-operator: there is no operator Nothing"));
  EXPECT_THAT(all, HasSubstr("unknown condition certainly"));
  EXPECT_THAT(all, HasSubstr("no-term, left side"));
  EXPECT_THAT(all, HasSubstr("no-term, right side"));
  EXPECT_THAT(all, HasSubstr("no-type, given"));
}

const ProgramRule& loaded(ProgramRuleRow row) {
  auto rules = load_program_rules(std::span(&row, 1), {});
  HOIST_CHECK(rules.ok(), rules.errors()[0].text());
  return *rules->front();
}

const ProgramRule& halved_reads() {
  static const ProgramRule& rule = loaded({"halved-reads",
                                           "x: X, s: f32",
                                           "x",
                                           "halved where halved = Mul(x, s)",
                                           "",
                                           RuleClass::neural,
                                           "half of it",
                                           {},
                                           true});
  return rule;
}

constexpr char two_consumers[] =
    "program version 21\n"
    "input %x : [2]f32\n"
    "define %a : [2]f32 = Abs(%x) from \"a\"\n"
    "define %b : [2]f32 = Neg(%x) from \"b\"\n"
    "define %c : [2]f32 = Add(%b, %a) from \"c\"\n"
    "output %a\n"
    "output %c\n";

TEST(ProgramRules, ReadsOfAValueAreReplacedWithConstantsThatARuleIsGiven) {
  Program program = parsed(two_consumers);
  const Tensor half = Tensor::of<double>(Scalar::f32, {}, {0.5});
  ASSERT_TRUE(*apply_program_rule(halved_reads(), program, "a", {{"s", {"", half, {}}}}));
  ASSERT_TRUE(*apply_program_rule(halved_reads(), program, "x", {{"s", {"a/s", std::nullopt, {}}}}));
  EXPECT_EQ(print_program(program),
            "program version 21\n"
            "input %x : [2]f32\n"
            "constant %\"a/s\" : f32 = {0.5}\n"
            "define %\"x/halved\" : [2]f32 = Mul(%x, %\"a/s\") from \"x/halved\"\n"
            "define %a : [2]f32 = Abs(%\"x/halved\") from \"a\"\n"
            "define %b : [2]f32 = Neg(%\"x/halved\") from \"b\"\n"
            "define %\"a/halved\" : [2]f32 = Mul(%a, %\"a/s\") from \"a/halved\"\n"
            "define %c : [2]f32 = Add(%b, %\"a/halved\") from \"c\"\n"
            "output %a\n"
            "output %c\n");
  EXPECT_FALSE(*apply_program_rule(halved_reads(), program, "c", {{"s", {"", half, {}}}})) << "only the model reads it";
  EXPECT_FALSE(*apply_program_rule(halved_reads(), program, "nothing", {{"s", {"", half, {}}}}));
  // The recorded steps lead to the same program.
  Program again = parsed(two_consumers);
  for (const ProgramStep& step : program.steps) {
    auto arguments = arguments_of(halved_reads(), step, again);
    ASSERT_TRUE(arguments.ok());
    EXPECT_TRUE(*apply_program_rule(halved_reads(), again, step.value, *arguments));
  }
  EXPECT_EQ(print_program(again), print_program(program));
  // If only the hash is known, the constant is withheld.
  ProgramStep hashed = program.steps[0];
  hashed.constants[0].value.reset();
  again = parsed(two_consumers);
  EXPECT_TRUE(*apply_program_rule(halved_reads(), again, "a", *arguments_of(halved_reads(), hashed, again)));
  EXPECT_EQ(again.withheld.at("a/s"), constant_hash(half));
}

TEST(ProgramRules, ArgumentsThatDoNotFitAreErrors) {
  const Tensor half = Tensor::of<double>(Scalar::f32, {}, {0.5}), whole = Tensor::of<int64_t>(Scalar::i64, {}, {1});
  const auto fault = [&](const ProgramArguments& arguments) {
    Program program = parsed(two_consumers);
    auto applied = apply_program_rule(halved_reads(), program, "a", arguments);
    EXPECT_EQ(print_program(program), two_consumers);
    return applied.ok() ? (*applied ? "applies" : "does not apply") : applied.errors()[0].what;
  };
  EXPECT_EQ(fault({}), "the argument s is missing");
  EXPECT_EQ(fault({{"s", {"", half, {}}}, {"t", {"", half, {}}}}), "the argument t is not an argument of the rule");
  EXPECT_EQ(fault({{"s", {"b", half, {}}}}), "the argument s has the name of another value: b");
  EXPECT_EQ(fault({{"s", {"b", std::nullopt, {}}}}), "the argument s is not a constant of the program: b");
  EXPECT_EQ(fault({{"s", {"", whole, {}}}}), "does not apply");
  ProgramStep step = replayed_step("halved-reads");
  step.parameters["other"] = "a/s";
  EXPECT_FALSE(arguments_of(halved_reads(), step, parsed(two_consumers)).ok());
}

TEST(ProgramRules, OneRowIsAboutAllOperatorsWithAnOperandOrWithout) {
  const ProgramRule& scaled = loaded({"scaled-weights",
                                      "x: X, w: W, b: B = _, f: f32",
                                      "Layer(x, w, b; *A)",
                                      "Layer(x, weights, b; *A) where weights = Mul(w, f)",
                                      "any Layer, known w",
                                      RuleClass::neural,
                                      "scaled",
                                      {}});
  Program program = parsed(
      "program version 21\n"
      "input %x : [1][2]f32\n"
      "constant %w : [2][2]f32 = {1, 2, 3, 4}\n"
      "constant %b : [2]f32 = {1, 2}\n"
      "define %p : [1][2]f32 = MatMul(%x, %w)\n"
      "define %g : [1][2]f32 = Gemm(%p, %w, %b; alpha = 0.5)\n"
      "define %y : [1][2]f32 = Abs(%g)\n"
      "output %y\n");
  const Tensor half = Tensor::of<double>(Scalar::f32, {}, {0.5});
  EXPECT_FALSE(*apply_program_rule(scaled, program, "y", {{"f", {"", half, {}}}}));
  EXPECT_TRUE(*apply_program_rule(scaled, program, "p", {{"f", {"", half, {}}}}));
  EXPECT_TRUE(*apply_program_rule(scaled, program, "g", {{"f", {"", half, {}}}}));
  const std::string printed = print_program(program);
  EXPECT_THAT(printed, HasSubstr("= MatMul(%x, %\"p.weights\")\n"));
  EXPECT_THAT(printed, HasSubstr("= Gemm(%p, %\"g.weights\", %b; alpha = 0.5)\n"));
  EXPECT_THAT(printed, HasSubstr("constant %\"g.weights\" : [2][2]f32 = {0.5, 1, 1.5, 2}\n"));
}

constexpr char convolution_and_norm[] =
    "program version 21\n"
    "input %x : [1][1][3][3]f32\n"
    "constant %w : [2][1][1][1]f32 = {1, 2}\n"
    "constant %s : [2]f32 = {1, 3}\n"
    "constant %o : [2]f32 = {0, 1}\n"
    "constant %m : [2]f32 = {0.5, 0}\n"
    "constant %v : [2]f32 = {1, 4}\n"
    "define %c : [1][2][3][3]f32 = Conv(%x, %w; pads = [0, 0, 0, 0]) from \"conv\"\n"
    "define %y : [1][2][3][3]f32 = BatchNormalization(%c, %s, %o, %m, %v; epsilon = 0.0) from \"norm\"\n";

TEST(ProgramRules, BatchNormsAreFoldedWhereNobodyElseReadsTheConvolution) {
  Program program = parsed(std::string(convolution_and_norm) + "output %y\n");
  auto applied = apply_program_rule(rule("batch-norm-folding"), program, "y");
  ASSERT_TRUE(applied.ok()) << applied.errors()[0].text();
  EXPECT_TRUE(*applied);
  remove_unused(program);
  // (x * w - m) * s / sqrt(v) + o
  EXPECT_EQ(print_program(program),
            "program version 21\n"
            "input %x : [1][1][3][3]f32\n"
            "constant %\"y.bias\" : [2]f32 = {-0.5, 1}\n"
            "constant %\"y.weights\" : [2][1][1][1]f32 = {1, 3}\n"
            "define %y : [1][2][3][3]f32 = Conv(%x, %\"y.weights\", %\"y.bias\"; pads = [0, 0, 0, 0]) from \"conv\", "
            "\"norm\"\n"
            "output %y\n");
  ASSERT_EQ(program.steps.size(), 1u);
  EXPECT_EQ(program.steps[0].layer, "conv");
  EXPECT_EQ(program.steps[0].absorbed, std::vector<std::string>{"norm"});

  Program shared = parsed(std::string(convolution_and_norm) + "output %y\noutput %c\n");
  EXPECT_FALSE(*apply_program_rule(rule("batch-norm-folding"), shared, "y"));
}

TEST(ProgramRules, BatchNormsOfTheBatchAreNot) {
  const std::string statistics = "epsilon = 0.0";
  for (const bool training : {false, true}) {
    std::string text = convolution_and_norm;
    text.replace(text.find(statistics), statistics.size(),
                 fmt::format("epsilon = 0.0, momentum = 0.9, training_mode = {:d}", training));
    Program program = parsed(text + "output %y\n");
    for (const char* name : {"batch-norm-folding", "batch-norm-to-factors"}) {
      Program folded = program;
      EXPECT_EQ(*apply_program_rule(rule(name), folded, "y"), !training) << name;
    }
  }
}

TEST(ProgramRules, OtherBatchNormsMultiplyAndAdd) {
  Program program = parsed(std::string(convolution_and_norm) + "output %y\noutput %c\n");
  ASSERT_TRUE(find_pass("fold-batch-norm")->run(program, {}).ok());
  const std::string text = print_program(program);
  EXPECT_EQ(text.find("BatchNormalization"), std::string::npos) << text;
  EXPECT_NE(text.find("Mul("), std::string::npos) << text;
  // (x - m) * s / sqrt(v) + o
  EXPECT_NE(text.find(" : [2][1][1]f32 = {1, 1.5}"), std::string::npos) << text;
  EXPECT_NE(text.find(" : [2][1][1]f32 = {-0.5, 1}"), std::string::npos) << text;
}

TEST(ProgramRules, AnOperandThatIsComputedIsNotKnown) {
  Program program = parsed(
      "program version 21\n"
      "input %x : [1][1][3][3]f32\n"
      "input %w : [2][1][1][1]f32\n"
      "constant %s : [2]f32 = {1, 3}\n"
      "define %c : [1][2][3][3]f32 = Conv(%x, %w)\n"
      "define %y : [1][2][3][3]f32 = BatchNormalization(%c, %s, %s, %s, %s)\n"
      "output %y\n");
  EXPECT_FALSE(*apply_program_rule(rule("batch-norm-folding"), program, "y"));
}

// All other values are divided, and ties give the standard's integers.
TEST(ProgramRules, OnlySumsAreQuantisedWithoutADivision) {
  const std::string head =
      "program version 28\ninput %x : [4]i32\nconstant %f : f32 = {0.5}\nconstant %s : f32 = {0.3}\n"
      "input %b : [4]u8\ndefine %i : [4]f32 = Cast(%x; to = 1)\ndefine %k : [4]f32 = Cast(%b; to = 1)\n";
  for (const auto& [value, applies] :
       {std::pair{"Mul(%i, %f)", true}, {"Mul(%k, %f)", false}, {"Add(%i, %f)", false}}) {
    Program program =
        parsed(head + "define %a : [4]f32 = " + value + "\ndefine %y : [4]u8 = QuantizeLinear(%a, %s)\noutput %y\n");
    ASSERT_TRUE(find_pass("merge-scales")->run(program, {}).ok());
    EXPECT_EQ(!program.steps.empty(), applies) << value;
  }
}

TEST(Passes, RunOnTextAndStopWhereTheyAreTold) {
  Program program = parsed(std::string(convolution_and_norm) + "output %y\n");
  std::vector<std::string_view> ran;
  bool stopped = false;
  auto done = run_passes(
      program, Pass::calls, {},
      [&](const Pass& pass, const Program&) {
        ran.push_back(pass.name);
        return pass.name != "integer-tables";
      },
      &stopped);
  ASSERT_TRUE(done.ok());
  EXPECT_TRUE(stopped);
  EXPECT_EQ(ran, (std::vector<std::string_view>{"user-rules", "inline-bodies", "drop-copies", "fold-batch-norm",
                                                "group-norms", "store-unsigned", "pool-bytes", "integer-tables"}));
  EXPECT_EQ(program.definitions.size(), 1u);
  PassOptions strict;
  strict.strict = true;
  Program exact = parsed(std::string(convolution_and_norm) + "output %y\n");
  ASSERT_TRUE(run_passes(exact, Pass::calls, strict).ok());
  EXPECT_EQ(exact.definitions.size(), 2u);
  for (const Definition& d : exact.definitions) EXPECT_FALSE(d.expression->has_operator_call);
}

TEST(Passes, HaveNamesAndMeanings) {
  for (const Pass& pass : passes()) {
    EXPECT_EQ(find_pass(pass.name), &pass);
    EXPECT_FALSE(pass.meaning.empty());
  }
  EXPECT_EQ(find_pass("nothing"), nullptr);
}

}  // namespace hoist::program_rules_test
