// Translation validation: both sides of every step in derivations of random models give the same values, and a wrong
// step is found.
#include "lowering/pipeline/validation.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "ir/base/seeded.h"
#include "lowering/pipeline/lower.h"
#include "tests/lowering/products/quantised_parts.h"
#include "tests/lowering/random_graphs.h"
#include "tests/support/lower_model.h"

namespace hoist::validation_test {

using testing::HasSubstr;

constexpr uint64_t validated_models = 40;

void expect_valid(const NamedModel& graph, const LowerOptions& options, const Profile& profile, size_t& compared) {
  auto model = lower_model(graph, options, profile);
  ASSERT_TRUE(model.ok()) << model.errors()[0].text();
  ReplayOptions replaying;
  replaying.profile = profile;
  auto found = validate(model->derivation, replaying);
  ASSERT_TRUE(found.ok()) << found.errors()[0].text();
  for (const StepDifference& d : found->differences)
    ADD_FAILURE() << "step " << d.step << " " << d.rule << " at " << d.value << ", " << d.inputs << ": " << d.what;
  compared += found->compared;
}

TEST(Validation, RandomModelsKeepTheirNumbersAtEveryStep) {
  size_t compared = 0;
  for (uint64_t seed = 0; seed < validated_models; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto [options, profile] = varied_compilation(seed);
    expect_valid(seed % 4 == 3 ? random_quantised(random) : random_graph(random).graph, options, profile, compared);
  }
  EXPECT_GT(compared, 10 * validated_models);
}

// A step with a rule that is correct for finite values only.
TEST(Validation, FindsTheStepThatChangesANumber) {
  NamedModel graph;
  graph.opset = 21;
  graph.inputs = {{"x", Scalar::f32, {2, 5}}};
  graph.outputs = {{"y", Scalar::f32, {}}};
  graph.layers = {{"relu", "Relu", "", {}, {"x"}, {"r"}}, {"scale", "Add", "", {}, {"r", "r"}, {"y"}}};
  auto model = lower_model(graph, {}, {});
  ASSERT_TRUE(model.ok());
  for (const bool only_on_infinities : {false, true}) {
    ProgramDerivation derivation = model->derivation;
    const auto store = std::find_if(derivation.steps.begin(), derivation.steps.end(),
                                    [](const ProgramStep& step) { return step.rule == "choose-storage"; });
    ASSERT_NE(store, derivation.steps.end());
    ProgramStep wrong;
    wrong.rule = "wrong";
    wrong.replays = true;
    wrong.value = "y";
    const auto at = static_cast<size_t>(store - derivation.steps.begin());
    derivation.steps.insert(store, wrong);
    ReplayOptions replaying;
    replaying.other = [&](const ProgramStep& step, Program& program) -> Result<bool> {
      if (step.rule != "wrong") return false;
      Definition& definition = *find_definition(program, step.value);
      definition.expression = map_at(
          2,
          [&](Expr x) {
            Expr zero = only_on_infinities ? call(Function::subtract, {x, x}) : literal(Scalar::f32, 0.5);
            return call(Function::add, {x, zero});
          },
          definition.expression);
      return true;
    };
    auto found = validate(derivation, replaying, {.only_first = true});
    ASSERT_TRUE(found.ok()) << found.errors()[0].text();
    ASSERT_EQ(found->differences.size(), 1U);
    const StepDifference& difference = found->differences[0];
    EXPECT_EQ(difference.step, at);
    EXPECT_EQ(difference.rule, "wrong");
    EXPECT_EQ(difference.value, "y");
    EXPECT_EQ(difference.layer, "relu");
    EXPECT_THAT(difference.what, HasSubstr("before the step"));
    EXPECT_EQ(difference.inputs == "random numbers", !only_on_infinities);
  }
}

// A rounding step that changes results by the rounding error of an element on which they do not depend.
TEST(Validation, FindsNumbersThatReachOtherResults) {
  NamedModel graph;
  graph.opset = 21;
  graph.inputs = {{"x", Scalar::f32, {4, 9}}};
  graph.outputs = {{"y", Scalar::f32, {}}};
  graph.constants["axes"] = Tensor::of(Scalar::i64, {1}, std::vector<int64_t>{1});
  graph.layers = {{"sum", "ReduceSum", "", {}, {"x", "axes"}, {"y"}}};
  auto model = lower_model(graph, {}, {});
  ASSERT_TRUE(model.ok());
  ProgramDerivation derivation = model->derivation;
  const auto store = std::find_if(derivation.steps.begin(), derivation.steps.end(),
                                  [](const ProgramStep& step) { return step.rule == "choose-storage"; });
  ASSERT_NE(store, derivation.steps.end());
  ProgramStep wrong;
  wrong.rule = "wrong";
  wrong.rule_class = RuleClass::rounding;
  wrong.replays = true;
  wrong.value = "y";
  derivation.steps.erase(store, derivation.steps.end());
  derivation.steps.push_back(wrong);
  ReplayOptions replaying;
  replaying.other = [&](const ProgramStep& step, Program& program) -> Result<bool> {
    if (step.rule != "wrong") return false;
    Definition& definition = *find_definition(program, step.value);
    const Expr all = reduce(Function::add, literal(Scalar::f32, 0), join(parameter("x", program.inputs[0].second)));
    definition.expression = map_at(
        2,
        [&](Expr v) {
          return call(Function::subtract, {call(Function::add, {v, all}), all});
        },
        definition.expression);
    return true;
  };
  auto found = validate(derivation, replaying, {.only_first = true});
  ASSERT_TRUE(found.ok()) << found.errors()[0].text();
  ASSERT_EQ(found->differences.size(), 1U);
  EXPECT_EQ(found->differences[0].inputs, "a NaN among random numbers");
}

// All forms of convolutions, whose transforms mix elements of several windows.
TEST(Validation, ConvolutionsKeepExtremeNumbersInTheirWindows) {
  for (const int64_t window : {3, 5}) {
    NamedModel graph;
    graph.opset = 21;
    graph.inputs = {{"x", Scalar::f32, {2, 3, 11, 9}}};
    graph.outputs = {{"y", Scalar::f32, {}}};
    graph.constants["w"] = seeded_tensor(Scalar::f32, {4, 3, window, window}, 1, 0, -1, 1);
    graph.layers = {{"conv", "Conv", "", {{"auto_pad", std::string("SAME_UPPER")}}, {"x", "w"}, {"y"}}};
    for (const ConvolutionForm form : {ConvolutionForm::im2col, ConvolutionForm::winograd}) {
      LowerOptions options;
      options.convolution = form;
      size_t compared = 0;
      expect_valid(graph, options, {}, compared);
      EXPECT_GT(compared, 0);
    }
  }
}

}  // namespace hoist::validation_test
