// Which loop over groups threads divide among themselves: the one that leaves each thread most of what it reads, and of
// what it wrote in other kernels.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/text/parse_term.h"
#include "tests/halide/runner.h"

namespace hoist {
namespace {

Expr parsed(const std::string& text) {
  const auto term = parse_term(text, {});
  HOIST_CHECK(term.ok(), term.errors()[0].text());
  return *term;
}

// Tiles of 7 rows times panels of 32 columns, the panels outermost: also in the result.
Expr products(int64_t panels, int64_t tiles) {
  return parsed(
      fmt::format("%w : [{0}][64][32]f32 |> map group(1) (\\panel. %x : [{1}][64]f32 |> split 7\n"
                  "  |> map group(0) (map unroll (\\row. transpose panel |> split 16\n"
                  "  |> map unroll (map vec (\\column. zip(row, column) |> fold (\\s (a, b). fma(a, b, s)) 0f32)))))",
                  panels, 7 * tiles));
}

// Sums of so many neighbours in each row of a picture, in two halves one after the other.
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
    uint64_t divided, outside;  // steps of the loop with those inside it, and of the loops around it
  };
  for (const Case& c : {Case{"panels of large weights", products(16, 2), {"x"}, 32, 1},
                        Case{"tiles of a large picture", products(2, 64), {"x"}, 64, 2},
                        Case{"neither is much larger", products(8, 40), {"x"}, 320, 1},
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

}  // namespace
}  // namespace hoist
