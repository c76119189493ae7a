#include "lowering/tile.h"

#include <gtest/gtest.h>

namespace hoist {
namespace {

Profile wide() {
  Profile profile;
  profile.vector_width = 16;
  profile.vector_registers = 32;
  profile.compute_units = 2;
  return profile;
}

TEST(Tile, ColumnsThatNoVectorDividesReachBack) {
  const Tile tile = choose_tile({.count = 8, .rows = 196, .columns = 196}, wide());
  EXPECT_EQ(tile.width, 16);
  EXPECT_TRUE(tile.shifted);
  EXPECT_LE(tile.columns, 196);
  EXPECT_FALSE(choose_tile({.count = 8, .rows = 196, .columns = 192}, wide()).shifted);
}

TEST(Tile, FewRowsStaySharedOutAmongCores) {
  const Tile tile = choose_tile({.rows = 1, .columns = 1000}, wide());
  EXPECT_FALSE(tile.shifted);
  EXPECT_EQ(tile.width, 8) << "which divides the columns";
}

TEST(Tile, PackedColumnsStickOut) {
  const Tile seven = choose_tile({.rows = 1000, .columns = 7, .packed = true}, wide());
  EXPECT_EQ(seven.width, 8);
  EXPECT_FALSE(seven.shifted);
  EXPECT_EQ(choose_tile({.rows = 1000, .columns = 24, .packed = true}, wide()).width, 8);
  EXPECT_EQ(choose_tile({.rows = 1000, .columns = 20, .packed = true}, wide()).width, 16);
}

}  // namespace
}  // namespace hoist
