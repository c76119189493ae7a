// The worked example of a kernel strategy (tools/pages/contributing.md): one file with a row.
#include "lowering/strategies/strategy.h"

#include <gmock/gmock.h>

#include "ir/text/program_text.h"
#include "ir/text/text.h"
#include "lowering/pipeline/lower.h"
#include "lowering/strategies/loops.h"
#include "tests/lowering/stored_run.h"

namespace hoist {
namespace {

using testing::HasSubstr;

void map_rows_in_vectors(Rewriter& r, const StrategyInput& input, const Profile& profile) {
  const Path row = loops::open_leading(r, input.inside, 1, 0);  // a work-group per row
  loops::open_columns(r, row, profile.vector_width);            // its elements in vectors
}

Strategy rows_in_vectors() {
  return {"rows-in-vectors", "CPU: a work-group for each row of independent elements",
          [](Expr, const StrategyInput& input, const Profile& profile) { return !profile.gpu && !input.folds; },
          map_rows_in_vectors};
}

Program squares() {
  auto program = parse_program(
      "program version 21\n"
      "input %x : [2][3][16]f32\n"
      "define %y : [2][3][16]f32 = Mul(%x, %x) from \"square\"\n"
      "output %y\n");
  HOIST_CHECK(program.ok(), program.errors()[0].text());
  return std::move(*program);
}

Tensor result_of(const LoweredModel& model) {
  Tensor x(Scalar::f32, {2, 3, 16});
  for (int64_t i = 0; i < x.size(); ++i) x.set_float(i, static_cast<double>(i) / 8);
  return outputs_of(model, {{"x", x}}).at("y");
}

TEST(StrategyExample, OneRowAddsAStrategy) {
  std::vector<Strategy> candidates = {rows_in_vectors()};
  candidates.insert(candidates.end(), strategies().begin(), strategies().end());
  LowerOptions options;
  options.strategies = &candidates;
  auto model = lower_model(squares(), options, {});
  auto before = lower_model(squares(), {}, {});
  ASSERT_TRUE(model.ok() && before.ok());
  EXPECT_THAT(print(model->groups[0].low), HasSubstr("map group(0)"));
  EXPECT_NE(model->groups[0].low, before->groups[0].low);
  EXPECT_TRUE(same_bits(result_of(*model), result_of(*before)));
}

TEST(StrategyExample, AUsersStepsCanNameIt) {
  std::vector<Strategy> candidates = strategies();
  candidates.push_back(rows_in_vectors());
  LowerOptions options;
  options.strategies = &candidates;
  auto steps = parse_schedule_script("strategy rows-in-vectors\n", "square", "my.steps");
  ASSERT_TRUE(steps.ok());
  options.steps = {*steps};
  auto model = lower_model(squares(), options, {});
  ASSERT_TRUE(model.ok()) << model.errors()[0].text();
  EXPECT_THAT(print(model->groups[0].low), HasSubstr("map group(0)"));
}

}  // namespace
}  // namespace hoist
