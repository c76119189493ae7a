// Tests that writing is atomic.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "backends/bundle/bundle.h"
#include "backends/bundle/folder_writer.h"
#include "ir/base/seeded.h"
#include "tests/bundle/small_plan.h"

namespace hoist {
namespace {

using testing::HasSubstr;

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) out.push_back(entry.path().filename());
  std::sort(out.begin(), out.end());
  return out;
}

std::string message(const Result<Nothing>& result) { return result.ok() ? "" : result.errors().front().text(); }

/// Limits file sizes of this process to `bytes` for the scope: writes beyond it fail.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_ = {};
};

TEST(WriteTest, AFailureHalfWayLeavesNothing) {
  // weights.bin has 208 bytes, plan.bin fewer than 2000, the runtime more than 60000: each limit stops at another file.
  for (const rlim_t limit : {0, 100, 300, 1500, 5000, 30000}) {
    TestFolder folder;
    std::string failure;
    {
      const FileSizeLimit small(limit);
      failure = message(write_bundle(small_plan(), folder / "a.hoist"));
    }
    EXPECT_THAT(failure, HasSubstr("cannot be written: File too large")) << limit;
    EXPECT_THAT(failure, HasSubstr("a.hoist/")) << limit;
    EXPECT_TRUE(names_in(folder.path()).empty()) << limit;
  }
}

// A signal's thread removes temporary folders while other threads write.
TEST(WriteTest, FoldersThatAreGoneAreNotMadeAgain) {
  const TestFolder folder;
  const std::filesystem::path parent = folder / "temporary";
  std::filesystem::create_directory(parent);
  Result<FolderWriter> writer = FolderWriter::begin(parent / "a.hoist");
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->write("runtime/a.c", "a").ok());
  std::filesystem::remove_all(parent);
  for (const char* path : {"b", "runtime/b", "other/folder/b"}) EXPECT_FALSE(writer->write(path, "b").ok()) << path;
  EXPECT_FALSE(writer->commit(false).ok());
  EXPECT_FALSE(std::filesystem::exists(parent));
}

TEST(WriteTest, AFailedReplacementKeepsWhatWasThere) {
  TestFolder folder;
  ASSERT_TRUE(write_bundle(small_plan(), folder / "a.hoist").ok());
  const std::string before = read_text(folder / "a.hoist" / "plan.bin");
  {
    const FileSizeLimit small(5000);
    EXPECT_FALSE(write_bundle(chain_plan(3), folder / "a.hoist", {true}).ok());
  }
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"a.hoist"});
  EXPECT_EQ(read_text(folder / "a.hoist" / "plan.bin"), before);
  EXPECT_TRUE(read_bundle(folder / "a.hoist").ok());
}

TEST(WriteTest, OnlyBundlesAreReplacedAndOnlyByForce) {
  TestFolder folder;
  ASSERT_TRUE(write_bundle(small_plan(), folder / "a.hoist").ok());
  EXPECT_THAT(message(write_bundle(chain_plan(3), folder / "a.hoist")), HasSubstr("--force"));
  EXPECT_EQ(read_bundle(folder / "a.hoist")->plan.model_name, "small");
  EXPECT_EQ(message(write_bundle(chain_plan(3), folder / "a.hoist", {true})), "");
  EXPECT_EQ(read_bundle(folder / "a.hoist")->plan.model_name, "chain");

  std::filesystem::create_directories(folder / "mine");
  write_text(folder / "mine" / "thesis.tex", "years of work");
  EXPECT_THAT(message(write_bundle(small_plan(), folder / "mine", {true})), HasSubstr("is not a bundle"));
  EXPECT_EQ(read_text(folder / "mine" / "thesis.tex"), "years of work");

  write_text(folder / "file", "text");
  EXPECT_THAT(message(write_bundle(small_plan(), folder / "file", {true})), HasSubstr("not a folder"));
  std::filesystem::create_symlink("a.hoist", folder / "link");
  EXPECT_THAT(message(write_bundle(small_plan(), folder / "link", {true})), HasSubstr("not a folder"));
  EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"a.hoist", "file", "link", "mine"}));
}

TEST(WriteTest, ImpossiblePlacesAreNamed) {
  EXPECT_THAT(message(write_bundle(small_plan(), "/dev/full")), HasSubstr("/dev/full: exists and is not a folder"));
  EXPECT_THAT(message(write_bundle(small_plan(), "/dev/full/a.hoist")), HasSubstr("/dev/full is not a folder"));
  TestFolder folder;
  EXPECT_THAT(message(write_bundle(small_plan(), folder / "no/such/a.hoist")), HasSubstr("is not a folder"));
  EXPECT_TRUE(names_in(folder.path()).empty());
}

TEST(WriteTest, ATrailingSlashIsTheSameFolder) {
  TestFolder folder;
  ASSERT_EQ(message(write_bundle(small_plan(), folder / "a.hoist/")), "");
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"a.hoist"});
  EXPECT_THAT(message(write_bundle(small_plan(), folder / "a.hoist/")), HasSubstr("--force"));
}

TEST(WriteTest, NamesThatAreNoTextSurvive) {
  Plan plan = small_plan();
  plan.kernels[0].layers = {std::string("caf\xe9 \xff\xfe // */ \\\n?\?/ end")};
  plan.arrays[0].name = "in\xff\"put";
  TestFolder folder;
  ASSERT_EQ(message(write_bundle(plan, folder / "a.hoist")), "");
  auto info = read_bundle(folder / "a.hoist");
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->plan.kernels[0].layers, plan.kernels[0].layers);
  EXPECT_EQ(info->plan.arrays[0].name, plan.arrays[0].name);
  EXPECT_EQ(info->plan.kernels[0].source, plan.kernels[0].source);
}

}  // namespace
}  // namespace hoist
