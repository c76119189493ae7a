// Tests the table of starter target descriptions: printed ones are read back, and names match devices.
#include "ir/target/starter_profiles.h"

#include <gtest/gtest.h>

#include <set>

namespace hoist::starter_profiles_test {

TEST(StarterProfiles, ReadBackAsTheyArePrinted) {
  std::set<std::string_view> names;
  for (const StarterProfile& row : starter_profiles()) {
    SCOPED_TRACE(row.name);
    EXPECT_TRUE(names.insert(row.name).second);
    EXPECT_EQ(row.profile.name, row.name);
    EXPECT_EQ(row.profile.gpu, !row.name.starts_with("cpu-"));
    const auto read = parse_profile(print(row.profile), "printed");
    ASSERT_TRUE(read.ok()) << read.errors()[0].text();
    EXPECT_EQ(print(*read), print(row.profile));
    EXPECT_EQ(find_starter_profile(row.name), &row);
  }
  EXPECT_GE(names.size(), 10u);
  EXPECT_EQ(find_starter_profile("nobody's"), nullptr);
}

}  // namespace hoist::starter_profiles_test
