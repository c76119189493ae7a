// Tests rules of formats as rows between calls: uses get the values of the format, moving layers before dequantising
// keeps every bit, and replayed steps give the same program.
#include "neural_rules/rewrite/format_rules.h"

#include <gmock/gmock.h>

#include "ir/text/program_text.h"
#include "tests/neural_rules/calibrated_model.h"

namespace hoist::format_rules_test {

using testing::ElementsAre;
using testing::HasSubstr;

ProgramArguments grid_arguments(const Grid& grid) {
  ProgramArguments out;
  out["scale"].value = Tensor::of<float>(Scalar::f32, {}, {grid.scale});
  out["zero_point"].value = Tensor::of<int64_t>(grid.scalar, {}, {grid.zero_point});
  return out;
}

ProgramArguments arguments_for(const NeuralRule& rule, const Grid& grid) {
  const bool has_scale = rule.stored->block == 0 && grid.scaled;
  return has_scale ? grid_arguments(grid) : ProgramArguments{};
}

bool store(Program& program, const std::string& rule, const std::string& value, const ProgramArguments& arguments) {
  auto applied = apply_format(rule, program, value, arguments);
  HOIST_CHECK(applied.ok(), applied.errors()[0].text());
  return *applied;
}

std::vector<std::string> operations(const Program& program) {
  std::vector<std::string> out;
  for (const NamedCall& call : named_calls(program)) out.push_back(call.operation);
  return out;
}

TEST(FormatRules, EveryRuleForFormatsIsMadeOfRows) {
  for (const NeuralRule& rule : neural_rules()) {
    const auto& rows = format_rules(rule.name);
    EXPECT_EQ(!rows.empty(), rule.stored || rule.product) << rule.name;
    for (const ProgramRule* each : rows) {
      EXPECT_EQ(row(*each).rule_class, RuleClass::neural);
      EXPECT_EQ(row(*each).meaning, rule.what);
    }
  }
}

TEST(FormatRules, ReadsBecomeNumbersOfTheFormat) {
  int tested = 0;
  for (const NeuralRule& rule : neural_rules()) {
    if (!rule.stored || rule.stored->block != 0) continue;
    for (uint64_t seed = 0; seed < 10; ++seed) {
      ModelBuilder b(1);
      b.input("x", {3, 40});
      b.layer("Neg", "y", {"x"});
      Program program = b.finish({"y"});
      ValueStatistics seen;
      seen.low = -0.5 * static_cast<double>(seed);
      seen.high = 2.5;
      seen.histogram.assign(histogram_bins, 1);
      seen.count = histogram_bins;
      const Grid grid = grid_of(*rule.stored, seen);
      ASSERT_TRUE(store(program, std::string(rule.name), "x", arguments_for(rule, grid))) << rule.name;
      // A quotient in f32 may be on the other side of a tie.
      const double one_step = is_integer(grid.scalar) ? 1.001 * grid.scale : 1e-6;
      const Tensor x = normal_tensor({3, 40}, 1.5, 0, seed);
      const Tensor y = all_values(program, {{"x", x}}).at("y");
      int other = 0;
      for (int64_t i = 0; i < x.size(); ++i) {
        other += y.float_at(i) != -static_cast<float>(rounded(grid, x.float_at(i))) ? 1 : 0;
        ASSERT_NEAR(y.float_at(i), -rounded(grid, x.float_at(i)), one_step) << rule.name << " " << x.float_at(i);
      }
      EXPECT_LE(other, 6) << rule.name;
    }
    ++tested;
  }
  EXPECT_GE(tested, 9);
}

TEST(FormatRules, OutputsOfTheModelStayAsTheyAre) {
  ModelBuilder b(1);
  b.input("x", {2, 3});
  b.layer("Relu", "r", {"x"});
  b.layer("Neg", "y", {"r"});
  Program program = b.finish({"y", "r"});
  ASSERT_TRUE(store(program, "bf16", "r", {}));
  EXPECT_THAT(operations(program), ElementsAre("Relu", "Cast", "Cast", "Neg"));
  EXPECT_THAT(program.outputs, ElementsAre("y", "r"));
  EXPECT_EQ(layer_name(program.definitions[1]), "r/quantise");
  EXPECT_EQ(layer_name(program.definitions[2]), "r/dequantise");
  EXPECT_FALSE(store(program, "bf16", "y", {})) << "nobody reads it";
  auto wrong = apply_format("u8", program, "x", {});
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.errors()[0].text(), HasSubstr("the argument scale is missing"));
}

