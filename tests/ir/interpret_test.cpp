#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "ir/base/seeded.h"
#include "ir/evaluate/evaluate.h"

namespace hoist::interpret_test {

const Type f32 = scalar_type(Scalar::f32);
const Type i64 = scalar_type(Scalar::i64);

Tensor counting(Scalar scalar, const std::vector<int64_t>& shape, int64_t first = 0) {
  std::vector<int64_t> values(static_cast<size_t>(element_count(shape)));
  std::iota(values.begin(), values.end(), first);
  return Tensor::of(scalar, shape, values);
}

Expr numbers(const std::vector<int64_t>& values) {
  return constant(Tensor::of(Scalar::i64, {static_cast<int64_t>(values.size())}, values));
}
Expr count(int64_t n) { return iota(n, Scalar::i64); }
Expr integer(int64_t n) { return literal_integer(Scalar::i64, n); }
Expr add(Expr a, Expr b) { return call(Function::add, {a, b}); }
Expr multiply(Expr a, Expr b) { return call(Function::multiply, {a, b}); }
Expr grid(int64_t rows, int64_t columns) { return split(columns, count(rows * columns)); }

// Compares the expected value with both interpreters and with single positions.
void expect(Expr e, const std::vector<int64_t>& values, const Bindings& bindings = {}) {
  auto whole = interpret(e, bindings);
  ASSERT_TRUE(whole.ok()) << whole.errors()[0].text();
  EXPECT_EQ(whole->as_integers(), values);
  EXPECT_EQ(whole->shape(), shape_of(e->type));
  auto positions = sample_positions(whole->size(), 3, 1);
  auto some = interpret_at(e, bindings, positions);
  ASSERT_TRUE(some.ok()) << some.errors()[0].text();
  for (size_t i = 0; i < positions.size(); ++i) {
    EXPECT_EQ(some->integer_at(static_cast<int64_t>(i)), whole->integer_at(positions[i]));
  }
  auto fast = evaluate(e, bindings);
  ASSERT_TRUE(fast.ok()) << fast.errors()[0].text();
  EXPECT_TRUE(*fast == *whole);
}

void expect_fault(Expr e, const std::string& message, const Bindings& bindings = {}) {
  for (auto compute : {interpret, evaluate}) {
    auto got = compute(e, bindings);
    ASSERT_FALSE(got.ok());
    EXPECT_NE(got.errors()[0].text().find(message), std::string::npos) << got.errors()[0].text();
  }
}

TEST(Interpret, Leaves) {
  expect(parameter("x", array_type(3, f32)), {4, 5, 6}, {{"x", counting(Scalar::f32, {3}, 4)}});
  expect(parameter("n", i64), {9}, {{"n", Tensor::of<int>(Scalar::i64, {}, {9})}});
  expect(literal(Scalar::f32, 7), {7});
  expect(literal_integer(Scalar::i4, -3), {-3});
  expect(iota(4, Scalar::u8), {0, 1, 2, 3});
  expect(constant(counting(Scalar::i4, {2, 3}, -3)), {-3, -2, -1, 0, 1, 2});
}

TEST(Interpret, ScalarsAndStructure) {
  expect(map([](Expr x) { return add(multiply(x, x), integer(1)); }, count(4)), {1, 2, 5, 10});
  expect(map(
             [](Expr x) {
               return select(call(Function::less, {x, integer(2)}), integer(10), x);
             },
             count(4)),
         {10, 10, 2, 3});
  expect(map([](Expr x) { return cast(Scalar::i8, x); }, numbers({127, 128, 300})), {127, -128, 44});
  auto bits = [](double x) { return reinterpret(Scalar::u32, literal(Scalar::f32, x)); };
  expect(bits(1), {0x3f800000});
  expect(bits(-0.0), {0x80000000});
  expect(bits(-std::numeric_limits<double>::quiet_NaN()), {0x7fc00000});
  expect(reinterpret(Scalar::i16, literal(Scalar::bf16, -1)), {static_cast<int16_t>(0xbf80)});
  expect(let(integer(3), [](Expr x) { return add(x, x); }), {6});
  expect(map([](Expr x) { return get(1, tuple({x, add(x, integer(5))})); }, count(2)), {5, 6});
  expect(identity(count(2)), {0, 1});
}

TEST(Interpret, MapsInEveryModeMeanTheSame) {
  for (Mode mode :
       {Mode::view, Mode::seq, Mode::unroll, Mode::vec, Mode::global, Mode::group, Mode::local, Mode::matrix}) {
    expect(map([](Expr x) { return add(x, integer(1)); }, count(3), mode), {1, 2, 3});
  }
  expect(map_at(
             2, [](Expr x) { return call(Function::negate, {x}); }, grid(2, 2)),
         {0, -1, -2, -3});
  // The inner function sees the outer variable.
  expect(map([](Expr x) { return map([&](Expr y) { return add(multiply(x, integer(10)), y); }, count(2)); }, count(3)),
         {0, 1, 10, 11, 20, 21});
}

// Elements of parameters may be made on demand, so that only elements that are read have a cost.
TEST(Interpret, ElementsAreMadeWhereTheyAreRead) {
  for (Scalar scalar : {Scalar::f32, Scalar::bf16, Scalar::i8, Scalar::u64, Scalar::i4, Scalar::boolean}) {
    SCOPED_TRACE(row(scalar).name);
    Expr x = parameter("x", array_type({3, 5}, scalar_type(scalar)));
    const Tensor whole = seeded_tensor(scalar, {3, 5}, 7, 1, -4, 4);
    const auto drawn = [&](const std::string& name, int64_t position) {
      EXPECT_EQ(name, "x");
      return seeded_bits(scalar, 7, 1, -4, 4, position);
    };
    auto made = interpret_made_at(transpose({1, 0}, x), drawn, {0, 4, 14});
    auto stored = interpret_at(transpose({1, 0}, x), {{"x", whole}}, {0, 4, 14});
    ASSERT_TRUE(made.ok() && stored.ok());
    EXPECT_EQ(*made, *stored);
  }
  const int64_t side = int64_t{1} << 20;
  Expr large = parameter("x", array_type({side, side}, scalar_type(Scalar::i64)));
  int64_t read = 0;
  const auto positions = [&](const std::string&, int64_t position) {
    ++read;
    return static_cast<uint64_t>(position);
  };
  auto found = interpret_made_at(transpose({1, 0}, large), positions, {0, 1, side * side - 2});
  ASSERT_TRUE(found.ok()) << found.errors()[0].text();
  EXPECT_EQ(*found, Tensor::of(Scalar::i64, {3}, std::vector<int64_t>{0, side, side * (side - 1) - 1}));
  EXPECT_EQ(read, 3);
}

TEST(Interpret, ReductionsGoLeft) {
  expect(reduce(Function::add, integer(0), count(5)), {10});
  expect(fold([](Expr s, Expr x) { return add(multiply(s, integer(10)), x); }, integer(0), numbers({1, 2, 3})), {123});
  expect(fold([](Expr s, Expr x) { return add(multiply(s, integer(10)), x); }, integer(7), slice(0, 0, count(3))), {7});
  expect(scan([](Expr s, Expr x) { return add(s, x); }, integer(100), numbers({1, 2, 3})), {101, 103, 106});
  expect(iterate(
             5, [](Expr x) { return multiply(x, integer(2)); }, integer(3)),
         {96});
  expect(iterate(
             0, [](Expr x) { return multiply(x, integer(2)); }, integer(3)),
         {3});
  expect(map([](Expr row) { return reduce(Function::maximum, integer(-1), row); }, grid(2, 3)), {2, 5});
  // 2^24 + 1 + 1 is 2^24 from the left and 2^24 + 2 from the right.
  Expr ones = constant(Tensor::of<double>(Scalar::f32, {3}, {16777216, 1, 1}));
  expect(reduce(Function::add, literal(Scalar::f32, 0), ones), {16777216});
}

TEST(Interpret, AccumulatorsOfAnyType) {
  // Sum and maximum in one fold.
  Expr both = fold(
      [](Expr s, Expr x) {
        return tuple({add(get(0, s), x), call(Function::maximum, {get(1, s), x})});
      },
      tuple({integer(0), integer(-9)}), numbers({3, 5, 4}));
  expect(get(0, both), {12});
  expect(get(1, both), {5});
  // A tile: each element is independent.
  expect(fold(
             [](Expr s, Expr row) {
               return map([](Expr p) { return add(get(0, p), get(1, p)); }, zip({s, row}));
             },
             repeat(3, integer(1)), grid(2, 3)),
         {4, 6, 8});
  // The accumulator is reversed at every step.
  auto turn = [](Expr s) { return slice(2, 3, s, -1); };
  expect(fold([&](Expr s, Expr x) { return map([&](Expr y) { return add(y, x); }, turn(s)); }, count(3),
              numbers({10, 20, 30})),
         {62, 61, 60});
  expect(scan([&](Expr s, Expr x) { return map([&](Expr y) { return add(y, x); }, turn(s)); }, count(3),
              numbers({10, 20})),
         {12, 11, 10, 30, 31, 32});
  expect(iterate(3, turn, count(3)), {2, 1, 0});
  // Fibonacci numbers with a tuple, in every row.
  auto step = [](Expr s) { return tuple({get(1, s), add(get(0, s), get(1, s))}); };
  expect(map([&](Expr x) { return get(0, iterate(6, step, tuple({x, integer(1)}))); }, count(3)), {8, 13, 18});
}

TEST(Interpret, NestedFoldsPassTheAccumulatorOn) {
  Expr e = fold(
      [](Expr s, Expr row) { return fold([](Expr t, Expr x) { return add(multiply(t, integer(3)), x); }, s, row); },
      integer(1), grid(2, 2));
  expect(e, {((1 * 3 + 0) * 3 + 1) * 9 + 2 * 3 + 3});
}

TEST(Interpret, Views) {
  expect(
      map([](Expr p) { return add(get(0, p), multiply(get(1, p), integer(10))); }, zip({count(3), numbers({4, 5, 6})})),
      {40, 51, 62});
  expect(split(2, count(6)), {0, 1, 2, 3, 4, 5});
  expect(join(transpose(grid(2, 3))), {0, 3, 1, 4, 2, 5});
  expect(transpose(grid(2, 3)), {0, 3, 1, 4, 2, 5});
  // [2][3][2] to [2][2][3]: result dimension i is argument dimension p_i.
  expect(transpose({2, 0, 1}, split(3, split(2, count(12)))), {0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11});
  expect(slide(3, 2, 1, count(7)), {0, 1, 2, 2, 3, 4, 4, 5, 6});
  expect(slide(2, 1, 3, count(5)), {0, 3, 1, 4});
  expect(slice(1, 3, count(9), 2), {1, 3, 5});
  expect(slice(4, 3, count(5), -2), {4, 2, 0});
  expect(tile(3, count(7)), {0, 1, 2, 3, 4, 5, 4, 5, 6});
  expect(untile(7, tile(3, count(7))), {0, 1, 2, 3, 4, 5, 6});
  expect(concat({count(2), numbers({7}), count(3)}), {0, 1, 7, 0, 1, 2});
  expect(repeat({2, 3}, integer(4)), {4, 4, 4, 4, 4, 4});
  expect(repeat(2, count(3)), {0, 1, 2, 0, 1, 2});
  expect(index(integer(2), grid(3, 2)), {4, 5});
  expect(map([](Expr i) { return index(i, numbers({5, 6, 7})); }, numbers({2, 0, 2})), {7, 5, 7});
}

TEST(Interpret, Borders) {
  expect(pad(1, 2, integer(9), count(3)), {9, 0, 1, 2, 9, 9});
  expect(pad(2, 2, Border::clamp, count(3)), {0, 0, 0, 1, 2, 2, 2});
  expect(pad(2, 2, Border::mirror, count(3)), {2, 1, 0, 1, 2, 1, 0});
  expect(pad(4, 4, Border::wrap, count(3)), {2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0});
  expect(pad(1, 1, Border::undefined, numbers({5})), {0, 5, 0});
  expect(pad(1, 0, repeat(2, integer(7)), grid(1, 2)), {7, 7, 0, 1});
  expect(pad(1, 1, integer(3), slice(0, 0, count(4))), {3, 3});
}

TEST(Interpret, ScattersInOrder) {
  expect(scatter(numbers({1, 3, 1, -1, 9}), numbers({10, 20, 30, 40, 50}), count(4)), {0, 30, 2, 20});
  expect(scatter(numbers({1}), grid(1, 2), split(2, numbers({7, 7, 7, 7}))), {7, 7, 0, 1});
  expect(map([](Expr row) { return scatter(numbers({0}), numbers({5}), row); }, grid(2, 2)), {5, 1, 5, 3});
}

TEST(Interpret, MemoriesChangeNothing) {
  for (Memory memory : {Memory::global, Memory::local, Memory::private_}) {
    expect(let(materialise(memory, map([](Expr x) { return add(x, x); }, count(3))),
               [](Expr x) { return slide(2, 1, 1, x); }),
           {0, 2, 2, 4});
  }
}

TEST(Interpret, LetsSeeTheirSurroundings) {
  // One let, evaluated for two elements in turn, inside a map and from a nested let.
  Expr e = map(
      [](Expr row) {
        return let(reduce(Function::add, integer(0), row), [&](Expr sum) {
          return let(add(sum, sum),
                     [&](Expr twice) { return map([&](Expr x) { return add(multiply(x, sum), twice); }, row); });
        });
      },
      grid(2, 2));
  expect(e, {2, 3, 20, 25});
  Expr sums = map([](Expr row) { return reduce(Function::add, integer(0), row); }, grid(3, 2));
  expect(
      let(sums, [](Expr s) { return map([&](Expr a) { return map([&](Expr b) { return multiply(a, b); }, s); }, s); }),
      {1, 5, 9, 5, 25, 45, 9, 45, 81});
}

TEST(Interpret, Convolution) {
  // A 3x3 image with one 2x2 filter, by windows.
  Expr image = grid(3, 3);
  Expr windows = map([](Expr rows) { return transpose(map([](Expr row) { return slide(2, 1, 1, row); }, rows)); },
                     slide(2, 1, 1, image));
  Expr filter = numbers({1, 10, 100, 1000});
  Expr e = map_at(
      2,
      [&](Expr w) {
        return reduce(Function::add, integer(0),
                      map([](Expr p) { return multiply(get(0, p), get(1, p)); }, zip({join(w), filter})));
      },
      windows);
  expect(e, {0 + 10 + 300 + 4000, 1 + 20 + 400 + 5000, 3 + 40 + 600 + 7000, 4 + 50 + 700 + 8000});
}

TEST(Interpret, FaultsAreNamed) {
  expect_fault(index(integer(3), count(3)), "index: position 3 lies outside 0..2");
  expect_fault(parameter("x", f32), "%x: the parameter has no value");
  expect_fault(parameter("x", f32), "expected f32, found", {{"x", Tensor(Scalar::i32, {})}});
  expect_fault(bound(0, f32), "not closed");
  expect_fault(tuple({integer(1), integer(2)}), "expected an array of scalars");
  expect_fault(iota(Nat::name("N"), Scalar::i64), "the size N has no value");
  expect_fault(repeat({int64_t{1} << 40, int64_t{1} << 40}, integer(1)), "too many elements");
  expect_fault(repeat(int64_t{1} << 50, integer(1)), "needs more than");
  auto outside = interpret_at(count(3), {}, {3});
  ASSERT_FALSE(outside.ok());
}

// An invalid index in an unused element causes no error.
TEST(Interpret, FaultsOnlyWhereElementsAreNeeded) {
  Expr array = numbers({5, 6});
  expect(map(
             [&](Expr i) {
               return select(call(Function::less, {i, integer(2)}), index(i, array), integer(-1));
             },
             count(4)),
         {5, 6, -1, -1});
}

TEST(Interpret, DeepTermsNeitherOverflowNorExplode) {
  Expr x = integer(1);
  for (int i = 0; i < 60; ++i) x = let(x, [](Expr v) { return add(v, v); });
  expect(x, {int64_t{1} << 60});
  // The same without lets: each node is used twice by the next one, also inside a function.
  Expr y = integer(1);
  for (int i = 0; i < 60; ++i) y = add(y, y);
  expect(y, {int64_t{1} << 60});
  expect(map(
             [](Expr v) {
               Expr sum = v;
               for (int i = 0; i < 40; ++i) sum = add(sum, sum);
               return sum;
             },
             count(3)),
         {0, int64_t{1} << 40, int64_t{1} << 41});
  // Every let uses the one before it under a chain of calls.
  std::function<Expr(Expr, int)> nest = [&](Expr v, int depth) -> Expr {
    Expr sum = v;
    for (int i = 0; i < 100; ++i) sum = add(sum, integer(1));
    return depth == 0 ? sum : let(sum, [&](Expr w) { return nest(w, depth - 1); });
  };
  expect(nest(integer(0), 200), {201 * 100});
}

TEST(SamplePositions, HoldTheEndsAndRepeat) {
  auto positions = sample_positions(1000, 10, 5);
  EXPECT_EQ(positions.size(), 10u);
  EXPECT_EQ(positions.front(), 0);
  EXPECT_EQ(positions.back(), 999);
  EXPECT_TRUE(std::is_sorted(positions.begin(), positions.end()));
  EXPECT_EQ(positions, sample_positions(1000, 10, 5));
  EXPECT_NE(positions, sample_positions(1000, 10, 6));
  EXPECT_EQ(sample_positions(3, 10, 0), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_TRUE(sample_positions(0, 10, 0).empty());
}

// Each element of x + x needs the elements of x twice; in a chain of fifty this means every path, unless results are
// memoised.
TEST(Interpret, SharedElementsAreComputedOnce) {
  Expr x = parameter("x", array_type(2, array_type(3, i64))), y = x, z = x;
  for (int i = 0; i < 50; ++i) {
    y = map_at(
        2, [](Expr a) { return add(a, a); }, y);
    z = map(
        [](Expr rows) {
          return map([](Expr p) { return add(get(0, p), get(1, p)); }, zip({get(0, rows), get(1, rows)}));
        },
        zip({z, z}));
  }
  const int64_t power = int64_t{1} << 50;
  const Bindings bindings = {{"x", counting(Scalar::i64, {2, 3}, -2)}};
  expect(y, {-2 * power, -power, 0, power, 2 * power, 3 * power}, bindings);
  expect(z, {-2 * power, -power, 0, power, 2 * power, 3 * power}, bindings);
  Expr doubled =
      map([](Expr row) { return reduce([](Expr s, Expr v) { return add(s, add(v, v)); }, integer(0), row); }, y);
  expect(doubled, {-6 * power, 12 * power}, bindings);
}

}  // namespace hoist::interpret_test
