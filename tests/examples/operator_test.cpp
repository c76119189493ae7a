// The worked example of an operator (tools/pages/contributing.md): one row of a file.
#include <gtest/gtest.h>

#include "ir/evaluate/evaluate.h"
#include "ir/operators/definitions/operator_text.h"
#include "ir/text/text.h"

namespace hoist {
namespace {

using operators::ScopedOperators;

constexpr char ramp[] = R"(
operator Ramp since 1 (x : floats; slope = 0.5, top from 1)
  refuse top > 9: "top is {top}, at most 9 for {x}"
  = each x. select(x < 0, slope * x, min(x, top))
)";

std::string refusal(const std::string& call) {
  auto made = parse(call);
  return made.ok() ? "" : made.errors()[0].what;
}

TEST(OperatorExample, OneRowAddsAnOperator) {
  EXPECT_EQ(refusal("Ramp(%x : [2]f32)"), "unknown name Ramp");
  const ScopedOperators added(ramp);
  auto call = parse("Ramp(%x : [2][3]f32; top = 2)");
  ASSERT_TRUE(call.ok()) << call.errors()[0].text();
  EXPECT_EQ(print(*call), "Ramp(%x : [2][3]f32; top = 2)");
  auto definition = inline_call(**call);
  ASSERT_TRUE(definition.ok());
  EXPECT_EQ(*definition, *parse("%x : [2][3]f32 |> map2d (\\a. select(a < 0, 0.5 * a, min(a, 2)))"));
  auto value =
      interpret(*definition, {{"x", Tensor::of(Scalar::f32, {2, 3}, std::vector<double>{-4, -1, 0, 1, 2, 3})}});
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(value->float_at(0), -2);
  EXPECT_EQ(value->float_at(5), 2);
  EXPECT_EQ(refusal("Ramp(%x : [2]f32)"), "top is 0, expected at least 1");
  EXPECT_EQ(refusal("Ramp(%x : [2]f32; top = 12)"), "top is 12, at most 9 for [2]");
  EXPECT_EQ(refusal("Ramp(%x : [2]i32; top = 2)"), "Ramp takes floats, found i32");
  EXPECT_EQ(refusal("Ramp(%x : [2]f32; top = 2, slope = \"a\")"), "attribute slope has to be a float");
}

}  // namespace
}  // namespace hoist
