// Tests the proof that a term computes samples separately, on terms that do and on terms that mix them.
#include "lowering/terms/batch_axis.h"

#include <gtest/gtest.h>

#include "ir/text/text.h"

namespace hoist::batch_axis_test {

Expr term_of(const std::string& text) {
  auto parsed = parse(text);
  HOIST_CHECK(parsed.ok(), parsed.errors()[0].text());
  return *parsed;
}

// The term over four samples and over two, for arrays %x with samples along the first dimension.
bool is_separate(const std::string& whole, const std::string& part, BatchAxis result = {0, 1},
                 BatchAxis operand = {0, 1}) {
  return computes_samples(term_of(whole), term_of(part), {{"x", operand}}, result, 4, 2);
}

bool is_separate(const std::string& text) {  // with an n in place of the number of samples
  const auto with = [&](const char* samples) {
    std::string out = text;
    for (size_t at = out.find('@'); at != std::string::npos; at = out.find('@')) out.replace(at, 1, samples);
    return out;
  };
  return is_separate(with("4"), with("2"));
}

TEST(BatchAxis, SumsAndWindowsInsideASampleAreSeparate) {
  EXPECT_TRUE(is_separate("%x : [@][8]f32 |> map (reduce (+) 0)"));
  EXPECT_TRUE(is_separate("%x : [@][8]f32 |> map (\\a. a |> pad 1 1 0 |> slide 3 1 |> map (reduce (+) 0))"));
  EXPECT_TRUE(is_separate("%x : [@][8]f32 |> map (\\a. zip(a, %w : [8]f32) |> map (*))"));
  EXPECT_TRUE(is_separate("%x : [@][8]f32 |> map (\\a. iota 8 i64 |> map (\\i. index i a))"));
}

TEST(BatchAxis, SamplesMayBePartOfADimension) {
  // Four windows a sample, which a reshape joins with the batch.
  EXPECT_TRUE(
      is_separate("%x : [4][8]f32 |> map (split 2) |> join", "%x : [2][8]f32 |> map (split 2) |> join", {0, 4}));
  EXPECT_TRUE(is_separate("%x : [16][2]f32 |> split 4", "%x : [8][2]f32 |> split 4", {0, 1}, {0, 4}));
  EXPECT_TRUE(is_separate("%x : [4][8]f32 |> transpose", "%x : [2][8]f32 |> transpose", {1, 1}));
}

TEST(BatchAxis, WhateverMixesSamplesIsNot) {
  EXPECT_FALSE(is_separate("%x : [@][8]f32 |> transpose |> map (reduce (+) 0) |> repeat @"));
  EXPECT_FALSE(is_separate("%x : [@][8]f32 |> reverse"));
  EXPECT_FALSE(is_separate("%x : [@][8]f32 |> pad 1 0 (fill 0 [8]) |> slice 0 @"));
  EXPECT_FALSE(is_separate("%x : [@][8]f32 |> pad 0 1 clamp |> slice 1 @"));
  // The number of the sample itself.
  EXPECT_FALSE(is_separate("zip(%x : [@]f32, iota @ f32) |> map (+)"));
  // Sample and row in the other order.
  EXPECT_FALSE(
      is_separate("%x : [4][8]f32 |> transpose |> join |> split 8 ", "%x : [2][8]f32 |> transpose |> join |> split 8"));
  // A position that data determine.
  EXPECT_FALSE(is_separate("%p : [@]i64 |> map (\\i. index (clip 0 1 i) %x : [@][8]f32)"));
}

TEST(BatchAxis, TheSameOperationsAreRequired) {
  EXPECT_FALSE(is_separate("%x : [4][8]f32 |> map2d (+ 1)", "%x : [2][8]f32 |> map2d (+ 2)"));
  EXPECT_FALSE(is_separate("%x : [4][8]f32 |> map (reduce (+) 0)", "%x : [2][8]f32 |> map (reduce max 0)"));
}

}  // namespace hoist::batch_axis_test
