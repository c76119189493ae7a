// Tests a user's own rules and steps: valid files, and the errors of invalid ones.
#include "lowering/strategies/schedule_script.h"

#include <gmock/gmock.h>

#include "ir/evaluate/evaluate.h"
#include "ir/text/text.h"
#include "lowering/pipeline/lower.h"
#include "lowering/pipeline/replay.h"
#include "tests/lowering/stored_run.h"
#include "tests/support/lower_model.h"

namespace hoist::schedule_script_test {

using testing::HasSubstr;

std::string said(const Diagnostics& problems) {
  std::string out;
  for (const Diagnostic& d : problems) out += d.text() + "\n";
  return out;
}

template <class T>
std::string fault_of(const Result<T>& result) {
  return result.ok() ? "no fault" : said(result.errors());
}

constexpr char pairs[] =
    "-- a loop of pairs\n"
    "rule halve-loop exact\n"
    "  given x: [2*m]T, f: T -> U\n"
    "  left  map f x\n"
    "  right join (map (map f)\n"
    "    (split 2 x))\n"
    "  meaning a loop of pairs\n";

TEST(UserRules, AreReadAndTested) {
  auto rules = read_user_rules(pairs, "my.rules");
  ASSERT_TRUE(rules.ok()) << said(rules.errors());
  ASSERT_EQ(rules->rows.within_terms.size(), 1U);
  EXPECT_EQ(rules->rows.within_terms[0].right, "join (map (map f) (split 2 x))");
  EXPECT_NE(rules->table.find("halve-loop"), nullptr);
  EXPECT_NE(rules->table.find("map-fusion"), nullptr);
}

TEST(UserRules, WrongFilesAreRefused) {
  const auto fault = [](const std::string& text) { return fault_of(read_user_rules(text, "my.rules")); };
  EXPECT_THAT(fault(""), HasSubstr("my.rules: holds no rule"));
  EXPECT_THAT(fault("  left x\n"), HasSubstr("my.rules:1:3: belongs to no rule"));
  EXPECT_THAT(fault("rule twice always\n  left x\n"), HasSubstr("my.rules:1:12: \"always\" is not a class"));
  EXPECT_THAT(fault("rule Twice exact\n  left x\n"), HasSubstr("is not a name of a rule"));
  EXPECT_THAT(fault("rule twice neural\n  left x\n"), HasSubstr("cannot be neural"));
  EXPECT_THAT(fault("rule twice exact\n  lef x\n"), HasSubstr("my.rules:2:3: unknown key lef (did you mean left?)"));
  EXPECT_THAT(fault("rule twice exact\n  given x: T\n  left x\n  meaning m\n"), HasSubstr("twice: has no right"));
  const std::string head = "rule mine exact\n  meaning m\n  given x: T, y: T\n";
  EXPECT_THAT(fault(head + "  left x +\n  right y\n"), HasSubstr("mine"));
  EXPECT_THAT(fault(head + "  left x + y\n  right z\n"), HasSubstr("mine"));
  EXPECT_THAT(fault(head + "  left x + y\n  right native map-fission\n"), HasSubstr("cannot be a C++ function"));
  EXPECT_THAT(fault("rule map-fusion exact\n  meaning m\n  given x: T, y: T\n  left x + y\n  right y + x\n"),
              HasSubstr("hoist has a rule or pass of this name"));
  // Well-typed but wrong: an instance refutes it.
  EXPECT_THAT(fault(head + "  left x - y\n  right y - x\n  where integer T\n"),
              HasSubstr("mine: is wrong as a rule of class exact: "));
  EXPECT_THAT(fault("rule mine exact\n  meaning m\n  given x: T, y: T, w: T\n  left x + y + w\n  right x + (y + w)\n"
                    "  where float T\n"),
              HasSubstr("is wrong as a rule of class exact"));
}

// y = relu(a b + c), one kernel.
NamedModel product() {
  NamedModel graph;
  graph.name = "product";
  graph.opset = 21;
  graph.inputs = {{"a", Scalar::f32, {8, 12}}};
  graph.outputs = {{"y", Scalar::f32, {}}};
  Tensor b(Scalar::f32, {12, 32}), c(Scalar::f32, {32});
  for (int64_t i = 0; i < b.size(); ++i) b.set_float(i, static_cast<double>(i % 7) - 3);
  for (int64_t i = 0; i < c.size(); ++i) c.set_float(i, static_cast<double>(i % 5) - 2);
  graph.constants = {{"b", b}, {"c", c}};
  graph.layers = {{"product", "MatMul", "", {}, {"a", "b"}, {"p"}},
                  {"bias", "Add", "", {}, {"p", "c"}, {"s"}},
                  {"relu", "Relu", "", {}, {"s"}, {"y"}}};
  return graph;
}

Result<LoweredModel> scripted(const std::string& steps, const UserRules* rules = nullptr, bool strict = false,
                              const std::string& layer = "product") {
  LowerOptions options;
  options.strict = strict;
  options.rules = rules;
  HOIST_TRY(ScheduleScript script, parse_schedule_script(steps, layer, "my.steps"));
  options.steps.push_back(std::move(script));
  return lower_model(product(), options, {});
}

TEST(ScheduleScript, DerivesAKernelAsTheFileSays) {
  auto model = scripted(
      "-- the sum as a fold with fused products\n"
      "reduce-map-fusion-to-fold everywhere\n"
      "multiply-add-to-fma\n"
      "open-group(d = 1) at result   -- a work-group a row\n"
      "open-vectors(k = 8) in loop\n");
  ASSERT_TRUE(model.ok()) << said(model.errors());
  ASSERT_EQ(model->groups.size(), 1U);
  std::vector<std::string> names;
  for (const Application& step : model->groups[0].derivation.steps) names.push_back(step.rule);
  EXPECT_THAT(names,
              testing::ElementsAre("reduce-map-fusion-to-fold", "multiply-add-to-fma", "open-group", "open-vectors"));
  EXPECT_THAT(print(model->groups[0].low), HasSubstr("map group(1)"));
  // The same values as with the strategy: they are integers, so that every order of the sums gives them.
  auto plain = lower_model(product(), {}, {});
  ASSERT_TRUE(plain.ok());
  Tensor a(Scalar::f32, {8, 12});
  for (int64_t i = 0; i < a.size(); ++i) a.set_float(i, static_cast<double>(i % 9) - 4);
  EXPECT_TRUE(same_bits(outputs_of(*model, {{"a", a}}).at("y"), outputs_of(*plain, {{"a", a}}).at("y")));
}

TEST(ScheduleScript, RunsAStrategyByName) {
  auto named = scripted("strategy elements\n"), tiles = scripted("strategy register-tiles\n");
  auto plain = lower_model(product(), {}, {});
  ASSERT_TRUE(named.ok()) << said(named.errors());
  ASSERT_TRUE(tiles.ok() && plain.ok());
  EXPECT_EQ(tiles->groups[0].low, plain->groups[0].low);
  EXPECT_NE(named->groups[0].low, plain->groups[0].low);
  EXPECT_THAT(fault_of(scripted("strategy tiles\n")), HasSubstr("my.steps:1: unknown strategy tiles"));
  EXPECT_THAT(fault_of(scripted("strategy register-tile\n")), HasSubstr("did you mean register-tiles?"));
  EXPECT_THAT(fault_of(scripted("strategy group-rows\n")),
              HasSubstr("my.steps:1: group-rows cannot map this kernel to the device"));
}

TEST(ScheduleScript, UsesTheUsersRulesAndReplays) {
  auto rules = read_user_rules(pairs, "my.rules");
  ASSERT_TRUE(rules.ok());
  auto model = scripted("halve-loop at map\nstrategy\n", &*rules);
  ASSERT_TRUE(model.ok()) << said(model.errors());
  auto read = parse_derivation(print_derivation(model->derivation));
  ASSERT_TRUE(read.ok()) << said(read.errors());
  EXPECT_EQ(read->rules, pairs);
  EXPECT_THAT(fault_of(replay(*read, {})), HasSubstr("unknown rule or pass halve-loop"));
  ReplayOptions options;
  options.user_rules = &*rules;
  auto replayed = replay(*read, options);
  ASSERT_TRUE(replayed.ok()) << said(replayed.errors());
  EXPECT_EQ(replayed->program.definitions[0].expression, model->groups[0].low);
}

TEST(ScheduleScript, WrongFilesAreRefused) {
  const auto fault = [](const std::string& text, bool strict = false) {
    return fault_of(scripted(text, nullptr, strict));
  };
  EXPECT_THAT(fault("\n-- nothing\n"), HasSubstr("my.steps: holds no step"));
  EXPECT_THAT(fault("reduce-to-fold(k = 8\n"), HasSubstr("my.steps:1: the parameters have no closing bracket"));
  EXPECT_THAT(fault("reduce-to-fold nowhere\n"), HasSubstr("my.steps:1: expected a place, found nowhere"));
  EXPECT_THAT(fault("reduce-to-fold at mapp\n"), HasSubstr("unknown pattern mapp (did you mean map?)"));
  EXPECT_THAT(fault("reduce-to-fold at map #0\n"), HasSubstr("\"0\" is not a number of a pattern"));
  EXPECT_THAT(fault("-- one\nreduce-to-fald\n"), HasSubstr("my.steps:2: unknown rule reduce-to-fald (did you mean"));
  EXPECT_THAT(fault("fold-dot\n"), HasSubstr("fold-dot applies nowhere in the kernel's term"));
  EXPECT_THAT(fault("open-seq in loop\n"), HasSubstr("no earlier step has opened a loop"));
  EXPECT_THAT(fault("open-seq at fold seq\n"), HasSubstr("has 0 places of fold seq, and the step names number 1"));
  EXPECT_THAT(fault("reduce-to-fold at result\n"), HasSubstr("reduce-to-fold does not apply at"));
  EXPECT_THAT(fault("open-vectors at result\n"), HasSubstr("open-vectors does not apply at root: "));
  EXPECT_THAT(fault("reduce-map-fusion-to-fold\nmultiply-add-to-fma\n", true),
              HasSubstr("multiply-add-to-fma is a rounding rule, and --strict allows only exact rules"));
  EXPECT_THAT(fault_of(scripted("reduce-to-fold\n", nullptr, false, "prodct")),
              HasSubstr("--steps prodct=my.steps: no kernel computes this layer (did you mean product?)"));
}

}  // namespace hoist::schedule_script_test
