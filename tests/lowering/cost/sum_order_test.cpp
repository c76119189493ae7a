// The order of sums over collapsed dimensions in memory.
#include "lowering/cost/sum_order.h"

#include <gtest/gtest.h>

#include "ir/text/text.h"

namespace hoist::sum_order_test {

bool in_memory_order(const std::string& text) {
  const auto parsed = parse(text);
  EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : parsed.errors()[0].text());
  return parsed.ok() && sums_in_memory_order(*parsed);
}

// The images of a batch are outermost in NHWC order, and a sum over them and their positions follows the memory.
TEST(SumOrder, OfABatch) {
  const std::string sum =
      " |> map (\\a. %x : [4][6][6][8]f32 |> transpose (3 0 1 2) |> map (\\b. zip(a |> map join |> join, b |> map join "
      "|> join) |> map (*) |> reduce (+) 0))";
  EXPECT_TRUE(in_memory_order("%dy : [4][6][6][16]f32 |> transpose (3 0 1 2)" + sum));
  // The second array has the images innermost.
  EXPECT_FALSE(in_memory_order("%dy : [6][6][16][4]f32 |> transpose (2 3 0 1)" + sum));
}

// The channels of an image are innermost, and the sum over a window begins with them.
TEST(SumOrder, OfAWindow) {
  EXPECT_FALSE(in_memory_order(
      "%x : [6][6][8]f32 |> map (slide 3 1) |> slide 3 1 |> transpose (0 2 4 1 3) |> map (map (\\window. %w : "
      "[3][3][8]f32 |> transpose (2 0 1) |> (\\filter. zip(window |> map join |> join, filter |> map join |> join) |> "
      "map (*) |> reduce (+) 0)))"));
}

TEST(SumOrder, OfOneDimensionIsNone) {
  EXPECT_FALSE(in_memory_order("zip(%x : [6]f32, %y : [6]f32) |> map (*) |> reduce (+) 0"));
}

}  // namespace hoist::sum_order_test
