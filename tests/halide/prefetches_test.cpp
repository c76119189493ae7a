// Tests which arrays are prefetched: cold arrays that are read in order for long enough, short rows next to them, and
// no others.
#include <gmock/gmock.h>

#include "tests/halide/runner.h"

namespace hoist::prefetches_test {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::parsed;
using testing::products_of_panels;

EmitOptions native(const std::string& target, std::vector<std::string> cold) {
  EmitOptions out;
  out.native = {target};
  out.cold = std::move(cold);
  return out;
}

// Counts prefetcht1.
int count_prefetches(const std::string& object) {
  int found = 0;
  for (size_t i = 0; i + 2 < object.size(); ++i) {
    const auto byte = [&](size_t k) { return static_cast<unsigned char>(object[i + k]); };
    found += byte(0) == 0x0f && byte(1) == 0x18 && (byte(2) >> 3 & 7) == 2 ? 1 : 0;
  }
  return found;
}

EmittedKernel emitted(Expr term, const EmitOptions& options) {
  auto kernel = emit(term, options);
  HOIST_CHECK(kernel.ok(), kernel.errors()[0].text());
  return std::move(*kernel);
}

TEST(Prefetches, OfColdArraysThatAreReadInOrder) {
  struct Case {
    const char* what;
    int64_t panels, tiles, terms;
    std::vector<std::string> cold;
    int prefetches;  // in the loop over terms, each of which reads two cache lines
  };
  for (const Case& c :
       {Case{"two tiles ask for a half of the next panel each", 4, 2, 512, {"w"}, 1},
        Case{"many tiles need less than a line per step", 4, 20, 1024, {"w"}, 1},
        Case{"a panel that is read once", 4, 1, 512, {"w"}, 2},
        Case{"one that is too large to have two of them", 2, 2, 4096, {"w"}, 2},
        Case{"one panel alone", 1, 2, 512, {"w"}, 2}, Case{"an array that is over soon", 4, 2, 48, {"w"}, 0},
        Case{"what is read number by number", 4, 2, 512, {"x"}, 0}, Case{"what is in the caches", 4, 2, 512, {}, 0}}) {
    const Expr term = products_of_panels(c.panels, c.tiles, c.terms);
    const EmittedKernel kernel = emitted(term, native("x86-64-v4", c.cold));
    EXPECT_EQ(count_prefetches(kernel.objects[0]), c.prefetches) << c.what;
    if (c.prefetches > 0)
      EXPECT_THAT(kernel.schedule, HasSubstr("w is prefetched\n")) << c.what;
    else
      EXPECT_THAT(kernel.schedule, Not(HasSubstr("prefetched"))) << c.what;
    EmitOptions opencl;
    opencl.cold = c.cold;
    const std::string source = emitted(term, opencl).source;
    EXPECT_EQ(source.find("hoist_prefetch(w, ") != std::string::npos, c.prefetches > 0) << c.what << source;
    EXPECT_EQ(testing::check(term, opencl), "") << c.what;  // and native code
  }
}

// The left operand: each step reads one element of each of seven rows.
TEST(Prefetches, OfShortRows) {
  struct Case {
    const char* what;
    int64_t tiles, terms;
    bool has_cold, asks;
  };
  for (const Case& c : {Case{"the rows of the next tile", 20, 512, true, true},
                        Case{"rows of a page, which the processor fetches by itself", 20, 1024, true, false},
                        Case{"tiles of less than half a page", 40, 64, true, false},
                        Case{"an array that is over soon", 2, 512, true, false},
                        Case{"in a run that the caches hold", 20, 512, false, false}}) {
    const Expr term = products_of_panels(4, c.tiles, c.terms);
    EmitOptions options = native("x86-64-v4", {});
    if (c.has_cold) options.cold = {"w"};
    const EmittedKernel kernel = emitted(term, options);
    if (c.asks)
      EXPECT_THAT(kernel.schedule, HasSubstr("x is prefetched\n")) << c.what;
    else
      EXPECT_THAT(kernel.schedule, Not(HasSubstr("x is prefetched"))) << c.what;
    EmitOptions opencl;
    opencl.cold = options.cold;
    EXPECT_EQ(emitted(term, opencl).source.find("hoist_prefetch(x, ") != std::string::npos, c.asks) << c.what;
    if (!c.asks) continue;
    EXPECT_EQ(testing::check(term, opencl), "");  // and native code
  }
}

TEST(Prefetches, NotOfRowsWithOthersBetween) {
  const Expr term = parsed(
      "%w : [4][512][32]f32 |> map group(1) (\\panel. %x : [140][512]f32 |> slide 1 2 |> map join\n"
      "  |> split 7 |> map group(0) (map unroll (\\row. transpose panel |> split 16\n"
      "  |> map unroll (map vec (\\column. zip(row, column) |> fold (\\s (a, b). fma(a, b, s)) 0f32)))))");
  EXPECT_THAT(emitted(term, native("x86-64-v4", {"w"})).schedule, Not(HasSubstr("x is prefetched")));
}

// A window along time: each of its taps reads the rows of another image.
TEST(Prefetches, OfRowsInEveryPlane) {
  const auto windows = [](int rows) {
    return parsed("%w : [4][3][128][32]f32 |> map group(1) (\\panel. %x : [3][" + std::to_string(rows) +
                  "][128]f32\n"
                  "  |> transpose (1 0 2) |> split 7 |> map group(0) (map unroll (\\row. transpose (2 0 1) panel\n"
                  "  |> split 16 |> map unroll (map vec (\\column. zip(row, column) |> fold (\\s (a, b).\n"
                  "  zip(a, b) |> fold (\\t (c, d). fma(c, d, t)) s) 0f32)))))");
  };
  EXPECT_THAT(emitted(windows(140), native("x86-64-v4", {"w"})).schedule, HasSubstr("x is prefetched\n"));
  EXPECT_THAT(emitted(windows(14), native("x86-64-v4", {"w"})).schedule, Not(HasSubstr("x is prefetched")));
  EmitOptions opencl;
  opencl.cold = {"w"};
  EXPECT_EQ(testing::check(windows(140), opencl), "");  // and native code
}

TEST(Prefetches, EachTargetHasItsInstruction) {
  const Expr term = products_of_panels(4, 2, 512);
  for (const char* target : {"x86-64-v3", "x86-64-v4", "aarch64"}) {
    const EmittedKernel kernel = emitted(term, native(target, {"w"}));
    EXPECT_THAT(kernel.schedule, HasSubstr("w is prefetched\n")) << target;
    EXPECT_NE(kernel.objects[0], emitted(term, native(target, {})).objects[0]) << target;
  }
}

TEST(Prefetches, OfBytesForDots) {
  const Expr term = parsed(
      "%w : [8][256][32][4]i8 |> map group(1) (\\panel. %x : [14][256][4]u8 |> split 7\n"
      "  |> map group(0) (map unroll (\\row. transpose (1 0 2) panel |> split 16\n"
      "  |> map unroll (map vec (\\column. zip(row, column)\n"
      "  |> fold (\\s (a, b). zip(a, b) |> fold vec (\\t (c, d). t + cast i32 c * cast i32 d) s) 0i32)))))");
  const EmittedKernel kernel = emitted(term, native("x86-64-v4", {"w"}));
  EXPECT_THAT(kernel.schedule, HasSubstr("w is prefetched\n"));
  EmitOptions opencl;
  opencl.cold = {"w"};
  EXPECT_EQ(testing::check(term, opencl, 0, -128, 255), "");  // and native code
}

}  // namespace hoist::prefetches_test
