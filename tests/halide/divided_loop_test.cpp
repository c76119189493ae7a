// Tests the choice of the loop over groups that threads divide: each thread should reuse most of its operands, and the
// arrays that it wrote in earlier kernels.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/halide/runner.h"

namespace hoist::divided_loop_test {

using testing::parsed;
using testing::products_of_panels;

// Sums of adjacent elements in each row of an image, in two halves, one after the other.
Expr halves_of_rows(int64_t rows, int64_t summed) {
  return parsed(
      fmt::format("%x : [{0}][2][7][{1}][16]f32 |> transpose (1 0 2 3 4)\n"
                  "  |> map group(1) (map group(0) (map unroll (transpose >> map vec (fold (+) 0f32))))\n"
                  "  |> transpose (1 0 2 3)",
                  rows, summed));
}

TEST(DividedLoop, IsTheOneWhosePartsHaveLeastInCommon) {
  struct Case {
    const char* what;
    Expr term;
    std::vector<std::string> computed;
    uint64_t divided, outside;  // iterations of the divided loop with the loops inside it, and of the loops around it
  };
  for (const Case& c : {Case{"panels of large weights", products_of_panels(16, 2, 64), {"x"}, 32, 1},
                        Case{"tiles of a large image", products_of_panels(2, 64, 64), {"x"}, 64, 2},
                        Case{"neither is much larger", products_of_panels(8, 40, 64), {"x"}, 320, 1},
                        Case{"rows of the result", halves_of_rows(24, 1), {}, 24, 2},
                        Case{"a result that is small beside an input", halves_of_rows(24, 4), {}, 48, 1},
                        Case{"which other threads have computed", halves_of_rows(24, 4), {"x"}, 24, 2}}) {
    EmitOptions options;
    options.computed = c.computed;
    const auto opencl = emit(c.term, options);
    ASSERT_TRUE(opencl.ok()) << opencl.errors()[0].text();
    EXPECT_EQ(opencl->divided, c.outside == 1 ? 1U : 0U) << c.what;
    options.native = {"x86-64-v3"};
    const auto native = emit(c.term, options);
    ASSERT_TRUE(native.ok()) << native.errors()[0].text();
    EXPECT_EQ(native->global[0], c.divided) << c.what;
    EXPECT_EQ(native->global[1], c.outside) << c.what;
    EXPECT_EQ(testing::check(c.term, options), "") << c.what;
  }
}

}  // namespace hoist::divided_loop_test
