// Builds example.c of a bundle with only the C compiler and OpenCL, as a user does, and runs it; also under Oclgrind if
// it is installed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

#include "backends/bundle/bundle.h"
#include "ir/base/seeded.h"
#include "ir/base/strings.h"
#include "tests/bundle/small_plan.h"

namespace hoist {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Outcome {
  int code;
  std::string text;
};

Outcome shell(const std::string& command) {
  Outcome out{-1, ""};
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (!pipe) return out;
  char buffer[4096];
  for (size_t got; (got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) out.text.append(buffer, got);
  const int status = ::pclose(pipe);
  out.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return out;
}

class ExampleTest : public testing::Test {
 protected:
  void SetUp() override {
    // The child must not inherit the preloaded libraries of a sanitizer build, or the user's cache.
    ::setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
    ASSERT_TRUE(write_bundle(small_plan(), bundle_).ok());
  }
  void TearDown() override { ::unsetenv("XDG_CACHE_HOME"); }
  Outcome build() {
    return shell(
        "cd '" + bundle_.string() +
        "' && cc -std=c99 -Wall -Wextra -Wpedantic -Werror -O1 example.c runtime/hoist_runtime.c -lOpenCL -o example");
  }
  TestFolder folder_;
  std::filesystem::path bundle_ = folder_ / "a.hoist";
};

TEST_F(ExampleTest, BuildsRunsAndVerifies) {
  const Outcome built = build();
  ASSERT_EQ(built.code, 0) << built.text;
  const std::string example = (bundle_ / "example").string();

  const Outcome verified = shell(example + " --verify");
  EXPECT_EQ(verified.code, 0) << verified.text;
  EXPECT_THAT(verified.text, HasSubstr("ok    kernel blur: 40 positions, bit-identical"));
  EXPECT_THAT(verified.text, Not(HasSubstr("FAIL")));

  const Tensor x = seeded_tensor(Scalar::f32, {1, 14, 14}, 21, 0, -1, 1);
  write_text(folder_ / "x.raw", std::string(reinterpret_cast<const char*>(x.data()), x.bytes().size()));
  const Outcome ran = shell(example + " --runs 3 x=" + (folder_ / "x.raw").string());
  EXPECT_EQ(ran.code, 0) << ran.text;
  char expected[64];
  std::snprintf(expected, sizeof expected, "y f32[1,14,14]: %g %g", small_plan_result(x).float_at(0),
                small_plan_result(x).float_at(1));
  EXPECT_THAT(ran.text, HasSubstr(expected));
  EXPECT_THAT(ran.text, HasSubstr("cache hit"));

  EXPECT_EQ(shell(example + " nothing=/dev/null").code, 3);
  EXPECT_EQ(shell(example + " x=/dev/null").code, 3);
  EXPECT_EQ(shell(example + " --unknown").code, 2);
  EXPECT_EQ(shell(example + " --device nothing").code, 4);

  std::string weights = read_text(bundle_ / "weights.bin");
  weights[0] = static_cast<char>(weights[0] ^ 1);
  write_text(bundle_ / "weights.bin", weights);
  const Outcome damaged = shell(example);
  EXPECT_EQ(damaged.code, 3);
  EXPECT_THAT(damaged.text, HasSubstr("weights.bin: hash"));
}

// When asked for the binary, PoCL builds each kernel again for all group sizes, unless such a build exists.
TEST_F(ExampleTest, TheDriverBuildsEachKernelOnce) {
  ASSERT_EQ(build().code, 0);
  const std::filesystem::path driver = folder_ / "driver";
  const std::string example =
      "POCL_CACHE_DIR='" + driver.string() + "' '" + (bundle_ / "example").string() + "' --verify";
  const auto builds = [&] {
    std::set<ino_t> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(driver)) {
      struct stat about {};
      if (entry.path().extension() == ".so" && ::stat(entry.path().c_str(), &about) == 0) found.insert(about.st_ino);
    }
    return found.size();
  };
  std::filesystem::create_directories(driver);
  const Outcome first = shell(example);
  ASSERT_EQ(first.code, 0) << first.text;
  EXPECT_THAT(first.text, HasSubstr("cache miss"));
  if (builds() == 0) GTEST_SKIP() << "the driver is not PoCL";
  EXPECT_EQ(builds(), small_plan().kernels.size());
  // Without a cache the driver removes its files at the end, and aborts if it finds unexpected files.
  std::filesystem::remove_all(folder_ / "cache");
  const Outcome alone = shell("POCL_KERNEL_CACHE=0 " + example);
  EXPECT_EQ(alone.code, 0) << alone.text;
  // The cached binary is complete: the driver's own files are not needed.
  std::filesystem::remove_all(driver);
  std::filesystem::create_directories(driver);
  const Outcome second = shell(example);
  EXPECT_EQ(second.code, 0) << second.text;
  EXPECT_THAT(second.text, HasSubstr("cache hit"));
  EXPECT_THAT(shell("POCL_DEBUG=all " + example).text, Not(HasSubstr("Linking final module")));
}

TEST_F(ExampleTest, TheMakefileBuildsIt) {
  const Outcome made = shell("make -C '" + bundle_.string() + "' verify");
  EXPECT_EQ(made.code, 0) << made.text;
  EXPECT_THAT(made.text, HasSubstr("verified"));
}

TEST_F(ExampleTest, TakesAndPrintsStrings) {
  ASSERT_TRUE(write_bundle(text_plan(), bundle_, {true}).ok());
  const Outcome built = build();
  ASSERT_EQ(built.code, 0) << built.text;
  write_text(folder_ / "x.txt", "one\n\nthree words here\n");
  const std::string example = (bundle_ / "example").string();
  const Outcome ran = shell(example + " --runs 3 x=" + (folder_ / "x.txt").string());
  EXPECT_EQ(ran.code, 0) << ran.text;
  EXPECT_THAT(ran.text, HasSubstr("y string[3]: \"three words here?\" \"\" \"one!\""));
  write_text(folder_ / "x.txt", "one\n");
  EXPECT_EQ(shell(example + " x=" + (folder_ / "x.txt").string()).code, 3);
  const Outcome verified = shell(example + " --verify");
  EXPECT_EQ(verified.code, 0) << verified.text;
  EXPECT_THAT(verified.text, HasSubstr("kernel join: computed on the host"));
}

// A runtime that was built without a library that a step needs reports it when it opens the bundle; the Makefile builds
// the runtime with that library.
TEST_F(ExampleTest, RegularExpressionsNeedTheirLibrary) {
  Plan plan = text_plan();
  plan.kernels[0].host = "regex_full_match";
  plan.kernels[0].parameters[1].shape = {1};
  plan.kernels[0].parameters[2].scalar = Scalar::boolean;
  plan.kernels.pop_back();
  plan.steps.pop_back();
  const auto pattern = tensor_of_strings({1}, {"[a-c]+"});
  ASSERT_TRUE(pattern.ok());
  plan.arrays[1] = {"pattern", Scalar::string, {1}, Place::weights, 0, *pattern};
  plan.arrays[2] = {"fits", Scalar::boolean, {3}, Place::output, 0, {}};
  plan.arrays.pop_back();
  plan.outputs = {2};
  plan.strings = {"[a-c]+"};
  ASSERT_TRUE(write_bundle(plan, bundle_, {true}).ok());
  ASSERT_EQ(build().code, 0);
  const std::string example = (bundle_ / "example").string();
  const Outcome without = shell(example);
  EXPECT_EQ(without.code, 4) << without.text;
  EXPECT_THAT(without.text, HasSubstr("needs libpcre2-8, and this program was built without it"));
  const Outcome made = shell("rm '" + example + "'; make -C '" + bundle_.string() + "' example");
  ASSERT_EQ(made.code, 0) << made.text;
  write_text(folder_ / "x.txt", "abc\nabd\n\n");
  const Outcome ran = shell(example + " x=" + (folder_ / "x.txt").string());
  EXPECT_EQ(ran.code, 0) << ran.text;
  EXPECT_THAT(ran.text, HasSubstr("fits bool[3]: 01 00 00"));
}

TEST_F(ExampleTest, OclgrindHasNothingToReport) {
  if (shell("command -v oclgrind").code != 0) GTEST_SKIP() << "oclgrind is not installed";
  const Outcome built = build();
  ASSERT_EQ(built.code, 0) << built.text;
  const Outcome ran = shell("oclgrind --data-races " + (bundle_ / "example").string() + " --verify");
  EXPECT_EQ(ran.code, 0) << ran.text;
  EXPECT_THAT(ran.text, HasSubstr("Oclgrind Simulator"));
  EXPECT_THAT(ran.text, HasSubstr("verified"));
  EXPECT_THAT(ran.text, Not(HasSubstr("Invalid")));
  EXPECT_THAT(ran.text, Not(HasSubstr("race")));
}

// An overrun into the next array of the arena is undetected unless each array has its own buffer.
TEST_F(ExampleTest, OclgrindSeesAnOverrunWithSeparateBuffers) {
  if (shell("command -v oclgrind").code != 0) GTEST_SKIP() << "oclgrind is not installed";
  Plan plan = chain_plan(3);
  std::string& source = plan.kernels[0].source;
  source.replace(source.find("+ 1.0f, 0, result + i);"), 23, "+ 1.0f, 0, result + i); if (i == 48) result[64] = 0;");
  ASSERT_TRUE(write_bundle(plan, bundle_, {true}).ok());
  std::string example = read_text(bundle_ / "example.c");
  const std::string defaults = "hoist_options options = {0};";
  ASSERT_THAT(example, HasSubstr(defaults));
  example.replace(example.find(defaults), defaults.size(), "hoist_options options = {.separate_buffers = 1};");
  write_text(bundle_ / "example.c", example);
  ASSERT_EQ(build().code, 0);
  const Outcome ran = shell("oclgrind " + (bundle_ / "example").string() + " --runs 1");
  EXPECT_THAT(ran.text, HasSubstr("Invalid write"));
}

}  // namespace
}  // namespace hoist
