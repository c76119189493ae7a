// Tests which positions are proved to be within bounds.
#include "ir/properties/index_ranges.h"

#include <gtest/gtest.h>

#include "ir/evaluate/evaluate.h"
#include "ir/text/text.h"

namespace hoist::index_ranges_test {

size_t unproved(const std::string& text, const std::map<std::string, IntegerRange>& known = {}) {
  auto term = parse(text);
  HOIST_CHECK(term.ok(), term.errors()[0].text());
  return unproved_positions(*term, known).size();
}

TEST(IndexRanges, PositionsThatAreClampedAreInside) {
  EXPECT_EQ(unproved("index (max(0i64, min(9i64, %i : i64))) (%x : [10]f32)"), 0U);
  EXPECT_EQ(unproved("index (max(0i64, min(10i64, %i : i64))) (%x : [10]f32)"), 1U);
  EXPECT_EQ(unproved("index (max(-1i64, min(9i64, %i : i64))) (%x : [10]f32)"), 1U);
  EXPECT_EQ(unproved("index (%i : i64) (%x : [10]f32)"), 1U);
  EXPECT_EQ(unproved("index ((%i : i64) % 10) (%x : [10]f32)"), 0U);
  EXPECT_EQ(unproved("index (cast i64 (%f : f32)) (%x : [10]f32)"), 1U);
}

TEST(IndexRanges, TypesAndTablesBoundNumbers) {
  EXPECT_EQ(unproved("map (\\i. index (cast i32 i) (%t : [256]u8)) (%x : [8]u8)"), 0U);
  EXPECT_EQ(unproved("map (\\i. index (cast i32 i + 128) (%t : [256]u8)) (%x : [8]i8)"), 0U);
  EXPECT_EQ(unproved("map (\\i. index (cast i32 i) (%t : [256]u8)) (%x : [8]i8)"), 1U);
  EXPECT_EQ(unproved("map (\\i. index (cast i32 i) (%t : [255]u8)) (%x : [8]u8)"), 1U);
  EXPECT_EQ(unproved("map (\\i. index i (%t : [6]f32)) (%x : [8]i32)", {{"x", {0, 5}}}), 0U);
  EXPECT_EQ(unproved("map (\\i. index i (%t : [6]f32)) (%x : [8]i32)", {{"x", {0, 6}}}), 1U);
  EXPECT_EQ(unproved("iota 6 i32 |> map (\\i. index i (%t : [6]f32))"), 0U);
  EXPECT_EQ(unproved("iota 6 i32 |> map (\\i. index (i * 2 - 5) (%t : [6]f32))"), 1U);
  EXPECT_EQ(unproved("constant [2]i32 {3, 5} |> map (\\i. index i (%t : [6]f32))"), 0U);
  // An i8 cannot hold 200, so the sum may wrap around.
  EXPECT_EQ(unproved("map (\\i. index (cast i32 (i + 100)) (%t : [200]f32)) (%x : [8]i8)", {{"x", {0, 90}}}), 1U);
  EXPECT_EQ(unproved("zip(iota 4 i32, %x : [4]f32) |> map (\\p. index p.0 (%t : [4]f32) + p.1)"), 0U);
  EXPECT_EQ(unproved("let i = min(3i32, max(0i32, %i : i32)) in index i (%t : [4]f32)"), 0U);
  // The accumulator of a fold may have any value.
  EXPECT_EQ(unproved("fold seq (\\s i. s + index s (%t : [4]i32)) 0i32 (%x : [3]i32)"), 1U);
  EXPECT_EQ(unproved("pad 1 1 9i32 (iota 3 i32) |> map (\\i. index i (%t : [10]f32))"), 0U);
  EXPECT_EQ(unproved("pad 1 1 undefined (iota 3 i32) |> map (\\i. index i (%t : [3]f32))"), 1U);
  EXPECT_EQ(unproved("select(%b : bool, 1i32, 7i32) |> (\\i. index i (%t : [7]f32))"), 1U);
}

// NaN may convert to any integer.
TEST(IndexRanges, FloatsProveNoPosition) {
  EXPECT_EQ(unproved("index (cast i64 (max(0f32, min(5f32, %f : f32)))) (%x : [10]f32)"), 1U);
}

NumberRange range_in(const std::string& text, const NumberRange& known = {}) {
  auto term = parse(text);
  HOIST_CHECK(term.ok(), term.errors()[0].text());
  return range_of_elements(*term, [&](Expr) { return known; });
}

TEST(IndexRanges, ElementsLieInRanges) {
  const auto expect = [](const NumberRange& found, double low, double high) {
    EXPECT_LE(found.low, low);
    EXPECT_GE(found.high, high);
    EXPECT_NEAR(found.low, low, 1e-3);
    EXPECT_NEAR(found.high, high, 1e-3);
  };
  const std::string clipped = "(max(0f32, min(64f32, %x : f32)))";
  expect(range_in(clipped), 0, 64);
  expect(range_in(clipped + " * 0.5 - " + clipped), -64, 32);
  expect(range_in("cast i64 (ceil(" + clipped + " / 10))"), 0, 7);
  expect(range_in("%x : [4]f32 |> map (\\e. abs(e) + 1)", {-3, 2}), 1, 4);
  expect(range_in("%x : [4]f32 |> reduce max (-100f32)", {-3, 2}), -3, 2);
  expect(range_in("%x : [4]i64 |> reduce min 100i64", {-3, 2}), -3, 2);
  expect(range_in("concat(%x : [2]i32, constant [1]i32 {9})", {-3, 2}), -3, 9);
  EXPECT_EQ(range_in("%x : [4]f32 |> reduce (+) 0f32", {-3, 2}).high, std::numeric_limits<double>::infinity());
}

// For every proved term the interpreter agrees: no random position is out of bounds.
TEST(IndexRanges, ProvedTermsHaveValues) {
  for (const char* text : {"map (\\i. index (cast i32 i + 128) (%t : [256]u8)) (%x : [64]i8)",
                           "map (\\i. index (max(0i32, min(255i32, cast i32 i * 3 - 7))) (%t : [256]u8)) (%x : [64]i8)",
                           "map (\\i. index ((cast i32 i * 77) % 256) (%t : [256]u8)) (%x : [64]i8)"}) {
    auto term = parse(text);
    ASSERT_TRUE(term.ok()) << term.errors()[0].text();
    ASSERT_TRUE(unproved_positions(*term).empty()) << text;
    Tensor table(Scalar::u8, {256}), x(Scalar::i8, {64});
    for (int64_t i = 0; i < x.size(); ++i) x.set_integer(i, i * 4 - 128);
    EXPECT_TRUE(interpret(*term, {{"t", table}, {"x", x}}).ok()) << text;
  }
}

}  // namespace hoist::index_ranges_test
