// Large weights are mapped: handles and processes share their pages, and the checks of the file stay.
#include <gmock/gmock.h>

#include <sstream>

#include "backends/runtime/hoist_runtime.h"
#include "tests/bundle/run_fixture.h"

namespace hoist {
namespace {

using testing::HasSubstr;

class MappedWeightsTest : public RunTest {
 protected:
  // The number of mappings of the bundle's weights in this process.
  static int mappings() {
    int count = 0;
    std::istringstream lines(read_text("/proc/self/maps"));
    for (std::string line; std::getline(lines, line);) count += line.ends_with("a.hoist/weights.bin") ? 1 : 0;
    return count;
  }

  std::string refusal() {
    const auto runner = BundleRunner::open(bundle_, options());
    return runner.ok() ? "" : runner.errors().front().text();
  }

  const std::filesystem::path bundle_ = written(large_plan());
  const std::filesystem::path weights_ = bundle_ / "weights.bin";
};

TEST_F(MappedWeightsTest, AreMappedOnceForAllHandles) {
  const std::string cache = options().cache_folder;
  hoist_options how = {};
  how.cache_folder = cache.c_str();
  hoist_bundle *bundle = nullptr, *session = nullptr;
  ASSERT_EQ(hoist_open(bundle_.c_str(), &how, &bundle), HOIST_OK) << hoist_error_message(bundle);
  EXPECT_EQ(mappings(), 1);
  ASSERT_EQ(hoist_open_session(bundle, 0, &session), HOIST_OK) << hoist_error_message(session);
  EXPECT_EQ(mappings(), 1);
  hoist_close(bundle);
  const Tensor x = input(1), expected = small_plan_result(x);
  Tensor found(Scalar::f32, expected.shape());
  EXPECT_EQ(hoist_set_input(session, 0, x.data(), x.bytes().size()), HOIST_OK);
  EXPECT_EQ(hoist_run(session), HOIST_OK) << hoist_error_message(session);
  EXPECT_EQ(hoist_get_output(session, 0, found.data(), found.bytes().size()), HOIST_OK);
  EXPECT_EQ(found, expected);
  EXPECT_EQ(mappings(), 1);
  hoist_close(session);
  EXPECT_EQ(mappings(), 0);
}

TEST_F(MappedWeightsTest, SmallOnesAreCopied) {
  std::filesystem::remove_all(bundle_);
  written(small_plan());
  const auto runner = BundleRunner::open(bundle_, options());
  ASSERT_OK(runner);
  EXPECT_EQ(mappings(), 0);
}

TEST_F(MappedWeightsTest, ChangedFilesAreRefused) {
  const std::string content = read_text(weights_);
  std::string changed = content;
  changed[3 << 20] ^= 1;
  write_text(weights_, changed);
  EXPECT_THAT(refusal(), HasSubstr("weights.bin: hash"));
  write_text(weights_, content.substr(0, content.size() - 1));
  EXPECT_THAT(refusal(), HasSubstr("bytes, and plan.bin states"));
  write_text(weights_, content);
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(mappings(), 0);
}

TEST_F(MappedWeightsTest, AreReadBackAsTheyWereWritten) {
  const auto read = read_bundle(bundle_, true);
  ASSERT_OK(read);
  const Plan plan = large_plan();
  for (size_t i = 0; i < plan.arrays.size(); ++i) EXPECT_EQ(read->plan.arrays[i].constant, plan.arrays[i].constant);
}

TEST(WriteBundle, DropsConstantsThatAreWritten) {
  const TestFolder folder;
  Plan plan = large_plan(), kept = large_plan();
  ASSERT_OK(write_bundle(std::vector<SizedPlan>{{{}, &plan}}, folder / "a.hoist"));
  ASSERT_OK(write_bundle(kept, folder / "b.hoist"));
  EXPECT_EQ(read_text(folder / "a.hoist/weights.bin"), read_text(folder / "b.hoist/weights.bin"));
  for (const PlanArray& array : plan.arrays) EXPECT_EQ(array.constant.bytes().size(), 0U) << array.name;
  EXPECT_EQ(kept.arrays.back().constant.size(), 1 << 20);
}

}  // namespace
}  // namespace hoist
