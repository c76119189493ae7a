// Tests the C runtime with failing calls, in a program of its own: the linker inserts wrapped_calls.c between the
// runtime and its callees.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <vector>

#include "backends/bundle/bundle.h"
#include "tests/bundle/small_plan.h"

namespace hoist {
namespace {

struct Ended {
  int code = 0;  ///< -1 if a signal ended it
  std::string said;
};

Ended run(const std::string& command, const TestFolder& folder) {
  const std::filesystem::path said = folder / "said";
  const int status = std::system((command + " >'" + said.string() + "' 2>&1").c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text(said)};
}

std::string written(const Plan& plan, const TestFolder& folder) {
  const std::filesystem::path bundle = folder / "a.hoist";
  const auto result = write_bundle(plan, bundle);
  EXPECT_TRUE(result.ok()) << result.errors().front().text();
  return "'" + bundle.string() + "'";
}

// Makes every call in loading, running and checking the plan's bundle fail once.
void expect_clean_ends(const Plan& plan) {
  TestFolder folder;
  const bool all = std::getenv("HOIST_FAULTS") != nullptr;
  const Ended ended = run(std::string("'" HOIST_RUNTIME_FAULTS "' ") + written(plan, folder) + " '" +
                              (folder / "cache").string() + (all ? "' all" : "'"),
                          folder);
  EXPECT_EQ(ended.code, 0) << ended.said;
  EXPECT_THAT(ended.said, testing::HasSubstr(" 0 complaints")) << ended.said;
  if (all) std::cout << ended.said;
}

TEST(RuntimeFaults, EveryCallThatFailsHasACleanEnd) { expect_clean_ends(small_plan()); }

// There, arrays have buffers of their own, and transfers are staged in the driver's memory.
TEST(RuntimeFaults, EveryCallThatFailsOnADeviceWithMemoryOfItsOwnHasACleanEnd) {
  TestFolder folder;
  std::vector<Plan> plans = {small_plan()};
  if (std::getenv("HOIST_FAULTS") != nullptr) plans.insert(plans.end(), {controlled_plan(), text_plan(), sums_plan()});
  for (const Plan& plan : plans) {
    const Ended ended = run(std::string("HOIST_MEMORY_OF_ITS_OWN=1 '" HOIST_RUNTIME_FAULTS "' ") +
                                written(plan, folder) + " '" + (folder / "cache").string() + "'",
                            folder);
    EXPECT_EQ(ended.code, 0) << ended.said;
    EXPECT_THAT(ended.said, testing::HasSubstr(" 0 complaints")) << ended.said;
    std::filesystem::remove_all(folder / "a.hoist");
  }
}

TEST(RuntimeFaults, EveryCallThatFailsWithMappedWeightsHasACleanEnd) { expect_clean_ends(large_plan()); }

TEST(RuntimeFaults, EveryCallThatFailsInAStepOnTheHostHasACleanEnd) { expect_clean_ends(text_plan()); }

TEST(RuntimeFaults, EveryCallThatFailsInALoopOrABranchHasACleanEnd) { expect_clean_ends(controlled_plan()); }

TEST(RuntimeFaults, EveryCallThatFailsInALaunchOfSeveralStepsHasACleanEnd) { expect_clean_ends(joined_plan()); }

TEST(RuntimeFaults, EveryCallThatFailsBesideStatesHasACleanEnd) { expect_clean_ends(sums_plan()); }

TEST(RuntimeThreads, ComputeWhatOneComputes) {
  TestFolder folder;
  const std::string bundle = written(small_plan(), folder);
  for (const char* program : {HOIST_STRESS, HOIST_STRESS_WATCHED}) {
    const Ended ended =
        run(std::string("TSAN_OPTIONS=halt_on_error=1 '") + program + "' threads " + bundle + " 50", folder);
    EXPECT_EQ(ended.code, 0) << program << ":\n" << ended.said;
    EXPECT_THAT(ended.said, testing::StartsWith("passed"));
  }
}

// HOIST_RUNS=1000000 runs a million.
TEST(RuntimeRuns, LeaveMemoryAsItIs) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer keeps what is freed";
#endif
  TestFolder folder;
  const char* wanted = std::getenv("HOIST_RUNS");
  const Ended ended = run(std::string("'" HOIST_STRESS "' runs ") + written(small_plan(), folder) + " " +
                              (wanted != nullptr ? wanted : "20000"),
                          folder);
  EXPECT_EQ(ended.code, 0) << ended.said;
  if (wanted != nullptr) std::cout << ended.said;
}

// Ensures that calls which the runtime adds later are wrapped too.
TEST(RuntimeFaults, EveryCallOfTheRuntimeThatCanFailIsWrapped) {
  const std::set<std::string> cannot_fail = {
      "clock_gettime",
      "dirfd",
      "dlclose",
      "dlerror",
      "dlsym",  // a function of a library whose bytes were checked
      "fileno",
      "getenv",
      "memchr",
      "memcmp",
      "memcpy",
      "memset",
      "memmove",
      "nanosleep",
      "qsort",
      "snprintf",
      "vsnprintf",
      "strchr",
      "strcmp",
      "strcpy",
      "strerror",
      "strlen",
      "strncmp",
      "strrchr",
      "strspn",
      "strstr",
      "strtoul",
      "sched_yield",
      "sysconf",
      "strcasecmp",
      "pthread_attr_destroy",
      "pthread_attr_init",
      "pthread_attr_setstacksize",
      "pthread_cond_broadcast",
      "pthread_cond_destroy",
      "pthread_cond_init",
      "pthread_cond_wait",
      "dl_iterate_phdr",  // information on an open library
      "dlinfo",           // the same; if it fails, constants are read later
      "pthread_join",
      "pthread_mutex_destroy",
      "pthread_mutex_init",
      "pthread_mutex_lock",
      "pthread_mutex_unlock",
      "pthread_once",
      "syscall",                // requests registers; a processor without them has fewer targets
      "madvise",                // requests large pages; if it fails, the memory is unchanged
      "sched_getaffinity",      // if it fails, the process counts as bound to some cores
      "clGetCommandQueueInfo",  // reports the end of a worker; if it fails, nothing waits for the worker
  };
  std::set<std::string> known = cannot_fail;
  std::ifstream wrapped(HOIST_SOURCE_DIR "/tests/faults/wrapped_calls.c");
  for (std::string line; std::getline(wrapped, line);) {
    const size_t name = line.find('(') + 1;
    if (line.starts_with("WRAP_")) known.insert(line.substr(name, line.find(',') - name));
  }
  TestFolder folder;
  const Ended ended = run("nm -u '" HOIST_RUNTIME "'", folder);
  ASSERT_EQ(ended.code, 0) << ended.said;
  std::istringstream lines(ended.said);
  size_t seen = 0;
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find(" U ");
    if (at == std::string::npos) continue;
    const std::string name = line.substr(at + 3);
    if (name.starts_with("_") || name.starts_with("hoist_")) continue;
    ++seen;
    EXPECT_TRUE(known.contains(name)) << name << " is neither wrapped nor among those that cannot fail";
  }
  EXPECT_GT(seen, 50u);
}

}  // namespace
}  // namespace hoist
