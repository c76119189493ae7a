#include <gtest/gtest.h>

#include "ir/text/text.h"
#include "tests/golden.h"

namespace hoist::print_test {

struct Case {
  std::string name, input;
  PrintOptions options;
};

const std::string gemm = R"(%A : [64][256]f32 |> split 8 |> map group(1) (\rows.
  %B : [4][256][64]f32 |> map group(0) (\panel.
    zip(transpose rows, panel)
    |> fold (\acc (a, b). zip(acc, a) |> map unroll (\(row, x).
              zip(split 16 row, split 16 b) |> map unroll (\(r, c). zip(r, c) |> map vec (\(s, y). fma x y s)) |> join))
            (fill 0 [8][64])
    |> map unroll (split 16 >> map unroll (map vec id) >> join)))
|> map (transpose >> map join) |> join)";

const std::string convolution =
    R"(let windows = %x : [C][H][W]f32 |> map (pad2d 1 1 0 >> slide2d 3 1) |> transpose (1 2 0 3 4)
in zip(%weights : [O][C][3][3]f32, %bias : [O]f32) |> map (\(filter, b).
     windows |> map2d (\w. zip(flatten w, flatten filter) |> map (*) |> reduce (+) 0 |> (+ b) |> relu)))";

class Golden : public testing::TestWithParam<Case> {};

TEST_P(Golden, prints) {
  const Case& c = GetParam();
  auto e = parse(c.input);
  ASSERT_TRUE(e.ok()) << e.errors()[0].text();
  std::string text = print(*e, c.options);
  expect_golden("print_" + c.name + ".lift", c.input, text);
  auto again = parse(text);
  ASSERT_TRUE(again.ok()) << again.errors()[0].text() << "\n" << text;
  EXPECT_EQ(*again, *e) << text;
}

INSTANTIATE_TEST_SUITE_P(
    print, Golden,
    testing::Values(
        Case{"gemm", gemm, {}}, Case{"gemm_types", gemm, {100, true, true}},
        Case{"gemm_narrow", gemm, {50, false, true}}, Case{"convolution", convolution, {}},
        Case{"convolution_inlined", convolution, {100, false, false}},
        Case{"convolution_types", convolution, {100, true, true}},
        Case{
            "scalars",
            R"((-(%a : f32) * 2 + %b : f32) / (%a - 1 - (%b - -1)) + select(%a < %b & !(%c : bool), -0.0, 1e-30) + max(%a, f32#7f800000))",
            {}},
        Case{"sharing",
             R"(zip(v, v) |> map (\(p, q). w * w + p where w = exp(sin(p * q + 1) - cos(p * q - 1)))
where v = %x : [n]f32 |> map (\e. sqrt(e * e + 1) / (e + 2)) |> slide 3 2 dilation 2 |> map (reduce (+) 0))",
             {}},
        Case{
            "shared_function",
            R"(zip(map f %x : [4]f32, map (\t. f t) (%y : [4]f32)) where f = \a. exp(a * a + 2 * a + 1 - sin(a) + cos(a)))",
            {}},
        Case{
            "let",
            R"(let (s, t) = (%x : [8]f32 |> materialise local, %y : f32) in let u = s |> fold seq (\a b. fma b t a) 0 in s |> map (+ u))",
            {}},
        Case{
            "views",
            R"(%x : [12]f32 |> pad 1 2 clamp |> pad 1 0 mirror |> pad 0 1 wrap |> pad 3 3 undefined |> pad 1 1 -1.5 |> slice 1 11 step 2
  |> tile 4 |> untile 11 |> slice 10 11 step -1 |> repeat 2 |> transpose |> repeat (2*n - 1) |> join)",
            {}},
        Case{"constants",
             R"((constant [2][2]i4 {-8, 7, 0, 1}, constant [1]bool {true}, constant [3]f16 {0.1, #7c00, -0},
  constant [17]u8 #"AAECAwQFBgcICQoLDA0ODxA", %"a/b:0" : (f32, [k]i64), 3i64, true, fill 0f32 [2][3]))",
             {}}),
    [](const auto& info) { return info.param.name; });

// Names of variables do not depend on other terms in the process.
TEST(Print, is_independent_of_history) {
  std::string text = print(*parse(convolution));
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(parse("exp(%q : f32) + " + std::to_string(i)).ok());
  EXPECT_EQ(print(*parse(gemm)), print(*parse(print(*parse(gemm)))));
  EXPECT_EQ(print(*parse(convolution)), text);
}

TEST(Print, never_blows_up) {
  std::string closed = "v0 where v0 = exp(v1 * v1 + sin(v1) * cos(v1))";
  for (int i = 1; i < 60; ++i) {
    closed += "; v" + std::to_string(i) + " = exp(v" + std::to_string(i + 1) + " * v" + std::to_string(i + 1) + " + 1)";
  }
  closed += "; v60 = %x : f32";
  auto e = parse(closed);
  ASSERT_TRUE(e.ok()) << e.errors()[0].text();
  EXPECT_LT(print(*e).size(), 10000u);
  EXPECT_EQ(*parse(print(*e)), *e);
  Expr inside = map(
      [](Expr a) {
        for (int i = 0; i < 60; ++i) a = call(Function::exp, {operator_add(operator_multiply(a, a), a)});
        return a;
      },
      parameter("x", array_type(4, scalar_type(Scalar::f32))));
  EXPECT_LT(print(inside).size(), 20000u);
  EXPECT_EQ(*parse(print(inside)), inside);
}

}  // namespace hoist::print_test
