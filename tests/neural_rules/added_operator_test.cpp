// Tests an operator that one row of text adds: it has sites for neural rules and formats, its functions are
// approximated, and a budget selects among all of them, without further code. Fusion, tables and export:
// tests/lowering/operators/added_operator_test.cpp; the choice on a device: tests/tools/driver/added_operator_test.cpp.
#include <gmock/gmock.h>

#include <algorithm>

#include "ir/operators/definitions/operator_text.h"
#include "ir/text/program_text.h"
#include "neural_rules/choice/choose.h"
#include "neural_rules/functions/functions.h"
#include "neural_rules/rewrite/rewrite_model.h"
#include "tests/neural_rules/evaluated_model.h"

namespace hoist::added_operator_test {

using operators::ScopedOperators;
using testing::Contains;
using testing::IsEmpty;
using testing::Not;

constexpr char wave[] = "operator Wave since 1 (x : floats; depth = 0.5) = each x. depth * tanh(x) + x * x";

// The evaluator, with a wave whose tanh takes most of the time.
class SlowWaves : public RunnableModel {
 public:
  SlowWaves(std::unique_ptr<RunnableModel> model, bool approximated)
      : model_(std::move(model)), more_(approximated ? 0 : 1e-6) {}

  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) override { return model_->run(inputs); }
  Result<std::vector<StepTime>> step_times() override {
    HOIST_TRY(std::vector<StepTime> steps, model_->step_times());
    for (StepTime& step : steps) {
      if (std::find(step.layers.begin(), step.layers.end(), "wave") != step.layers.end()) step.seconds += more_;
    }
    return steps;
  }
  Result<std::vector<double>> run_times(int count) override {
    HOIST_TRY(std::vector<double> times, model_->run_times(count));
    for (double& time : times) time += more_;
    return times;
  }

 private:
  std::unique_ptr<RunnableModel> model_;
  double more_;
};

Result<std::unique_ptr<RunnableModel>> with_slow_waves(const RewrittenModel& model) {
  HOIST_TRY(std::unique_ptr<RunnableModel> runnable, evaluated_models()(model));
  return std::unique_ptr<RunnableModel>(
      std::make_unique<SlowWaves>(std::move(runnable), model.functions.count("wave") != 0));
}

TEST(AddedOperatorRules, AreChosenUnderABudget) {
  const ScopedOperators added(wave);
  auto program = parse_program(
      "program version 21\n"
      "input %x : [16][8]f32\n"
      "constant %v : [8][2]f32 = {1, -2, 3, 1, -0.5, 0.25, 0.5, 1, 1, -1, 2, -2, 0.5, 0.5, -0.25, 0.75}\n"
      "constant %w : [2][3]f32 = {1, -2, 3, 0.5, 0.25, -1}\n"
      "define %p : [16][2]f32 = MatMul(%x, %v) from \"first\"\n"
      "define %g : [16][2]f32 = Wave(%p) from \"wave\"\n"
      "define %y : [16][3]f32 = MatMul(%g, %w) from \"second\"\n"
      "output %y\n");
  ASSERT_TRUE(program.ok()) << program.errors()[0].text();
  ChooseOptions options;
  options.budget = *parse_budget("sqnr=25dB");
  auto found =
      choose(*program, normal_samples(*program, 6, 1), normal_samples(*program, 6, 100), with_slow_waves, options);
  ASSERT_TRUE(found.ok()) << found.errors()[0].text();
  EXPECT_TRUE(found->study.budget_met);
  ASSERT_EQ(found->chosen.count("function wave"), 1U);
  EXPECT_NE(certificate_of(found->chosen.at("function wave")), std::nullopt);
  for (const StudyPoint& point : found->study.points) {
    if (point.chosen) {
      EXPECT_GE(point.sqnr, 25);
    }
  }
  EXPECT_TRUE(rewrite(*program, found->chosen, found->statistics).ok());

  // Formats are measured for its result as for any other value; its consumer is stored in fewer bits.
  bool measured = false;
  for (const StudySite& site : found->study.sites) measured |= site.site.key() == "value g" && !site.candidates.empty();
  EXPECT_TRUE(measured);
  options.objective = Objective::size;
  auto small =
      choose(*program, normal_samples(*program, 6, 1), normal_samples(*program, 6, 100), with_slow_waves, options);
  ASSERT_TRUE(small.ok()) << small.errors()[0].text();
  EXPECT_TRUE(small->study.budget_met);
  EXPECT_EQ(small->chosen.count("product second"), 1U);
}

TEST(AddedOperatorRules, TakesPartInNeuralRules) {
  const ScopedOperators added(wave);
  auto program = parse_program(
      "program version 21\n"
      "input %x : [4][2]f32\n"
      "constant %v : [2][3]f32 = {1, 2, 3, 4, 5, 6}\n"
      "constant %w : [3][2]f32 = {1, 2, 3, 4, 5, 6}\n"
      "define %p : [4][3]f32 = MatMul(%x, %v) from \"first\"\n"
      "define %g : [4][3]f32 = Wave(%p) from \"wave\"\n"
      "define %y : [4][2]f32 = MatMul(%g, %w) from \"second\"\n"
      "output %y\n");
  ASSERT_TRUE(program.ok()) << program.errors()[0].text();

  std::vector<std::string> keys;
  for (const Site& site : find_sites(*program)) keys.push_back(site.key());
  EXPECT_THAT(keys, Contains("product first"));
  EXPECT_THAT(keys, Contains("product second"));
  EXPECT_THAT(keys, Contains("function wave"));
  // The wave is fused into the first matmul's kernel, so its result is the array between the matmuls.
  EXPECT_THAT(keys, Contains("value g"));
  EXPECT_THAT(keys, Not(Contains("value p")));

  auto definition = inline_call(*find_definition(*program, "g")->expression);
  ASSERT_TRUE(definition.ok());
  const std::set<std::string>& rules = function_rules_in(*definition);
  ASSERT_THAT(rules, Not(IsEmpty()));
  auto approximated = approximate(*definition, *rules.begin());
  ASSERT_TRUE(approximated.ok()) << approximated.errors()[0].text();
  EXPECT_NE(approximated->term, *definition);

  Statistics statistics;
  statistics["g"].low = -8;
  statistics["g"].high = 8;
  auto rewritten =
      rewrite(*program, {{"value g", "f16"}, {"product second", "w8"}, {"function wave", *rules.begin()}}, statistics);
  ASSERT_TRUE(rewritten.ok()) << rewritten.errors()[0].text();
  EXPECT_EQ(rewritten->uses.size(), 3U);
  EXPECT_EQ(rewritten->functions.at("wave"), *rules.begin());
}

}  // namespace hoist::added_operator_test
