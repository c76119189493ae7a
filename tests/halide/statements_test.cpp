// Tests kernels of several statements: arrays in local memory that the work-items of a group compute one after the
// other.
#include <gtest/gtest.h>

#include "tests/halide/runner.h"

namespace hoist::statements_test {

using testing::check;
using testing::parsed;

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

// Two matmuls with one work-item per element of the result.
constexpr char two_products[] = R"(
let h = %w : [24][16]f32 |> map local(0) (\row. zip(row, %x : [16]f32) |> fold (\s p. fma(p.0, p.1, s)) 0f32 |> (max 0f32))
        |> materialise local
in %v : [10][24]f32 |> map local(0) (\row. zip(row, h) |> fold (\s p. fma(p.0, p.1, s)) 0f32)
)";

TEST(Statements, TwoProductsOfAGroup) {
  for (const bool gpu : {false, true}) {
    EmitOptions options;
    options.gpu = gpu;
    auto kernel = emit(parsed(two_products), options);
    ASSERT_TRUE(kernel.ok()) << kernel.errors()[0].text();
    EXPECT_EQ(kernel->local, (std::array<uint64_t, 3>{24, 1, 1}));
    EXPECT_EQ(kernel->global, kernel->local);
    EXPECT_EQ(kernel->local_bytes, 24u * 4);
    EXPECT_EQ(count(kernel->source, "barrier(CLK_LOCAL_MEM_FENCE)"), 1u) << kernel->source;
    EXPECT_EQ(check(parsed(two_products), options), "");
  }
}

// Vectors and a register tile in each work-item, with a tail of rows; two statements read one value.
constexpr char tiles[] = R"(
let h = %w : [22][16]f32 |> pad 0 2 undefined |> split 2 |> split 4 |> map seq (\items. items |> map local(0) (\rows. rows |> map unroll (\row.
           zip(row, %x : [16]f32) |> fold (\s p. fma(p.0, p.1, s)) 0f32))) |> join |> join |> slice 0 22 |> materialise local
in let g = %v : [32][22]f32 |> split 8 |> map local(0) (\rows. rows |> map vec (\row.
           zip(row, h) |> fold (\s p. fma(p.0, p.1, s)) 0f32)) |> join |> materialise local
in zip(h, g |> slice 0 22) |> map seq (\p. p.0 * p.1)
)";

TEST(Statements, TilesAndValuesReadTwice) {
  auto kernel = emit(parsed(tiles), {});
  ASSERT_TRUE(kernel.ok()) << kernel.errors()[0].text();
  EXPECT_EQ(kernel->local[0], 4u);
  EXPECT_EQ(check(parsed(tiles)), "") << kernel->source;
}

// Arrays that are not live share memory: of three arrays, two are live at a time.
constexpr char chain[] = R"(
let a = %x : [64]f32 |> map local(0) (\v. v * 2) |> materialise local
in let b = a |> map local(0) (\v. v + 1) |> materialise local
in let c = b |> map local(0) (\v. v * v) |> materialise local
in c |> map local(0) (\v. v - 3)
)";

TEST(Statements, LocalMemoryIsUsedAgain) {
  auto kernel = emit(parsed(chain), {});
  ASSERT_TRUE(kernel.ok()) << kernel.errors()[0].text();
  EXPECT_EQ(kernel->local_bytes, 2u * 64 * 4);
  EXPECT_EQ(check(parsed(chain)), "");
}

