// Tests which kernels form a fused launch.
#include "lowering/plan/fused_launches.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/text/program_text.h"
#include "lowering/pipeline/lower.h"

namespace hoist::fused_launches_test {

LoweredModel lowered(const std::string& text, const Profile& profile = {}, const LowerOptions& options = {}) {
  auto program = parse_program(text);
  HOIST_CHECK(program.ok(), program.errors()[0].text());
  auto model = lower_model(std::move(*program), options, profile);
  HOIST_CHECK(model.ok(), model.errors()[0].text());
  return std::move(*model);
}

std::vector<std::pair<int, int>> launches_of(const LoweredModel& model) {
  std::vector<std::pair<int, int>> out;
  for (const PlanLaunch& launch : model.launches) out.emplace_back(launch.first, launch.count);
  return out;
}

using Launches = std::vector<std::pair<int, int>>;

// A chain of vector-matrix products; `sizes` are the lengths of the vectors.
std::string products(const std::vector<int>& sizes) {
  std::string inputs = fmt::format("input %v0 : [1][{}]f32\n", sizes[0]), definitions;
  for (size_t i = 1; i < sizes.size(); ++i) {
    inputs += fmt::format("input %w{} : [{}][{}]f32\n", i, sizes[i - 1], sizes[i]);
    definitions +=
        fmt::format("define %v{} : [1][{}]f32 = MatMul(%v{}, %w{}) from \"p{}\"\n", i, sizes[i], i - 1, i, i);
  }
  return "program %chain version 21\n" + inputs + definitions + fmt::format("output %v{}\n", sizes.size() - 1);
}

TEST(FusedLaunches, SmallKernelsAreOneLaunch) {
  const LoweredModel model = lowered(products({64, 64, 64, 64, 64}));
  EXPECT_EQ(launches_of(model), (Launches{{0, 4}}));
  EXPECT_EQ(model.steps.size(), 4u);
  EXPECT_EQ(model.launches[0].name, "launch");
  for (const LoweredKernel& kernel : model.kernels) EXPECT_TRUE(kernel.is_fused);
}

TEST(FusedLaunches, WhereLaunchesCostLittleOrOneWorkItemIsSlowThereIsNone) {
  const std::string text = products({64, 64, 64, 64, 64});
  Profile gpu, native, cpu;
  gpu.gpu = true;
  native.launch = 100;
  EXPECT_EQ(launches_of(lowered(text, gpu)), Launches{});
  EXPECT_EQ(launches_of(lowered(text, native)), Launches{});
  LowerOptions options;
  for (const LaunchFusion fusion : {LaunchFusion::none, LaunchFusion::launch}) {
    options.fusion = fusion;
    EXPECT_EQ(launches_of(lowered(text, cpu, options)), Launches{});
  }
}

// kernels.cl has functions of hoist's own besides kernels, such as the functions of work-groups.
TEST(FusedLaunches, NoKernelIsCalledAsAFunctionOfHoist) {
  std::string text = products({64, 64, 64});
  text.replace(text.find("\"p1\""), 4, "\"hoist_group_p2\"");
  const LoweredModel model = lowered(text);
  EXPECT_EQ(model.kernels[0].name, "layer_hoist_group_p2");
  EXPECT_EQ(model.kernels[0].layers, std::vector<std::string>{"hoist_group_p2"});
}

// Other threads are woken if one core would need longer than that.
TEST(FusedLaunches, OneCoreComputesWhatIsDoneBeforeOthersAreWoken) {
  Profile profile;
  profile.compute_units = 2;
  EXPECT_TRUE(lowered(products({64, 64, 64}), profile).is_serial);
  const std::string large = products({64, 1500, 1500, 64});
  EXPECT_FALSE(lowered(large, profile).is_serial);
  EXPECT_EQ(launches_of(lowered(large, profile)), (Launches{{0, 3}}));
  profile.compute_units = 1;
  EXPECT_TRUE(lowered(large, profile).is_serial);
  profile.gpu = true;
  EXPECT_FALSE(lowered(large, profile).is_serial);
}

TEST(FusedLaunches, LongRowsOfKernelsAreSeveralLaunches) {
  const LoweredModel model = lowered(products(std::vector<int>(101, 8)));
  int joined = 0;
  for (const PlanLaunch& launch : model.launches) {
    EXPECT_LE(launch.count, 32);
    joined += launch.count;
  }
  EXPECT_EQ(joined, 100);
  EXPECT_EQ(launches_of(model), (Launches{{0, 25}, {25, 25}, {50, 25}, {75, 25}}));
}

// A host op between kernels.
TEST(FusedLaunches, StepsOnTheHostStayApart) {
  const LoweredModel model = lowered(R"(program %boxes version 22
input %b : [1][6][4]f32
input %s : [1][1][6]f32
constant %o : f32 = {0.9}
define %c : [1][6][4]f32 = Softmax(%b; axis = 2) from "c"
define %d : [1][6][4]f32 = Softmax(%c; axis = 2) from "d"
define %l : ([6][3]i64, i64) = NonMaxSuppression(%d, %s, _, %o; max_output_boxes_per_class = [6],
  results = 2) from "suppression"
define %y : [6][3]i64 = %l.0
define %n : i64 = %l.1
output %y
output %n
extent 0 of %y is %n
)");
  int on_host = 0;
  for (size_t i = 0; i < model.steps.size(); ++i) {
    if (model.kernels[static_cast<size_t>(model.steps[i].kernel)].host.empty()) continue;
    ++on_host;
    for (const PlanLaunch& launch : model.launches)
      EXPECT_TRUE(static_cast<int>(i) < launch.first || static_cast<int>(i) >= launch.first + launch.count) << i;
  }
  EXPECT_GT(on_host, 0);
  EXPECT_GT(model.launches.size(), 0u);
}

}  // namespace hoist::fused_launches_test
