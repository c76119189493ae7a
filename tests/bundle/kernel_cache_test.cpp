// Tests the cache of compiled kernels: hits, misses and their reasons, and its limits.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "tests/bundle/run_fixture.h"

namespace hoist {
namespace {

using testing::StartsWith;

// Runs a bundle of small_plan().
std::string cache_outcome(const std::filesystem::path& bundle, const RunOptions& options) {
  auto runner = BundleRunner::open(bundle, options);
  if (!runner.ok()) return runner.errors().front().text();
  auto outputs = runner->run({RunTest::input(1)});
  EXPECT_EQ((*outputs)[0], small_plan_result(RunTest::input(1)));
  return runner->cache_outcome();
}

void damage_entries(const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::string bytes = read_text(entry.path());
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    write_text(entry.path(), bytes);
  }
}

TEST_F(RunTest, CompiledKernelsAreCached) {
  const auto bundle = written(small_plan());
  const auto outcome = [&](const RunOptions& given) { return cache_outcome(bundle, given); };
  EXPECT_EQ(outcome(options()), "miss: no entry for this source on this device and driver");
  EXPECT_EQ(outcome(options()), "hit");
  RunOptions off = options();
  off.use_cache = false;
  EXPECT_EQ(outcome(off), "miss: the cache is switched off");
  damage_entries(folder_ / "cache");
  EXPECT_EQ(outcome(options()), "miss: the entry is damaged");
  EXPECT_EQ(outcome(options()), "hit");
  RunOptions nowhere = options();
  nowhere.cache_folder = "/dev/null/cache";
  EXPECT_THAT(outcome(nowhere),
              StartsWith("miss: no entry for this source on this device and driver; it could not be"));
}

TEST_F(RunTest, ProgressTellsEachKernelWhereNothingIsCached) {
  const auto bundle = written(small_plan());
  const auto told = [&](bool use_cache) {
    std::vector<std::string> out;
    RunOptions given = options();
    given.use_cache = use_cache;
    given.progress = [&](size_t done, size_t total, const std::string& kernel) {
      out.push_back(fmt::format("{} of {} {}", done, total, kernel));
    };
    EXPECT_TRUE(BundleRunner::open(bundle, given).ok());
    return out;
  };
  const size_t total = small_plan().kernels.size() + 1;
  std::vector<std::string> cold = {fmt::format("0 of {} ", total)};
  for (size_t i = 1; i < total; ++i)
    cold.push_back(fmt::format("{} of {} {}", i, total, small_plan().kernels[i - 1].name));
  cold.push_back(fmt::format("{0} of {0} ", total));
  const std::vector<std::string> warm = {cold.front(), cold.back()};
  EXPECT_EQ(told(true), cold);
  EXPECT_EQ(told(true), warm);
  EXPECT_EQ(told(false), warm);
}

TEST_F(RunTest, ProgramsOfTheBundleGoBeforeTheCache) {
  const auto bundle = written(small_plan());
  RunOptions keeping = options();
  keeping.cache_folder = (bundle / "programs").string();
  EXPECT_THAT(BundleRunner::open(bundle, keeping)->cache_outcome(), StartsWith("miss"));
  const auto outcome = [&](const RunOptions& given) { return cache_outcome(bundle, given); };
  EXPECT_EQ(outcome(options()), "hit: programs/ of the bundle");
  EXPECT_FALSE(std::filesystem::exists(options().cache_folder));
  RunOptions off = options();
  off.use_cache = false;
  EXPECT_EQ(outcome(off), "miss: the cache is switched off");
  // Damaged entries stay unchanged, and the kernels are compiled into the cache.
  damage_entries(bundle / "programs");
  EXPECT_THAT(outcome(options()), StartsWith("miss"));
  EXPECT_EQ(outcome(options()), "hit");
}

// Makes cache entry i, last used i seconds after the first, long ago.
std::filesystem::path old_entry(const std::filesystem::path& cache, int i, uintmax_t bytes) {
  std::filesystem::path path = cache / fmt::format("{:016x}.bin", i);
  write_text(path, "");
  std::filesystem::resize_file(path, bytes);
  std::filesystem::last_write_time(
      path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(24) + std::chrono::seconds(i));
  return path;
}

TEST_F(RunTest, TheCacheHasAtMostSoManyEntries) {
  const auto cache = folder_ / "cache";
  std::filesystem::create_directories(cache);
  std::vector<std::filesystem::path> crowd;
  for (int i = 0; i < 1010; ++i) crowd.push_back(old_entry(cache, i, 10));
  // The user's files are neither counted nor removed.
  write_text(cache / "notes.txt", "mine");
  write_text(cache / "0123456789abcdef.binary", "mine");
  ASSERT_OK(BundleRunner::open(written(small_plan()), options()));
  size_t left = 0;
  for (const auto& path : crowd) left += std::filesystem::exists(path) ? 1 : 0;
  EXPECT_EQ(left, 999u);
  EXPECT_FALSE(std::filesystem::exists(crowd[10]));
  EXPECT_TRUE(std::filesystem::exists(crowd[11]));
  EXPECT_TRUE(std::filesystem::exists(cache / "notes.txt"));
  EXPECT_TRUE(std::filesystem::exists(cache / "0123456789abcdef.binary"));
  EXPECT_EQ(BundleRunner::open(written(small_plan(), "b.hoist"), options())->cache_outcome(), "hit");
}

TEST_F(RunTest, TheCacheHasAtMostSoManyBytes) {
  const auto cache = folder_ / "cache";
  ASSERT_OK(BundleRunner::open(written(small_plan()), options()));
  // The first compiled entry is older than all others until it is used again.
  for (const auto& entry : std::filesystem::directory_iterator(cache)) {
    std::filesystem::last_write_time(entry.path(),
                                     std::filesystem::file_time_type::clock::now() - std::chrono::hours(48));
  }
  std::vector<std::filesystem::path> crowd;
  for (int i = 0; i < 3; ++i) crowd.push_back(old_entry(cache, i, 100u << 20));  // sparse
  EXPECT_EQ(BundleRunner::open(written(small_plan(), "b.hoist"), options())->cache_outcome(), "hit");
  EXPECT_THAT(BundleRunner::open(written(chain_plan(1), "c.hoist"), options())->cache_outcome(), StartsWith("miss"));
  EXPECT_FALSE(std::filesystem::exists(crowd[0]));
  EXPECT_TRUE(std::filesystem::exists(crowd[1]));
  EXPECT_TRUE(std::filesystem::exists(crowd[2]));
  EXPECT_EQ(BundleRunner::open(written(small_plan(), "d.hoist"), options())->cache_outcome(), "hit");
}

}  // namespace
}  // namespace hoist
