// Tests the parts of the queue that need neither a server nor workers: counts of parts, arrays and folders as content,
// confinement of processes, and the texts of jobs.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "ir/base/temporary_folder.h"
#include "tests/tools/data/npz_file.h"
#include "tools/base/files.h"
#include "tools/data/npy.h"
#include "tools/data/scores.h"
#include "tools/queue/confinement.h"
#include "tools/queue/job.h"
#include "tools/queue/packed_folder.h"
#include "tools/queue/queue.h"

namespace hoist {
namespace {

TEST(Counts, OfPartsAddUpInAnyOrder) {
  const Tensor scores = Tensor::of(Scalar::f32, {3, 6},
                                   std::vector<float>{0, 1, 0, 0, 0, 0,  //
                                                      9, 8, 7, 6, 5, 4,  //
                                                      0, 0, 0, 0, 0, 2});
  ScoreCard all(6), first(6), second(6);
  for (int64_t i = 0; i < 3; ++i) {
    const int64_t label = i == 1 ? 5 : i;
    all.add(scores, 6 * i, label);
    (i == 0 ? first : second).add(scores, 6 * i, label);
  }
  auto back = ScoreCard::from_counts(second.counts(), 6, 2);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->counts(), second.counts());
  ScoreCard sum(6);
  sum.add(*back);
  sum.add(first);
  EXPECT_EQ(sum.counts(), all.counts());
  EXPECT_EQ(sum.to_json({}), all.to_json({}));
  // Counts for another part are refused, and counts that do not add up.
  EXPECT_FALSE(ScoreCard::from_counts(second.counts(), 6, 3).ok());
  EXPECT_FALSE(ScoreCard::from_counts(second.counts(), 2, 2).ok());
  for (const char* text : {R"({})", R"([])", R"({"best_five":0,"not_finite":0,"labels":[[0,2,1,[]]]})",
                           R"({"best_five":0,"not_finite":0,"labels":[[0,2,3,[]]]})",
                           R"({"best_five":1,"not_finite":0,"labels":[[0,2,2,[]]]})",
                           R"({"best_five":2,"not_finite":-1,"labels":[[0,2,2,[]]]})",
                           R"({"best_five":2,"not_finite":0,"labels":[[0,1,1,[]],[0,1,1,[]]]})",
                           R"({"best_five":2,"not_finite":0,"labels":[[0,18446744073709551615,2,[]]]})"})
    EXPECT_FALSE(ScoreCard::from_counts(nlohmann::json::parse(text), 6, 2).ok()) << text;
}

TEST(WriteNpz, GivesTheSameBytesAndIsRead) {
  auto folder = TemporaryFolder::make();
  ASSERT_TRUE(folder.ok());
  const std::map<std::string, Tensor> arrays = {
      {"image", Tensor::of(Scalar::f32, {2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6})},
      {"labels", Tensor::of(Scalar::i64, {2}, std::vector<int64_t>{1, 0})}};
  ASSERT_TRUE(write_npz(folder->path() / "a", arrays).ok());
  ::sleep(2);  // zip's timestamps have a resolution of two seconds
  ASSERT_TRUE(write_npz(folder->path() / "b", arrays).ok());
  EXPECT_EQ(*read_file(folder->path() / "a"), *read_file(folder->path() / "b"));
  auto back = read_npz(folder->path() / "a");
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->at("image").bytes().size(), 24u);
  EXPECT_EQ(back->at("labels").as_integers(), (std::vector<int64_t>{1, 0}));
  EXPECT_FALSE(write_npz(folder->path() / "none" / "c", arrays).ok());
}

TEST(PackedFolder, ComesBackAndStaysInItsPlace) {
  auto folder = TemporaryFolder::make();
  ASSERT_TRUE(folder.ok());
  const auto path = folder->path();
  std::filesystem::create_directory(path / "a");
  std::filesystem::create_directory(path / "a" / "b");
  std::ofstream(path / "a" / "b" / "one.txt") << "1\n2";
  std::ofstream(path / "a" / "two") << "";
  auto packed = queue::pack_folder(path / "a", {"two", "b/one.txt"});
  ASSERT_TRUE(packed.ok());
  ASSERT_TRUE(queue::unpack_folder(*packed, path / "c").ok());
  EXPECT_EQ(*read_file(path / "c" / "b" / "one.txt"), "1\n2");
  EXPECT_EQ(*read_file(path / "c" / "two"), "");
  for (const char* text : {"", "hoist folder 1\n", "hoist folder 1\n3 ../x\n\nabc", "hoist folder 1\n3 /x\n\nabc",
                           "hoist folder 1\n3 a/../x\n\nabc", "hoist folder 1\n3 .x\n\nabc",
                           "hoist folder 1\n4 x\n\nabc", "hoist folder 1\n2 x\n\nabc", "hoist folder 1\n1 x\n1 x\n\nab",
                           "hoist folder 1\n-1 x\n\nabc", "hoist folder 1\n3 x y\n\nabc"}) {
    SCOPED_TRACE(text);
    EXPECT_FALSE(queue::unpack_folder(text, path / "d").ok());
  }
  EXPECT_FALSE(std::filesystem::exists(path / "d"));
  EXPECT_FALSE(std::filesystem::exists(path / "x"));
}

TEST(Confinement, KeepsAProcessInItsFolders) {
  if (!queue::can_confine()) GTEST_SKIP() << "this system has no Landlock";
  auto inside = TemporaryFolder::make(), outside = TemporaryFolder::make();
  ASSERT_TRUE(inside.ok() && outside.ok());
  std::ofstream(outside->path() / "secret") << "x";
  const pid_t child = ::fork();
  if (child == 0) {
    const bool confined = queue::confine({inside->path()}, {}).ok();
    const auto opens = [](const std::filesystem::path& path, int how) { return ::open(path.c_str(), how, 0600) >= 0; };
    int wrong = confined ? 0 : 1;
    if (!opens(inside->path() / "file", O_WRONLY | O_CREAT)) wrong |= 2;
    if (opens(outside->path() / "file", O_WRONLY | O_CREAT)) wrong |= 4;
    if (opens(outside->path() / "secret", O_RDONLY)) wrong |= 8;
    if (!opens("/etc/hostname", O_RDONLY)) wrong |= 16;
    if (!opens("/dev/null", O_WRONLY)) wrong |= 32;
    ::_exit(wrong);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(QueueJob, TextsOfStrangersAreRead) {
  queue::Job job = queue::new_job("evaluate", "a device");
  job.content["bundle"] = queue::hash_of("x");
  job.options["output"] = 1;
  auto back = queue::parse_job(queue::print(job));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(queue::id_of(*back), queue::id_of(job));
  for (const char* text :
       {"", "[]", "{}", R"({"protocol":2})", R"({"protocol":"1"})",
        R"({"protocol":1,"kind":1,"version":"1","device":"d","content":{},"options":{}})",
        R"({"protocol":1,"kind":"k","version":"1","device":"d","content":{"a":"../b"},"options":{}})",
        R"({"protocol":1,"kind":"k","version":"1","device":"d","content":{},"options":[]})"})
    EXPECT_FALSE(queue::parse_job(text).ok()) << text;
  EXPECT_FALSE(queue::parse_job(std::string(1 << 17, ' ')).ok());
  for (const char* text : {"", "{}", "[1]", R"({"refused":[]})", R"({"result":1,"aside":"x"})"})
    EXPECT_FALSE(queue::parse_answer(text).ok()) << text;
  EXPECT_FALSE(queue::parse_worker(R"({"name":"a","version":"b","devices":3})").ok());
}

}  // namespace
}  // namespace hoist
