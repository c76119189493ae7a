// Schedules of the learning rate: the rates over the epochs, files, and refusals.
#include "tools/training/schedule.h"

#include <gmock/gmock.h>

#include <fstream>

#include "ir/base/temporary_folder.h"

namespace hoist::schedule_test {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<double> rates(const std::string& text, int64_t epochs) {
  const auto schedule = Schedule::read(text, 8, epochs);
  EXPECT_TRUE(schedule.ok()) << (schedule.ok() ? "" : schedule.errors()[0].text());
  std::vector<double> out;
  for (int64_t epoch = 0; schedule.ok() && epoch < epochs; ++epoch)
    out.push_back(schedule->rate(static_cast<double>(epoch)));
  return out;
}

TEST(Schedule, FollowsItsRow) {
  EXPECT_THAT(rates("constant", 2), ElementsAre(8, 8));
  EXPECT_THAT(rates("step:2,0.5", 4), ElementsAre(8, 8, 4, 4));
  const std::vector<double> cosine = rates("cosine", 4);
  EXPECT_DOUBLE_EQ(cosine[0], 8);
  EXPECT_DOUBLE_EQ(cosine[2], 4);
  EXPECT_THAT(rates("cosine:0.5,3", 4), ElementsAre(2, 4, 6, 8));
  EXPECT_DOUBLE_EQ(Schedule::read("cosine:0.25", 8, 10)->rate(10), 2);
}

TEST(Schedule, RepeatsTheEndOfALongerTraining) {
  for (const std::string inner : {"cosine", "step:4,0.5"}) {
    const std::vector<double> whole = rates(inner, 8), end = rates("rewind:8," + inner, 3);
    for (size_t i = 0; i < 3; ++i) EXPECT_DOUBLE_EQ(end[i], whole[5 + i]) << inner;
  }
}

TEST(Schedule, ReadsFiles) {
  const auto folder = TemporaryFolder::make();
  ASSERT_TRUE(folder.ok());
  const std::string file = (folder->path() / "rates").string();
  std::ofstream(file) << "# epoch rate\n0 0.5\n2 0.25\n";
  EXPECT_THAT(rates(file, 4), ElementsAre(0.5, 0.5, 0.25, 0.25));
  std::ofstream(file) << "0 0.5\n0 0.25\n";
  EXPECT_THAT(Schedule::read(file, 1, 1).errors()[0].text(), HasSubstr("write EPOCH RATE, epochs ascending"));
}

TEST(Schedule, RefusesOtherWords) {
  for (const std::string text : {"cosin", "step:0,1", "cosine:1,2,3", "rewind:2,step", "rewind:9", "cosine:x"})
    EXPECT_FALSE(Schedule::read(text, 1, 5).ok()) << text;
}

}  // namespace hoist::schedule_test
