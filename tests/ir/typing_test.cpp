// Tests the type checker: the type of each pattern, and its errors.
#include <gtest/gtest.h>

#include "ir/language/expression.h"
#include "ir/text/parse/parse_term.h"

namespace hoist::typing_test {

const std::string given =
    "x: [n]f32, y: [m]f32, a: [12]f32, b: [3][4]f32, c: [2][3][4]i8, t: (f32, [4]i8), s: f32, i: i32, o: bool, w: "
    "[k*m]f32, "
    "f: f32 -> i8, g: [4]f32 -> f32, p: [5]i64";

TEST(Typing, every_pattern_gives_its_type) {
  auto declarations = parse_declarations(given);
  ASSERT_TRUE(declarations.ok()) << declarations.errors()[0].text();
  const std::vector<std::pair<std::string, std::string>> table = {{"map f x", "[n]i8"},
                                                                  {"map g b", "[3]f32"},
                                                                  {"reduce (+) 0 x", "f32"},
                                                                  {"fold (\\s v. s + cast i64 v) 0i64 x", "i64"},
                                                                  {"scan (\\s v. s + cast i64 v) 0i64 x", "[n]i64"},
                                                                  {"iterate 3 exp s", "f32"},
                                                                  {"iterate 3 (map exp) x", "[n]f32"},
                                                                  {"zip(x, map f x, x)", "[n](f32, i8, f32)"},
                                                                  {"split 4 a", "[3][4]f32"},
                                                                  {"split m w", "[k][m]f32"},
                                                                  {"split n x", "[1][n]f32"},
                                                                  {"join b", "[12]f32"},
                                                                  {"transpose b", "[4][3]f32"},
                                                                  {"transpose (2 0 1) c", "[4][2][3]i8"},
                                                                  {"slide 3 1 a", "[10][3]f32"},
                                                                  {"slide 3 2 a", "[5][3]f32"},
                                                                  {"slide 3 1 dilation 2 a", "[8][3]f32"},
                                                                  {"slide 3 1 x", "[n - 2][3]f32"},
                                                                  {"pad 1 2 clamp x", "[n + 3]f32"},
                                                                  {"pad 1 2 0 x", "[n + 3]f32"},
                                                                  {"pad 1 1 (fill 0 [4]) b", "[5][4]f32"},
                                                                  {"slice 2 3 a", "[3]f32"},
                                                                  {"slice 11 6 step -2 a", "[6]f32"},
                                                                  {"tile 5 a", "[3][5]f32"},
                                                                  {"untile 12 (tile 5 a)", "[12]f32"},
                                                                  {"concat(x, y, a)", "[m + n + 12]f32"},
                                                                  {"repeat 3 t", "[3](f32, [4]i8)"},
                                                                  {"index i a", "f32"},
                                                                  {"index i b", "[4]f32"},
                                                                  {"scatter(p, map (\\q. s) p, x)", "[n]f32"},
                                                                  {"materialise private x", "[n]f32"},
                                                                  {"iota 4 i32", "[4]i32"},
                                                                  {"select(o, x, x)", "[n]f32"},
                                                                  {"select(s < 1, 1, s)", "f32"},
                                                                  {"cast f16 i", "f16"},
                                                                  {"reinterpret u32 1f32", "u32"},
                                                                  {"let v = x in (v, v)", "([n]f32, [n]f32)"},
                                                                  {"t.1", "[4]i8"},
                                                                  {"id x", "[n]f32"},
                                                                  {"s == s", "bool"},
                                                                  {"is_nan s", "bool"},
                                                                  {"o & !o", "bool"},
                                                                  {"fma s s s", "f32"},
                                                                  {"constant [2][1]u8 {1, 2}", "[2][1]u8"},
                                                                  {"3i64", "i64"}};
  for (const auto& [term, type] : table) {
    auto e = parse_term(term, *declarations);
    ASSERT_TRUE(e.ok()) << term << ": " << e.errors()[0].text();
    EXPECT_EQ(text((*e)->type), type) << term;
  }
}

TEST(Typing, errors_name_what_disagrees) {
  auto declarations = parse_declarations(given);
  ASSERT_TRUE(declarations.ok());
  const std::vector<std::pair<std::string, std::string>> table = {
      {"reduce (\\u v. u < v) 0 x",
       "reduce: the function has argument f32 and result bool, but the accumulator is f32"},
      {"reduce (\\u v. u + v) 0i8 x", "add: arguments have different types i8 and f32 (cast one of them)"},
      {"fold (\\u v. v) 0i8 x", "fold: the function has argument i8 and result f32, but the accumulator is i8"},
      {"iterate 2 f s", "iterate: the function has to keep the type f32"},
      {"zip(x, y)", "zip: sizes differ: n = m fails"},
      {"zip(x, s)", "zip: expected arrays, found f32"},
      {"split 5 a", "split: 5 does not divide 12 (pad to a multiple first, or use tile)"},
      {"split 2 x", "split: 2 does not divide n (pad to a multiple first, or use tile)"},
      {"join a", "join: expected an array of arrays, found [12]f32"},
      {"transpose a", "transpose: expected an array of 2 dimensions, found [12]f32"},
      {"transpose (0 0) b", "transpose: not a permutation of its dimensions"},
      {"slide 13 1 a", "slide: a window of 13 elements does not fit into 12"},
      {"slide 3 0 a", "slide: size, step and dilation have to be at least 1"},
      {"pad 1 1 0i8 a", "pad: the value has type i8, the elements f32"},
      {"pad 12 1 mirror a", "pad: mirror amounts 12 and 1 need more than 12 elements"},
      {"pad (0 - 1) 1 clamp a", "pad: negative amounts -1 and 1 (use slice)"},
      {"slice 10 4 a", "slice: element 13 lies outside 0..11"},
      {"slice 2 4 step -1 a", "slice: element -1 lies outside 0..11"},
      {"slice 2 4 step 0 a", "slice: the step must not be 0"},
      {"tile 13 a", "tile: rows of 13 from 12 elements"},
      {"untile 16 b", "untile: 3 rows of 4 do not tile 16 elements"},
      {"concat(a, b)", "concat: elements differ: f32 and [4]f32"},
      {"index s a", "index: expected an integer position, found f32"},
      {"index i s", "index: expected an array, found f32"},
      {"scatter(p, x, a)", "scatter: sizes differ: 5 = n fails"},
      {"select(s, x, x)", "select: expected a bool condition, found f32"},
      {"select(o, x, y)", "select: branches differ: [n]f32 and [m]f32"},
      {"cast i8 x", "cast: expected a scalar, found [n]f32"},
      {"reinterpret i8 (1f32)",
       "reinterpret: f32 does not have the bits of i8 (both need the same width of 8 bits or more)"},
      {"s.0", "get: expected a tuple, found f32"},
      {"t.2", "get: no such component of (f32, [4]i8)"},
      {"x + x", "add: expected scalars, found [n]f32"},
      {"exp i", "exp: not defined on i32"},
      {"s & s", "and: not defined on f32"},
      {"-o", "negate: not defined on bool"},
      {"max s", "max: expected 2 arguments, found 1"},
      {"repeat (0 - 2) s", "repeat: negative size -2"}};
  for (const auto& [term, message] : table) {
    auto e = parse_term(term, *declarations);
    ASSERT_FALSE(e.ok()) << term;
    std::string found = e.errors()[0].text();
    EXPECT_EQ(found.substr(found.find(": ") + 2), message) << term;
  }
}

// make() refuses terms that have no text too.
TEST(Typing, make_refuses_what_has_no_text) {
  Type f32 = scalar_type(Scalar::f32);
  Expr x = parameter("x", array_type(4, f32)), s = parameter("s", f32);
  Spec spec;
  spec.pattern = Pattern::map;
  spec.children = {s, x};
  EXPECT_EQ(make(spec).errors()[0].text(), "map: argument 1 has to be a function of 1 parameter");
  spec.pattern = Pattern::tuple;
  spec.children = {s, function(f32, [](Expr v) { return v; })};
  EXPECT_EQ(make(spec).errors()[0].text(), "tuple: argument 2 must not be a function");
  spec = {};
  spec.pattern = Pattern::split;
  spec.children = {x};
  EXPECT_EQ(make(spec).errors()[0].text(), "split: expected 1 sizes, found 0");
  spec.pattern = Pattern::map;
  spec.children = {function(scalar_type(Scalar::i8), [](Expr v) { return v; }), x};
  EXPECT_EQ(make(spec).errors()[0].text(), "map: the function takes i8, the elements are f32");
  EXPECT_TRUE(make(spec).errors()[0].where.empty());
}

}  // namespace hoist::typing_test
