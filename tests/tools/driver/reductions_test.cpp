// Compares reductions over rows on a device with the interpreter: lengths around whole vectors, and all layouts of a
// row and uses of its sum; with vectors of partial results if the order may change, and scalars if not.
#include <gtest/gtest.h>

#include "backends/bundle/bundle.h"
#include "ir/base/temporary_folder.h"
#include "ir/text/program_text.h"
#include "ir/text/text.h"
#include "tests/support/lower_model.h"
#include "tools/driver/compile.h"
#include "tools/driver/self_check.h"

namespace hoist::reductions_test {

constexpr char reductions[] = R"(program %reductions version 21
input %x : [2][3][5][41]f32
input %short : [3][31]f32
input %long : [4][100]f32
input %whole : [7][64]f32
input %scale : [3]f32
input %shift : [3]f32
input %gain : [100]f32
input %filters : [3][1][3][3]f32
define %scalar : [3][31]f32 = Softmax(%short) from "scalar"
define %tail : [4][100]f32 = Softmax(%long) from "tail"
define %kept : [7][64]f32 = Softmax(%whole) from "kept"
define %vectors : [7][64]f32 = LogSoftmax(%whole) from "vectors"
define %normal : [4][100]f32 = LayerNormalization(%long, %gain) from "normal"
define %mean : [2][3][5][1]f32 = ReduceMean(%x; axes = [-1]) from "mean"
define %largest : [4][1]f32 = ReduceMax(%long; axes = [1]) from "largest"
define %length : [7]f32 = ReduceL2(%whole; axes = [1], keepdims = 0) from "length"
define %all : [1][1][1][1]f32 = ReduceSum(%x) from "all"
define %columns : [1][100]f32 = ReduceMean(%long; axes = [0]) from "columns"
define %planes : [2][3][5][41]f32 = InstanceNormalization(%x, %scale, %shift) from "planes"
define %pool : [2][3][1][1]f32 = GlobalAveragePool(%x) from "pool"
define %windows : [2][3][5][41]f32 = AveragePool(%x; kernel_shape = [3, 3], pads = [1, 1, 1, 1]) from "windows"
define %largest_windows : [2][3][2][20]f32 = MaxPool(%x; kernel_shape = [3, 3], strides = [2, 2]) from "largest_windows"
define %inner : [4][100]f32 = Softmax(%long; axis = 0) from "inner"
define %turned : [100][4]f32 = Transpose(%inner) from "turned"
define %depthwise : [2][3][5][41]f32 = Conv(%x, %filters; group = 3, pads = [1, 1, 1, 1]) from "depthwise"
output %scalar
output %tail
output %kept
output %vectors
output %normal
output %mean
output %largest
output %length
output %all
output %columns
output %planes
output %pool
output %windows
output %largest_windows
output %turned
output %depthwise
)";

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

size_t exponentials(const std::vector<LoweredGroup>& groups, const std::string& layer) {
  size_t n = 0;
  for (const LoweredGroup& group : groups) {
    if (group.layers.front() == layer) n += count(print(group.low), "exp");
  }
  return n;
}

// The number of vectors of partial results in a kernel's term.
size_t partial_results(const std::vector<LoweredGroup>& groups, const std::string& layer) {
  size_t n = 0;
  for (const LoweredGroup& group : groups) {
    if (group.layers.front() == layer) n += count(print(group.low), "materialise private");
  }
  return n;
}

TEST(Reductions, HaveTheInterpretersNumbersOnADevice) {
  auto device = find_device("");
  ASSERT_TRUE(device.ok()) << device.errors()[0].text();
  auto folder = TemporaryFolder::make();
  ASSERT_TRUE(folder.ok());
  for (const int64_t width : {4, 16}) {
    for (const bool strict : {false, true}) {
      if (strict && width == 4) continue;  // scalars, so the result equals that of the other width
      SCOPED_TRACE(testing::Message() << width << (strict ? " strict" : ""));
      auto program = parse_program(reductions);
      ASSERT_TRUE(program.ok()) << program.errors()[0].text();
      CompileOptions options;
      options.lower.strict = strict;
      Profile profile;
      profile.vector_width = width;
      auto lowered = lower_model(std::move(*program), options.lower, profile);
      ASSERT_TRUE(lowered.ok()) << lowered.errors()[0].text();
      const std::vector<LoweredGroup> groups = lowered->groups;
      if (width == 16) {
        EXPECT_EQ(partial_results(groups, "tail") > 0, !strict);
        EXPECT_EQ(exponentials(groups, "kept"), strict ? 2u : 1u) << "those of the sum are kept for the elements";
        EXPECT_EQ(exponentials(groups, "scalar"), strict ? 2u : 1u) << "31 elements fill two vectors with a zero";
        EXPECT_EQ(partial_results(groups, "mean") > 0, !strict) << "rows as they lie in memory";
        EXPECT_EQ(partial_results(groups, "columns"), 0u) << "vectors of columns";
      }
      auto plan = make_plan(std::move(*lowered), options, profile);
      ASSERT_TRUE(plan.ok()) << plan.errors()[0].text();
      const auto bundle = folder->path() / "reductions.hoist";
      auto written = write_bundle(*plan, bundle, {.force = true});
      ASSERT_TRUE(written.ok()) << written.errors()[0].text();
      auto check = self_check(bundle, *plan, groups);
      ASSERT_TRUE(check.ok()) << check.errors()[0].text();
      EXPECT_FALSE(check->mismatch) << check->mismatch->comparison.message << "\n" << check->mismatch->origin;
    }
  }
}

}  // namespace hoist::reductions_test
