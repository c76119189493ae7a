#include "ir/text/parse/near_miss.h"

#include <gtest/gtest.h>

namespace hoist::near_miss_test {

TEST(NearMiss, FindsTheClosestWord) {
  const std::vector<std::string> words = {"batch", "height", "width", "sequence_length"};
  EXPECT_EQ(near_miss("bacth", words), "batch");
  EXPECT_EQ(near_miss("Width", words), "width");
  EXPECT_EQ(near_miss("sequence_lenght", words), "sequence_length");
  EXPECT_EQ(near_miss("heigth", words), "height");
  EXPECT_EQ(near_miss("BATCH", words), "");  // five changes of case are two and a half edits
}

TEST(NearMiss, SaysNothingWhereNothingIsNear) {
  EXPECT_EQ(near_miss("channels", {"batch", "width"}), "");
  EXPECT_EQ(near_miss("", {"batch"}), "");
  EXPECT_EQ(near_miss("batch", {}), "");
  EXPECT_EQ(near_miss("x", {"y"}), "");
  EXPECT_EQ(near_miss(std::string(100000, 'a'), {std::string(100000, 'a')}), "");
}

TEST(NearMiss, EarlierOfEqualsAndExactFirst) {
  EXPECT_EQ(near_miss("conv1", {"conv2", "conv3"}), "conv2");
  EXPECT_EQ(near_miss("conv3", {"conv2", "conv3"}), "conv3");
}

}  // namespace hoist::near_miss_test