// A vector is stored after an array of one element.
TEST(Statements, VectorsBeginAtMultiplesOfTheirLength) {
  EXPECT_EQ(check(parsed(R"(
let a = %x : [3]f32 |> split 3 |> map (fold (\s v. s + v) 0f32) |> map local(0) (\v. v) |> materialise local
in let b = %x |> map (\v. v * index 0i64 a) |> pad 0 1 0 |> split 4 |> map local(0) (map vec (\v. v)) |> join |> materialise local
in zip(b |> slice 0 3, %x) |> map local(0) (\p. p.0 + p.1 * index 0i64 a)
)")),
            "");
}

// A fold inside a materialised array is computed with the array, also outside of a loop of one iteration, which no
// index uses.
TEST(Statements, WhatAKeptArrayIsMadeOfIsComputedWhereItIs) {
  EXPECT_EQ(check(parsed(R"(%x : [1][1][4][4][3]f32
|> map2d flatten
|> map2d (\a.
    (let b =
       a
       |> split 16
       |> fold (\b c. zip(b, c) |> split 4 |> map unroll (map vec (+)) |> join) (fill 0f32 [16])
       |> split 4
       |> transpose
       |> map vec (fold unroll (+) 0f32)
       |> materialise private
     in
     fold unroll (+) 0f32 b) / 48)
|> map (split 1)
|> map seq (flatten >> map group(0) (\a. a) >> split 1)
)")),
            "");
}

// An array in private memory is computed once for the loops that it does not depend on, wherever it is used.
TEST(Statements, MaterialisedArraysAreSharedByTheLoopsThatReadThem) {
  constexpr char tiles[] = R"(
%x : [10]f32 |> slide 4 2
|> map (\t. t |> map unroll (\v. v * v) |> materialise private |> slide 3 1 |> map (\w. index 0i64 w + index 2i64 w))
|> join |> split 2 |> map group(0) (\t. t |> map unroll (\s. s)) |> join
)";
  auto kernel = emit(parsed(tiles), {});
  ASSERT_TRUE(kernel.ok()) << kernel.errors()[0].text();
  EXPECT_EQ(count(kernel->schedule, "kept_1 in private memory, computed inside [group 0 4] of result: unroll 4\n"), 1U)
      << kernel->schedule;
  EXPECT_EQ(check(parsed(tiles)), "") << kernel->source;
}

// The same for an array that a vector sum reads: neither the steps of the sum nor the lanes of the vector get a copy.
TEST(Statements, SumsOfVectorsShareAKeptArray) {
  constexpr char sums[] = R"(
%x : [3][9][30]f32 |> map (\plane. plane |> map (pad 1 1 0 >> split 2 >> transpose) |> pad 1 1 (fill 0 [2][16])
  |> map seq (map unroll (split 8 >> map unroll (map vec (\v. v)) >> join)) |> materialise private
  |> map (transpose >> join) |> map (slide 3 2) |> slide 3 2 |> map transpose
  |> map2d (\w. w |> fold (\s row. row |> fold (\t v. t + v) s) 0f32))
|> map group(0) (map seq (tile 8 >> map seq (map vec (\v. v)) >> untile 15))
)";
  auto kernel = emit(parsed(sums), {});
  ASSERT_TRUE(kernel.ok()) << kernel.errors()[0].text();
  const std::string kept =
      "in private memory, computed inside [group 0 3] of result: seq 11 > unroll 2 > unroll 2 > vec 8";
  EXPECT_EQ(count(kernel->schedule, kept), 1U) << kernel->schedule;
  EXPECT_EQ(check(parsed(sums)), "") << kernel->source;
  for (const std::string& target : testing::native_targets_here()) {
    EmitOptions native;
    native.native = {target};
    EXPECT_EQ(check(parsed(sums), native), "") << target;
  }
}

// Halide's printer identifies values by their text, which a constant in vectors of two lengths shares: rows of 16 that
// are read in vectors of four.
TEST(Statements, OneNumberStandsInVectorsOfSeveralLengths) {
  constexpr char ranks[] = R"(
%x : [1][2][2][4]f32 |> transpose (0 3 1 2) |> map2d (split 2) |> transpose (0 3 4 1 2)
|> map join |> map join |> map join
|> map (\row. iota 16 i32 |> map (\b. iota 16 i32 |> fold (\n d. n + cast i32 (index b row < index d row
  | is_nan(index d row) & index b row == index b row
  | !(index d row < index b row | is_nan(index b row) & index d row == index d row) & d < b)) 0i32))
|> split 1
|> map (map (split 16) >> transpose)
|> map group(0) (map group(2) (map unroll (split 16 >> map unroll (map vec (\v. v)) >> join)))
|> map (transpose >> map join)
|> join
)";
  auto kernel = emit(parsed(ranks), {});
  ASSERT_TRUE(kernel.ok()) << kernel.errors()[0].text();
  EXPECT_EQ(check(parsed(ranks)), "") << kernel->source;
}

// Lanes of a transposed row are computed one by one, with positions of another type: the conditions then contain
// shuffles of scalars.
TEST(Statements, VectorsOfSelectedPlacesAcrossRows) {
  const Expr reversed = testing::parsed(
      "zip(transpose (%x : [16][4]u32), %y : [4]i64) |> map (\\(a, b). iota 16 i64 |> map (\\c. "
      "index (clip 0 15 (select(v < 0, v + 16, v))) a where v = select(c < b, b - 1 - c, c))) "
      "|> transpose |> join |> split 8 |> map seq (map vec (\\a. a)) |> join");
  EXPECT_EQ(testing::check(reversed, {}, 0, 0, 16), "");
}

}  // namespace hoist::statements_test
