// Tests which elements share an array that a term keeps in private memory.
#include "lowering/tiling/materialised_tiles.h"

#include <gmock/gmock.h>

#include "ir/text/text.h"

namespace hoist::materialised_tiles_test {

using testing::ElementsAre;
using testing::Optional;

// Pairs of results share f of four elements: [8] or [3][8] or [8][3] elements each way.
constexpr char kept[] =
    "(\\t. t |> map unroll abs |> materialise private |> slide 3 1 |> map (\\w. index 0i64 w + index 2i64 w))";

std::optional<std::vector<int64_t>> tile_of(const std::string& text) {
  auto term = parse(text);
  EXPECT_TRUE(term.ok()) << text << ": " << term.errors()[0].text();
  return term.ok() ? materialised_tile(*term) : std::nullopt;
}

TEST(MaterialisedTiles, NeighboursOfATileShare) {
  const std::string tiles = std::string(" |> slide 4 2 |> map ") + kept;
  EXPECT_THAT(tile_of("%x : [10]f32" + tiles + " |> join"), Optional(ElementsAre(2)));
  EXPECT_THAT(tile_of("%x : [10]f32" + tiles + " |> join |> slice 0 7"), Optional(ElementsAre(2)));
  EXPECT_THAT(tile_of("%x : [10]f32" + tiles), Optional(ElementsAre(1, 2)));
  EXPECT_THAT(tile_of("%x : [10]f32" + tiles + " |> transpose"), Optional(ElementsAre(2, 1)));
  EXPECT_THAT(tile_of("%x : [3][10]f32 |> map (\\row. row" + tiles + " |> join) |> transpose"),
              Optional(ElementsAre(2, 1)));
  EXPECT_THAT(tile_of("%x : [3][10]f32 |> map (\\row. row" + tiles + " |> join) |> join"), Optional(ElementsAre(2)));
  // With an elementwise operation on each result, and another array.
  EXPECT_THAT(tile_of("zip(%x : [10]f32" + tiles + " |> join, %y : [8]f32) |> map (\\p. max p.0 p.1)"),
              Optional(ElementsAre(2)));
}

TEST(MaterialisedTiles, SumsOfWhatATileKeeps) {
  const std::string sums =
      "(\\t. t |> map unroll abs |> materialise private |> slide 3 1 |> map (\\w. w |> map (* 2) |> reduce (+) 0))";
  EXPECT_THAT(tile_of("%x : [16]f32 |> slide 8 4 |> map " + sums + " |> join"), Optional(ElementsAre(6)));
  EXPECT_THAT(tile_of("%x : [2][5][8]f32 |> map (map " + sums + ")"), Optional(ElementsAre(1, 1, 6)));
  // Each array holds a single element, so its position does not matter.
  EXPECT_THAT(tile_of("%x : [5][8]f32 |> map " + sums + " |> split 1 |> map (transpose >> map (reduce (+) 0))"),
              Optional(ElementsAre(1, 6)));
}

TEST(MaterialisedTiles, OthersHaveNone) {
  const std::string tiles = std::string(" |> slide 4 2 |> map ") + kept;
  EXPECT_EQ(tile_of("%x : [10]f32 |> map abs"), std::nullopt);
  EXPECT_EQ(tile_of("%x : [10]f32" + tiles + " |> join |> slice 1 7"), std::nullopt) << "tiles are cut in two";
  EXPECT_EQ(tile_of("%x : [10]f32" + tiles + " |> join |> slide 3 1"), std::nullopt) << "windows of two tiles";
  EXPECT_EQ(tile_of("%x : [10]f32" + tiles + " |> join |> split 4"), std::nullopt) << "tiles of two dimensions";
  EXPECT_EQ(tile_of("%x : [10]f32" + tiles + " |> map (reduce (+) 0) |> slice 1 2"), std::nullopt) << "not the first";
  EXPECT_EQ(tile_of("%x : [3][10]f32 |> map (\\row. row" + tiles + " |> join) |> transpose |> map (reduce (+) 0)"),
            std::nullopt)
      << "each step of a fold keeps another one";
  EXPECT_EQ(tile_of("%x : [12]f32" + tiles + " |> join |> split 5 |> transpose |> join"), std::nullopt)
      << "a dimension of two, neither of which is whole";
  EXPECT_EQ(tile_of("zip(%x : [10]f32" + tiles + " |> join, %y : [10]f32 |> slide 4 2 |> transpose |> map " +
                    "(\\r. r |> map abs |> materialise private) |> join |> slice 0 8) |> map (\\p. max p.0 p.1)"),
            std::nullopt)
      << "two that are shared differently";
}

}  // namespace hoist::materialised_tiles_test
