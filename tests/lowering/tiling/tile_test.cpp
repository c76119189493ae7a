#include "lowering/tiling/tile.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lowering/tiling/row_blocks.h"
#include "tests/support/gpu_profile.h"

namespace hoist::tile_test {

Profile wide() {
  Profile profile;
  profile.vector_width = 16;
  profile.vector_registers = 32;
  profile.compute_units = 2;
  return profile;
}

TEST(Tile, ColumnsThatNoVectorDividesReachBack) {
  const Tile tile = choose_tile(CpuResults{.count = 8, .rows = 196, .columns = 196}, wide());
  EXPECT_EQ(tile.width, 16);
  EXPECT_TRUE(tile.cpu().shifted);
  EXPECT_LE(tile.columns, 196);
  EXPECT_FALSE(choose_tile(CpuResults{.count = 8, .rows = 196, .columns = 192}, wide()).cpu().shifted);
}

TEST(Tile, FewRowsStaySharedOutAmongCores) {
  const Tile tile = choose_tile(CpuResults{.rows = 1, .columns = 1000}, wide());
  EXPECT_FALSE(tile.cpu().shifted);
  EXPECT_EQ(tile.width, 8) << "which divides the columns";
}

TEST(Tile, FewRowsOfOneWorkItemReachBack) {
  const Tile tile = tile_of_block(24, 30, wide());
  EXPECT_EQ(tile.width, 16);
  EXPECT_TRUE(tile.cpu().shifted);
}

TEST(Tile, PackedColumnsStickOut) {
  const Tile seven = choose_tile(CpuResults{.rows = 1000, .columns = 7, .packed = true}, wide());
  EXPECT_EQ(seven.width, 8);
  EXPECT_FALSE(seven.cpu().shifted);
  for (const int64_t columns : {20, 24, 40, 1000})
    EXPECT_EQ(choose_tile(CpuResults{.rows = 1000, .columns = columns, .packed = true}, wide()).width, 16) << columns;
}

TEST(Tile, SixteenRegistersHoldTheOperandsOfAStepAsWell) {
  Profile narrow = wide();
  narrow.vector_width = 8;
  narrow.vector_registers = 16;
  for (const int64_t rows : {12, 56, 100, 196, 1000}) {
    for (const int64_t columns : {16, 24, 64, 144, 1000}) {
      const Tile tile = choose_tile(CpuResults{.rows = rows, .columns = columns, .packed = true}, narrow);
      const int64_t vectors = tile.columns / tile.width;
      EXPECT_TRUE(vectors == 1 || tile.rows * vectors + tile.rows + vectors <= 17)
          << rows << " x " << columns << ": " << tile.rows << " x " << vectors;
    }
  }
  EXPECT_GT(choose_tile(CpuResults{.rows = 56, .columns = 64, .packed = true}, wide()).rows * 4, 16)
      << "instructions of 32 registers read an element for all lanes from memory";
}

TEST(Tile, ColumnsRunInsideWhereNothingIsGainedByKeepingThem) {
  CpuResults results{.count = 56, .rows = 56, .columns = 96, .packed = true};
  EXPECT_EQ(choose_tile(results, wide()).cpu().loop_order, 0);
  results.small_right = true;
  EXPECT_EQ(choose_tile(results, wide()).cpu().loop_order, CpuTile::columns_inside);
}

Profile narrow() {
  Profile profile = wide();
  profile.vector_width = 8;
  profile.vector_registers = 16;
  return profile;
}

TEST(Tile, RowsRunThroughLinesThatFillNoTile) {
  CpuResults results{.rows = 7, .columns = 160, .lines = 7};
  const Tile tile = choose_tile(results, narrow());
  EXPECT_EQ(tile.cpu().loop_order, CpuTile::through_lines) << "5 of 49 rows, not 5 of 7";
  results.rows = 56;
  EXPECT_NE(choose_tile(results, narrow()).cpu().loop_order, CpuTile::through_lines) << "14 times 4 is 56";
  results.rows = 7, results.lines = 1;
  EXPECT_NE(choose_tile(results, narrow()).cpu().loop_order, CpuTile::through_lines);
}

TEST(Tile, VectorsReadWhatOneGroupReads) {
  for (const int64_t group : {3, 5, 12, 16, 40}) {
    const Tile tile = choose_tile(CpuResults{.rows = 14, .columns = 8 * group, .group = group}, narrow());
    EXPECT_EQ(group % tile.columns, 0) << group;
  }
  EXPECT_EQ(choose_tile(CpuResults{.rows = 14, .columns = 96, .group = 12}, narrow()).width, 4);
}

TEST(Tile, ColumnsThatNothingPacksReachBackWhereTheyCan) {
  const Tile tile = choose_tile(CpuResults{.count = 512, .rows = 14, .columns = 14}, narrow());
  EXPECT_TRUE(tile.cpu().shifted);
  EXPECT_EQ(tile.columns, 8);
}

TEST(Tile, WindowsOfNeighboursShareWhatTheyCover) {
  CpuResults depthwise = {.count = 28, .rows = 28, .columns = 192, .small_right = true, .window = 3};
  for (const int64_t registers : {16, 32}) {
    Profile profile = wide();
    profile.vector_registers = registers;
    const Tile tile = choose_tile(depthwise, profile);
    EXPECT_EQ(tile.cpu().window, 3);
    EXPECT_EQ(tile.rows, registers == 32 ? 14 : 10);
    EXPECT_EQ(tile.columns, 16) << "as many rows as fit beside a line of weights";
    EXPECT_EQ(tile.cpu().loop_order, CpuTile::columns_inside);
  }
  depthwise.crosses_lines = true;
  EXPECT_EQ(choose_tile(depthwise, wide()).cpu().loop_order, CpuTile::planes_inside);
  depthwise.window = 0;
  EXPECT_EQ(choose_tile(depthwise, wide()).cpu().window, 0) << "where windows have gaps or cover nothing in common";
}

TEST(Tile, PlanesThatReadTheSameOnesComeOneAfterTheOther) {
  CpuResults results{.count = 144, .rows = 56, .columns = 56, .planes = true};
  EXPECT_EQ(choose_tile(results, narrow()).cpu().loop_order, CpuTile::planes_inside);
  results.planes = false;
  EXPECT_NE(choose_tile(results, narrow()).cpu().loop_order, CpuTile::planes_inside);
}

Profile gpu() { return gpu_profile(132); }

int64_t work_items(const Tile& tile) {
  return tile.rows / tile.gpu().item_rows * tile.gpu().items_across * std::max<int64_t>(1, tile.gpu().parts);
}

TEST(Tile, WorkItemsOfAGpuShareLongSumsOfFewResults) {
  const GpuResults few{.rows = 49, .columns = 512, .steps = 512, .folds = 9};
  const Tile tile = choose_tile(few, gpu());
  EXPECT_GE(tile.gpu().parts, 8);
  EXPECT_EQ(few.steps % (4 * tile.gpu().parts), 0);
  const Tile whole = with_whole_sums(tile, few, gpu());
  EXPECT_EQ(whole.gpu().parts, 0);
  EXPECT_EQ(choose_tile(GpuResults{.rows = 4096, .columns = 4096, .steps = 4096}, gpu()).gpu().parts, 0)
      << "there is work for all";
  EXPECT_EQ(choose_tile(GpuResults{.rows = 49, .columns = 512, .steps = 30}, gpu()).gpu().parts, 0)
      << "nothing divides the steps";
}

// An NVIDIA compute unit has 65,536 registers, so 256 work-items may have 255 each; with more work-items the driver
// refuses kernels that need as many.
TEST(Tile, GroupsOfAGpuMayUseAllRegisters) {
  for (const int64_t rows : {1, 20, 49, 196, 3136}) {
    const GpuResults results{.rows = rows, .columns = 256, .steps = 256, .folds = 9};
    const Tile tile = choose_tile(results, gpu());
    EXPECT_LE(work_items(tile), 256) << rows;
    EXPECT_GE(work_items(tile), 32) << rows;
    const auto again = tile_with(results, knobs_of(tile), gpu());
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(again->gpu().parts, tile.gpu().parts);
  }
}

TEST(Tile, AnEstimateOfLessWorkIsLess) {
  const GpuResults layer{.rows = 196, .columns = 256, .steps = 256, .folds = 9};
  GpuResults half = layer;
  half.columns = 128;
  EXPECT_GT(estimated_cycles(layer, gpu()), estimated_cycles(half, gpu()));
  EXPECT_GT(estimated_cycles(half, gpu()), 0);
}

TEST(Tile, StepsThatWaitTogetherDivideTheSum) {
  EXPECT_EQ(steps_together(64), 8);
  EXPECT_EQ(steps_together(12), 4);
  EXPECT_EQ(steps_together(3), 3);
  EXPECT_EQ(steps_together(27), 1);
}

}  // namespace hoist::tile_test
