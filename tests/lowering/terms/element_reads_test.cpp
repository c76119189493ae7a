// Tests the positions that elements read, against terms whose reads are known.
#include "lowering/terms/element_reads.h"

#include <gmock/gmock.h>

#include <map>

#include "ir/text/text.h"

namespace hoist::element_reads_test {

using testing::ElementsAre;

Expr term_of(const std::string& text) {
  auto parsed = parse(text);
  HOIST_CHECK(parsed.ok(), parsed.errors()[0].text());
  return *parsed;
}

TEST(ElementReads, FollowViewsAndSums) {
  const auto reads = ElementReads::of(
      term_of("%x : [6][4]f32 |> map (\\a. %w : [4][5]f32 |> transpose |> map (\\b. zip(a, b) |> map (*) |> reduce (+) "
              "0))"));
  ASSERT_NE(reads, nullptr);
  EXPECT_THAT(reads->loop_counts(), ElementsAre(4));
  ASSERT_EQ(reads->reads().size(), 2U);
  std::map<std::string, std::vector<int64_t>> positions;
  for (const ElementRead& read : reads->reads()) {
    EXPECT_THAT(read.loops, ElementsAre(0));
    positions[read.parameter] = reads->position(read, {2, 3}, {1});
  }
  EXPECT_THAT(positions["x"], ElementsAre(2, 1));
  EXPECT_THAT(positions["w"], ElementsAre(1, 3));
}

// A window begins before the array, in its padding.
TEST(ElementReads, ContinueTheArrayInItsPadding) {
  const auto reads = ElementReads::of(term_of("%x : [5]f32 |> pad 1 1 0 |> slide 3 1 |> map (reduce (+) 0)"));
  ASSERT_NE(reads, nullptr);
  ASSERT_EQ(reads->reads().size(), 1U);
  EXPECT_THAT(reads->position(reads->reads()[0], {2}, {1}), ElementsAre(2));
  EXPECT_THAT(reads->position(reads->reads()[0], {0}, {0}), ElementsAre(-1));
}

TEST(ElementReads, CrossTheEndsOfJoinedRows) {
  const auto reads = ElementReads::of(term_of("%x : [3][4]f32 |> transpose |> join"));
  ASSERT_NE(reads, nullptr);
  const ElementRead& read = reads->reads().at(0);
  EXPECT_THAT(reads->position(read, {2}, {}), ElementsAre(2, 0));
  EXPECT_THAT(reads->position(read, {3}, {}), ElementsAre(0, 1));
}

TEST(ElementReads, KnowPositionsThatDependOnData) {
  const auto reads = ElementReads::of(term_of("%at : [5]i32 |> map (\\p. index p (%x : [7]f32))"));
  ASSERT_NE(reads, nullptr);
  size_t gathered = 0;
  for (const ElementRead& read : reads->reads()) gathered += read.depends_on_data ? 1 : 0;
  EXPECT_EQ(gathered, 1U);
}

TEST(ElementReads, AreVectorsIfAdjacentInEveryArray) {
  EXPECT_TRUE(reads_vectors(term_of("zip(%x : [3][8]f32, %y : [3][8]f32) |> map (\\(a, b). map (+) (zip(a, b)))"), 4));
  EXPECT_TRUE(reads_vectors(term_of("%x : [3]f32 |> map (repeat 8)"), 4)) << "all the same one";
  EXPECT_TRUE(reads_vectors(term_of("%x : [3][10]f32 |> map (slide 3 1 >> map (reduce (+) 0))"), 4));
  EXPECT_FALSE(reads_vectors(term_of("%x : [8][3]f32 |> transpose"), 4));
  EXPECT_FALSE(reads_vectors(term_of("%x : [3][2][4]f32 |> map (transpose >> join)"), 4)) << "a shuffle";
  EXPECT_FALSE(reads_vectors(term_of("%at : [8]i32 |> map (\\p. index p (%x : [7]f32))"), 4));
}

TEST(ElementReads, FoldAlongRows) {
  EXPECT_TRUE(folds_along_rows(term_of("%x : [3][8]f32 |> map (reduce (+) 0)")));
  EXPECT_FALSE(folds_along_rows(term_of("%x : [8][3]f32 |> transpose |> map (reduce (+) 0)")));
  EXPECT_FALSE(folds_along_rows(term_of("%x : [10]f32 |> slide 3 1 |> map (reduce (+) 0)"))) << "windows overlap";
  EXPECT_FALSE(folds_along_rows(term_of("%x : [8]f32 |> map (* 2)")));
}

}  // namespace hoist::element_reads_test
