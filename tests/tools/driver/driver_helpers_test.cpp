// Tests helper processes that build kernels: the kernels that each builds, and its end.
#include "tools/driver/driver_helpers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <set>

#include "backends/bundle/bundle.h"
#include "tests/tools/program.h"

namespace hoist::driver_helpers_test {

namespace fs = std::filesystem;

TEST(HelperCount, LeavesACoreToTheProgram) {
  EXPECT_EQ(helper_count(100, 1), 0u);
  EXPECT_EQ(helper_count(100, 2), 1u);
  EXPECT_EQ(helper_count(100, 4), 3u);
  EXPECT_EQ(helper_count(100, 64), 7u);
  EXPECT_EQ(helper_count(100, 0), 0u);
  EXPECT_EQ(helper_count(7, 64), 0u);
  EXPECT_EQ(helper_count(20, 64), 2u);
}

TEST(HelperParts, AreReadAsTheyAreWritten) {
  const auto part = parse_helper_part(to_text({2, 5}));
  ASSERT_TRUE(part.ok());
  EXPECT_EQ(part->index, 2u);
  EXPECT_EQ(part->count, 5u);
  for (const char* text : {"", "1", "1/", "/2", "2/2", "-1/2", "1/2x", "1 /2"})
    EXPECT_FALSE(parse_helper_part(text).ok()) << text;
}

class DriverHelpersTest : public InTemporaryFolder {
 protected:
  void SetUp() override {
    InTemporaryFolder::SetUp();
    const Ran compiled = run_hoist({"compile", std::string(HOIST_SOURCE_DIR) + "/models/digits_residual.onnx", "-o",
                                    in("a.hoist"), "--no-check", "--pass", "fusion=none"});
    ASSERT_EQ(compiled.code, 0) << compiled.err;
    const auto bundle = read_bundle(in("a.hoist"));
    ASSERT_TRUE(bundle.ok());
    kernels_ = bundle->plan.kernels.size();
    ASSERT_GE(kernels_, 8u);
    fs::create_directories(in("driver"));
  }
  std::string empty_caches() const { return "XDG_CACHE_HOME=" + in("cache") + " POCL_CACHE_DIR=" + in("driver") + " "; }
  // The kernel of each build; a file with two names counts once.
  std::map<ino_t, std::string> builds() const {
    std::map<ino_t, std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(in("driver"))) {
      struct stat about {};
      if (entry.path().extension() == ".so" && ::stat(entry.path().c_str(), &about) == 0)
        found.emplace(about.st_ino, entry.path().stem());
    }
    return found;
  }
  size_t kernels_ = 0;
};

TEST_F(DriverHelpersTest, EachBuildsItsPartWhileItIsAskedTo) {
  const Ran ended = run_hoist({"verify", in("a.hoist"), "--help-driver", "0/2"}, empty_caches());
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(builds().size(), 0u) << "standard input has ended";
  const std::string open_input = "mkfifo " + in("input") + "; exec 3<>" + in("input") + "; " + empty_caches();
  const Ran half = run_shell(open_input + HOIST_PROGRAM + " verify " + in("a.hoist") + " --help-driver 0/2 <&3");
  EXPECT_EQ(half.code, 0) << half.err;
  EXPECT_EQ(half.out, "");
  EXPECT_EQ(builds().size(), (kernels_ + 1) / 2);
  EXPECT_FALSE(fs::exists(in("cache"))) << "what is a part goes to the driver's cache alone";
}

TEST_F(DriverHelpersTest, LaunchesOfSeveralStepsAreBuiltWhole) {
  const Ran compiled = run_hoist({"compile", std::string(HOIST_SOURCE_DIR) + "/models/digits_residual.onnx", "-o",
                                  in("joined.hoist"), "--no-check"});
  ASSERT_EQ(compiled.code, 0) << compiled.err;
  const auto bundle = read_bundle(in("joined.hoist"));
  ASSERT_TRUE(bundle.ok());
  ASSERT_EQ(bundle->plan.launches.size(), 1u);
  ASSERT_EQ(static_cast<size_t>(bundle->plan.launches[0].count), bundle->plan.steps.size());
  const Ran ran = run_shell("mkfifo " + in("input") + "; exec 3<>" + in("input") + "; " + empty_caches() +
                            HOIST_PROGRAM + " verify " + in("joined.hoist") + " --help-driver 0/1 <&3");
  EXPECT_EQ(ran.code, 0) << ran.err;
  ASSERT_EQ(builds().size(), 1u);
  EXPECT_EQ(builds().begin()->second, bundle->plan.launches[0].name);
}

TEST_F(DriverHelpersTest, TogetherTheyBuildWhatOneProcessBuilds) {
  const Ran verified = run_hoist({"verify", in("a.hoist")}, empty_caches());
  EXPECT_EQ(verified.code, 0) << verified.out << verified.err;
  const std::map<ino_t, std::string> built = builds();
  std::set<std::string> built_kernels;
  for (const auto& [file, kernel] : built) built_kernels.insert(kernel);
  EXPECT_EQ(built_kernels.size(), kernels_);
  EXPECT_LE(built.size(), kernels_ + helper_count(kernels_, 64)) << "each meets the program at one kernel at most";
  const Ran again = run_hoist({"verify", in("a.hoist"), "-v"}, empty_caches());
  EXPECT_EQ(again.code, 0) << again.out;
  EXPECT_THAT(again.err, testing::HasSubstr("compiled kernels: hit"));
}

TEST_F(DriverHelpersTest, AreNotNeededWhereTheCacheIsSwitchedOff) {
  const Ran verified = run_hoist({"verify", in("a.hoist")}, "POCL_KERNEL_CACHE=0 " + empty_caches());
  EXPECT_EQ(verified.code, 0) << verified.out << verified.err;
}

}  // namespace hoist::driver_helpers_test
