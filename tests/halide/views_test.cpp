// Compares views and modes of kernels with the interpreter.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/halide/runner.h"
#include "tests/halide/small_terms.h"

namespace hoist::views_test {

using testing::array;
using testing::check;
using testing::plus;
using testing::real;
using testing::store1;
using testing::store2;
using testing::twice;
using testing::x;
using testing::y;

TEST(Views, ScalarResult) {
  EXPECT_EQ(check(fold(plus, real(0), x({37}))), "");
  EXPECT_EQ(check(plus(parameter("a", scalar_type(Scalar::f32)), real(2))), "");
}
TEST(Views, WithoutModes) {
  EXPECT_EQ(check(map([](Expr v) { return twice(v); }, x({7}))), "");
}
TEST(Views, Modes) {
  for (Mode mode : {Mode::view, Mode::seq, Mode::unroll, Mode::global, Mode::group})
    EXPECT_EQ(check(map(twice, x({11}), mode)), "");
  for (int64_t n : {2, 4, 8, 16}) EXPECT_EQ(check(map(twice, x({n}), Mode::vec)), "");
  EXPECT_EQ(check(map([](Expr r) { return map(twice, r, Mode::local); }, x({3, 8}), Mode::group)), "");
  EXPECT_EQ(
      check(map([](Expr r) { return map([](Expr s) { return map(twice, s, Mode::local, 0); }, r, Mode::local, 1); },
                x({3, 4, 8}), Mode::group)),
      "");
  EXPECT_NE(check(map(twice, x({7}), Mode::vec)), "");
}
TEST(Views, GlobalOnGpus) {
  EmitOptions gpu;
  gpu.gpu = true;
  for (int64_t n : {1, 7, 64, 96, 131, 1000}) EXPECT_EQ(check(map(twice, x({n}), Mode::global), gpu), "") << n;
  EXPECT_EQ(check(map([](Expr r) { return map(twice, r, Mode::global, 0); }, x({13, 70}), Mode::global, 1), gpu), "");
}
TEST(Views, GroupOrder) {
  EXPECT_EQ(
      check(map([](Expr r) { return map([](Expr s) { return map(twice, s, Mode::group, 1); }, r, Mode::group, 0); },
                x({3, 4, 5}), Mode::group, 2)),
      "");
  EXPECT_EQ(check(map([](Expr r) { return map(twice, r, Mode::group); }, x({3, 4}), Mode::seq)), "");
}
TEST(Views, ReadLayouts) {
  EXPECT_EQ(check(store2(transpose(x({5, 7})))), "");
  EXPECT_EQ(check(store2(split(4, x({12})))), "");
  EXPECT_EQ(check(store1(join(x({3, 5})))), "");
  EXPECT_EQ(check(store2(slide(3, 2, 1, x({11})))), "");
  EXPECT_EQ(check(store2(slide(3, 1, 2, x({11})))), "");
  EXPECT_EQ(check(store1(slice(2, 5, x({11})))), "");
  EXPECT_EQ(check(store1(slice(9, 5, x({11}), -2))), "");
  EXPECT_EQ(check(store2(tile(4, x({11})))), "");
  EXPECT_EQ(check(store1(untile(12, x({3, 4})))), "");
  EXPECT_EQ(check(store2(repeat(3, x({5})))), "");
  EXPECT_EQ(check(map([](Expr p) { return plus(get(0, p), get(1, p)); }, zip({x({9}), y({9})}), Mode::seq)), "");
  EXPECT_EQ(check(store1(concat({x({5}), y({3}), x({5})}))), "");
  EXPECT_EQ(check(store1(iota(9, Scalar::f32))), "");
  EXPECT_EQ(check(store1(iota(9, Scalar::i64))), "");
  EXPECT_EQ(check(map([](Expr r) { return map([](Expr s) { return store1(s); }, r, Mode::seq); },
                      transpose({2, 0, 1}, x({3, 4, 5})), Mode::group)),
            "");
}
TEST(Views, ArraysWithoutElements) {
  EXPECT_EQ(check(store1(concat({x({0}), y({5})}))), "");
  EXPECT_EQ(check(store1(pad(2, 3, real(1.5), x({0})))), "");
  EXPECT_EQ(check(fold(plus, real(3), x({0}))), "");
  EXPECT_EQ(check(map([](Expr row) { return fold(plus, real(3), row); }, x({4, 0}), Mode::seq)), "");
  EXPECT_EQ(check(fold([](Expr sum, Expr row) { return fold(plus, sum, row); }, real(3), x({4, 0}))), "");
  EXPECT_EQ(check(fold([](Expr sum, Expr row) { return fold(plus, sum, row); }, real(3), x({0, 4}))), "");
}
TEST(Views, ReadBorders) {
  EXPECT_EQ(check(store1(pad(2, 3, real(1.5), x({5})))), "");
  EXPECT_EQ(check(store1(pad(7, 8, Border::clamp, x({5})))), "");
  EXPECT_EQ(check(store1(pad(4, 3, Border::mirror, x({5})))), "");
  EXPECT_EQ(check(store1(pad(7, 8, Border::wrap, x({5})))), "");
  EXPECT_EQ(check(store1(slice(2, 5, pad(2, 3, Border::undefined, x({5}))))), "");
  EXPECT_EQ(check(store2(pad(1, 2, repeat(6, real(0)), map([](Expr r) { return pad(2, 1, real(0), r); }, x({4, 3}))))),
            "");
}
TEST(Views, PairsAreStoredLaneByLane) {  // Halide's simplifier makes a ramp of a vector of two scalars
  std::string term = "%x : [4][8]f32\n";
  for (int i = 0; i < 7; ++i) {
    if (i > 0) term += "|> flatten\n|> split 8\n";
    term += "|> split 2\n|> transpose (2 0 1)\n|> map3d relu\n";
  }
  term += "|> map group(1) (map seq (split 2 >> map seq (map vec (\\a. a)) >> join))";
  EXPECT_EQ(check(testing::parsed(term)), "");
}

TEST(Views, VectorsOfFewElements) {  // eight lanes read five elements, adjacent and seven apart
  auto widened = [](Expr rows) { return map([](Expr row) { return pad(1, 2, Border::clamp, row); }, rows); };
  EXPECT_EQ(check(store2(widened(x({3, 5})), Mode::vec)), "");
  EXPECT_EQ(check(store2(widened(transpose(x({5, 7}))), Mode::vec)), "");
}

// Vectors at a border select lane by lane; vectors inside are plain loads. In a row this wide, differences of positions
// exceed 8 bits.
TEST(Views, VectorsAcrossSeveralParts) {  // vectors of eight elements, three apart, of three arrays
  for (int64_t first = 1; first < 7; ++first) {
    for (int64_t second = 1; first + second < 8; ++second) {
      const Expr parts = testing::parsed(fmt::format(
          "concat(%p : [{}][3]f32, %q : [{}][3]f32, %r : [{}][3]f32) |> transpose |> map seq (split 8 >> map "
          "seq (map vec (\\a. a)) >> join) |> transpose",
          first, second, 8 - first - second));
      EXPECT_EQ(check(parts), "") << first << " " << second;
    }
  }
}
TEST(Views, VectorsOfBytesInsideBorders) {
  for (const auto& [columns, left, right] :
       {std::array<int64_t, 3>{256, 2, 2}, {40, 0, 3}, {33, 17, 0}, {300, 200, 150}}) {
    for (const Scalar scalar : {Scalar::u8, Scalar::i8, Scalar::boolean, Scalar::i32}) {
      const Expr none = literal_integer(scalar, 0);
      const Expr image =
          pad(1, 2, repeat(left + columns + right, none),
              map([&, l = left, r = right](Expr line) { return pad(l, r, none, line); }, x({3, columns}, scalar)));
      const int64_t wide = left + columns + right;
      const Expr term = map(
          [&](Expr line) {
            return untile(wide, map([](Expr lanes) { return map([](Expr e) { return e; }, lanes, Mode::vec); },
                                    tile(16, line), Mode::seq));
          },
          image, Mode::group, 0);
      EXPECT_EQ(check(term, {}, 0, scalar == Scalar::boolean ? 0 : -100, scalar == Scalar::boolean ? 1 : 100), "");
      auto kernel = emit(term);
      ASSERT_TRUE(kernel.ok()) << kernel.errors()[0].text();
      const size_t inside = kernel->source.find("load16("), selected = kernel->source.find("select(");
      EXPECT_LT(inside, selected) << kernel->source;
      EXPECT_EQ(kernel->source.find("2147483647"), std::string::npos) << "differences that saturate\n"
                                                                      << kernel->source;
      for (const std::string& target : testing::native_targets_here()) {
        EmitOptions native;
        native.native = {target};
        EXPECT_EQ(check(term, native, 0, scalar == Scalar::boolean ? 0 : -100, scalar == Scalar::boolean ? 1 : 100), "")
            << target;
      }
    }
  }
}

// If a vector is partly in a border at known lanes, its other lanes come from loads of contiguous vectors: with strides
// of one, two and three, for few lanes and for all but one.
TEST(Views, VectorsPartlyInsideBorders) {
  for (const auto& [columns, left, right, step] : {std::array<int64_t, 4>{56, 1, 7, 2},
                                                   {30, 1, 1, 2},
                                                   {31, 1, 0, 2},
                                                   {42, 3, 3, 3},
                                                   {15, 1, 0, 1},
                                                   {3, 20, 9, 1},
                                                   {16, 0, 16, 1},
                                                   {1, 5, 26, 2}}) {
    for (const Scalar scalar : {Scalar::f32, Scalar::u8}) {
      const Expr none = literal_integer(scalar, 3);
      const Expr lines =
          map([&, l = left, r = right, k = step](Expr line) { return transpose(split(k, pad(l, r, none, line))); },
              x({3, columns}, scalar));
      const Expr term = map(
          [](Expr phases) {
            return map(
                [](Expr row) {
                  return join(map([](Expr lanes) { return map([](Expr e) { return e; }, lanes, Mode::vec); },
                                  split(16, row), Mode::unroll));
                },
                phases, Mode::unroll);
          },
          lines, Mode::group, 0);
      EXPECT_EQ(check(term, {}, 0, 0, 100), "") << columns;
      auto kernel = emit(term);
      ASSERT_TRUE(kernel.ok()) << kernel.errors()[0].text();
      EXPECT_EQ(kernel->source.find("x[") != std::string::npos, columns == 1) << "lanes by themselves\n"
                                                                              << kernel->source;
      for (const std::string& target : testing::native_targets_here()) {
        EmitOptions native;
        native.native = {target};
        EXPECT_EQ(check(term, native, 0, 0, 100), "") << columns << " on " << target;
      }
    }
  }
}

TEST(Views, Index) {
  EXPECT_EQ(
      check(map([](Expr i) { return index(call(Function::absolute, {i}), y({8})); }, x({6}, Scalar::i64), Mode::seq),
            {}, 0, -7, 7),
      "");
  EXPECT_EQ(check(map(
                [](Expr i) {
                  return index(call(Function::minimum, {call(Function::multiply, {i, literal_integer(Scalar::i32, 2)}),
                                                        literal_integer(Scalar::i32, 7)}),
                               x({8}));
                },
                iota(8, Scalar::i32), Mode::vec)),
            "");
}
TEST(Views, Constants) {
  Tensor t = Tensor::of(Scalar::f32, {2, 3}, std::vector<double>{1, 2.5, -3, 4, 5, 1e-40});
  EXPECT_EQ(check(store2(constant(t))), "");
  EXPECT_EQ(check(map([&](Expr v) { return plus(v, index(literal_integer(Scalar::i64, 1), join(constant(t)))); },
                      x({4}), Mode::vec)),
            "");
}
TEST(Views, WriteLayouts) {
  EXPECT_EQ(check(join(store2(x({3, 5})))), "");
  EXPECT_EQ(check(transpose(store2(x({3, 5})))), "");
  EXPECT_EQ(check(split(5, store1(x({15})))), "");
  EXPECT_EQ(check(split(6, join(store2(x({3, 4}))))), "");
  EXPECT_EQ(check(slice(0, 13, join(store2(x({4, 4}))))), "");
  EXPECT_EQ(check(slice(2, 11, join(store2(x({4, 4}))))), "");
  EXPECT_EQ(check(slice(0, 13, join(store2(x({4, 4}), Mode::vec)))), "");
  EXPECT_EQ(check(slice(1, 14, join(store2(x({4, 4}), Mode::unroll)))), "");
  EXPECT_EQ(check(untile(11, store2(tile(4, x({11}))))), "");
  EXPECT_EQ(check(untile(11, store2(tile(4, x({11})), Mode::vec))), "");
  EXPECT_EQ(check(map([](Expr r) { return slice(0, 3, r); }, store2(x({3, 4})))), "");
  EXPECT_EQ(check(join(map([](Expr r) { return slice(0, 3, r); }, store2(x({3, 4}))))), "");
}
TEST(Views, OpenBorderLeavesTheRestAlone) {
  Expr e = pad(1, 2, Border::undefined,
               map([](Expr r) { return pad(3, 1, Border::undefined, r); }, store2(x({3, 4}), Mode::vec)));
  auto kernel = emit(e);
  ASSERT_TRUE(kernel.ok()) << kernel.errors()[0].text();
  Bindings in = {{"x", testing::random_tensor(array({3, 4}), 1)}};
  auto out = testing::run(*kernel, "kernel_0", in, Scalar::f32, {6, 8}, 0x11);
  ASSERT_TRUE(out.ok()) << out.errors()[0].text();
  double untouched = float_from_bits(Scalar::f32, 0x11111111);
  for (int64_t i = 0; i < 6; ++i) {
    for (int64_t j = 0; j < 8; ++j) {
      bool inside = i >= 1 && i < 4 && j >= 3 && j < 7;
      EXPECT_EQ(out->float_at(i * 8 + j), inside ? in.at("x").float_at((i - 1) * 4 + j - 3) : untouched)
          << i << " " << j;
    }
  }
}
TEST(Views, LetIterateSelectTuple) {
  EXPECT_EQ(check(map([](Expr v) { return let(twice(v), [&](Expr w) { return plus(w, v); }); }, x({5}), Mode::seq)),
            "");
  EXPECT_EQ(check(map(
                [](Expr v) {
                  return iterate(
                      3, [](Expr w) { return twice(w); }, v);
                },
                x({5}), Mode::seq)),
            "");
  EXPECT_EQ(check(map(
                [](Expr v) {
                  return select(call(Function::less, {v, real(0)}), real(0), v);
                },
                x({16}), Mode::vec)),
            "");
  EXPECT_EQ(check(map(
                [](Expr v) {
                  return get(1, select(call(Function::less, {v, real(0)}), tuple({v, real(1)}), tuple({v, v})));
                },
                x({16}), Mode::vec)),
            "");
}

}  // namespace hoist::views_test