// Layers that move or select elements, between two matmuls whose values may be stored.
Program moving_model() {
  ModelBuilder b(4);
  b.input("x", {2, 6, 8, 8});
  b.layer("Relu", "a", {"x"});
  b.layer("Sigmoid", "b", {"x"});
  b.layer("MaxPool", "pool", {"a"}, {{"kernel_shape", std::vector<int64_t>{2, 2}}});
  b.layer("MaxPool", "pool2", {"b"}, {{"kernel_shape", std::vector<int64_t>{2, 2}}});
  b.layer("Concat", "joined", {"pool", "pool2"}, {{"axis", int64_t{1}}});
  b.layer("Transpose", "turned", {"joined"}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
  b.layer("Flatten", "flat", {"turned"}, {{"axis", int64_t{1}}});
  b.layer("Exp", "y", {"flat"});
  b.layer("Neg", "z", {"pool"});
  return b.finish({"y", "z"});
}

TEST(FormatRules, MovingLayersBeforeDequantisingKeepsEveryBit) {
  const std::map<std::string, Grid> grids = {{"u8", {Scalar::u8, true, 0.03F, 17}},
                                             {"i8", {Scalar::i8, true, 0.02F, 0}},
                                             {"f16", {Scalar::f16, false, 1, 0}},
                                             {"bf16", {Scalar::bf16, false, 1, 0}}};
  for (const auto& [rule, grid] : grids) {
    Program program = moving_model();
    ProgramArguments arguments = grid.scaled ? grid_arguments(grid) : ProgramArguments{};
    for (auto& [name, argument] : arguments) argument.name = "shared/" + name;
    ASSERT_TRUE(store(program, rule, "b", arguments));
    for (auto& [name, argument] : arguments) argument.value.reset();
    ASSERT_TRUE(store(program, rule, "a", arguments));
    const Program before = program;
    int moved = 0;
    for (const char* value : {"pool", "pool2", "joined", "turned", "flat"})
      moved += move_before_dequantise(program, value) ? 1 : 0;
    EXPECT_EQ(moved, 5) << rule;
    EXPECT_FALSE(move_before_dequantise(program, "z"));
    EXPECT_FALSE(move_before_dequantise(program, "y"));
    const Bindings inputs = {{"x", normal_tensor({2, 6, 8, 8}, 2, 0, 9)}};
    const Bindings was = all_values(before, inputs), is = all_values(program, inputs);
    EXPECT_EQ(was.at("y"), is.at("y")) << rule;
    EXPECT_EQ(was.at("z"), is.at("z")) << rule;
    // Replayed from the steps.
    Program again = moving_model();
    for (const ProgramStep& step : program.steps) {
      auto repeated = repeat_neural_step(step, again);
      ASSERT_TRUE(repeated.ok() && *repeated) << step.rule << " at " << step.value;
    }
    EXPECT_EQ(print_program(again), print_program(program));
  }
}

TEST(FormatRules, NumbersOfTwoGridsDoNotMoveTogether) {
  Program program = moving_model();
  ASSERT_TRUE(store(program, "u8", "b", grid_arguments({Scalar::u8, true, 0.03F, 17})));
  ASSERT_TRUE(store(program, "u8", "a", grid_arguments({Scalar::u8, true, 0.04F, 17})));
  EXPECT_TRUE(move_before_dequantise(program, "pool"));
  EXPECT_TRUE(move_before_dequantise(program, "pool2"));
  EXPECT_FALSE(move_before_dequantise(program, "joined"));
  Program negative = moving_model();
  ASSERT_TRUE(store(negative, "u8", "a", grid_arguments({Scalar::u8, true, -0.03F, 17})));
  EXPECT_FALSE(move_before_dequantise(negative, "pool")) << "a negative scale turns the order of numbers around";
}

TEST(FormatRules, SplitsMoveWithAllTheirResults) {
  NamedModel model;
  model.opset = 23;
  model.inputs = {{"x", Scalar::f32, {6, 4}}};
  model.outputs = {{"y", Scalar::f32, {}}};
  model.layers = {{"negative", "Neg", "", {}, {"x"}, {"n"}},
                  {"split", "Split", "", {{"num_outputs", int64_t{3}}}, {"n"}, {"a", "", "c"}},
                  {"sum", "Add", "", {}, {"a", "c"}, {"y"}}};
  Program program = *program_of(model);
  ASSERT_TRUE(store(program, "u8", "n", grid_arguments({Scalar::u8, true, 0.03F, 100})));
  const Program before = program;
  ASSERT_TRUE(move_before_dequantise(program, "split.results"));
  EXPECT_THAT(operations(program),
              ElementsAre("Neg", "QuantizeLinear", "Split", "DequantizeLinear", "DequantizeLinear", "Add"));
  const Bindings inputs = {{"x", normal_tensor({6, 4}, 1, 0, 3)}};
  EXPECT_EQ(all_values(before, inputs).at("y"), all_values(program, inputs).at("y"));
}

TEST(FormatRules, StepsOfOthersAreNotTheirs) {
  Program program = moving_model();
  ProgramStep step = replayed_step("inline-definitions");
  step.value = "a";
  EXPECT_FALSE(*repeat_neural_step(step, program));
  for (const char* rule : {"channel-scaling", "constant-shape", "move-before-dequantise", "u8", "w8"}) {
    step.rule = rule;
    step.rule_class = RuleClass::neural;
    EXPECT_FALSE(repeat_neural_step(step, program).ok()) << rule;
  }
}

}  // namespace hoist::format_rules_test
