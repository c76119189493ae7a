// Tests the cost estimate of the interpreter for kernels.
#include "ir/evaluate/interpreter/interpret_cost.h"

#include <gtest/gtest.h>

#include "ir/text/text.h"

namespace hoist::interpret_cost_test {

Expr term(const std::string& text) {
  auto parsed = parse(text);
  EXPECT_TRUE(parsed.ok()) << text;
  return parsed ? *parsed : nullptr;
}

TEST(InterpretCost, AFoldTakesAStepForEachElement) {
  const int64_t one = interpretation_steps(term("%x : [2][3]f32 |> map (reduce add 0)"));
  EXPECT_GT(interpretation_steps(term("%x : [2][300]f32 |> map (reduce add 0)")), 50 * one);
}

TEST(InterpretCost, AFoldOfNothingTakesAStepToo) {
  for (const char* text : {"%x : [0]f32 |> reduce add 0", "%x : [2][0]f32 |> map (reduce add 0)", "%x : [0][3]f32"}) {
    EXPECT_GE(interpretation_steps(term(text)), 1) << text;
    EXPECT_EQ(affordable_elements(term(text), 7), 7) << text;
  }
}

TEST(InterpretCost, OfHugeFoldsNothingIsAffordable) {
  EXPECT_EQ(affordable_elements(term("%x : [2][1000000000]f32 |> map (reduce add 0)"), 7), 0);
}

}  // namespace hoist::interpret_cost_test
