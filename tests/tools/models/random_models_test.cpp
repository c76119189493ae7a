// Runs random models as bundles on a device: every kernel, in every mapping and form, is compared with the interpreter,
// on inputs computed by earlier steps. HOIST_RANDOM_GRAPHS sets the number of models, HOIST_RANDOM_SEED the first.
// tests/lowering/pipeline/passes_test.cpp runs the same models through the passes alone; tools/compare/fuzz.py makes
// models of all operators.
#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/bundle/bundle.h"
#include "ir/base/temporary_folder.h"
#include "tests/lowering/random_graphs.h"
#include "tests/support/lower_model.h"
#include "tools/driver/compile.h"
#include "tools/driver/self_check.h"

namespace hoist::random_models_test {

uint64_t number_in(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

TEST(RandomModels, HaveTheInterpretersNumbersOnADevice) {
  const uint64_t models = number_in("HOIST_RANDOM_GRAPHS", 15), first = number_in("HOIST_RANDOM_SEED", 0);
  auto device = find_device("");
  ASSERT_TRUE(device.ok()) << device.errors()[0].text();
  auto folder = TemporaryFolder::make();
  ASSERT_TRUE(folder.ok());
  uint64_t compared = 0;
  for (uint64_t seed = first; seed < first + models; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    auto program = program_of(random_graph(random).graph);
    ASSERT_TRUE(program.ok()) << program.errors()[0].text();
    Compilation how = varied_compilation(seed);
    // A real GPU has limits of its own, and CPU mappings matter less on it.
    if (profile_of(*device).gpu && seed % 4 != 0) how.profile = profile_of(*device);
    auto lowered = lower_model(std::move(*program), how.options, how.profile);
    ASSERT_TRUE(lowered.ok()) << lowered.errors()[0].text();
    const std::vector<LoweredGroup> groups = lowered->groups;
    CompileOptions options;
    options.lower = how.options;
    auto plan = make_plan(std::move(*lowered), options, how.profile);
    ASSERT_TRUE(plan.ok()) << plan.errors()[0].text();
    const auto bundle = folder->path() / "random.hoist";
    auto written = write_bundle(*plan, bundle, {.force = true});
    ASSERT_TRUE(written.ok()) << written.errors()[0].text();
    auto check = self_check(bundle, *plan, groups);
    ASSERT_TRUE(check.ok()) << check.errors()[0].text();
    EXPECT_FALSE(check->mismatch) << check->mismatch->comparison.message << "\n" << check->mismatch->origin;
    compared += check->compared;
  }
  EXPECT_GT(compared, 100 * models);
}

}  // namespace hoist::random_models_test
