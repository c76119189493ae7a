#include "ir/evaluate/evaluate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "ir/base/cancellation.h"
#include "ir/evaluate/evaluate_compile.h"
#include "tests/support/random_terms.h"

namespace hoist::evaluate_test {

const Type f32 = scalar_type(Scalar::f32);
const Type i64 = scalar_type(Scalar::i64);

Tensor random_tensor(Scalar scalar, const std::vector<int64_t>& shape, std::mt19937_64& random) {
  Tensor tensor(scalar, shape);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const auto x = static_cast<int64_t>(random() % 17) - 8;
    if (scalar == Scalar::boolean)
      tensor.set_integer(i, x & 1);
    else if (is_float(scalar))
      tensor.set_float(i, static_cast<double>(x) * 0.3);
    else
      tensor.set_integer(i, x);
  }
  return tensor;
}

Bindings bind_all(Expr e, std::mt19937_64& random) {
  Bindings bindings;
  for (Expr p : parameters_of(e))
    bindings[p->name] = random_tensor(leaf_of(p->type)->scalar, shape_of(p->type), random);
  return bindings;
}

// Expects the interpreter's bits, computed by compiled code without a fallback to the interpreter.
void expect_same(Expr e, const Bindings& bindings, bool must_compile = true) {
  auto slow = interpret(e, bindings);
  ASSERT_TRUE(slow.ok()) << slow.errors()[0].text();
  auto fast = evaluate(e, bindings);
  ASSERT_TRUE(fast.ok()) << fast.errors()[0].text();
  EXPECT_TRUE(*slow == *fast);
  if (!must_compile) return;
  auto compiled = compile(e, bindings);
  ASSERT_NE(compiled, nullptr);
  EXPECT_TRUE(run(*compiled));
}

void expect_same(Expr e) {
  std::mt19937_64 random(7);
  expect_same(e, bind_all(e, random));
}

Expr input(const std::string& name, const std::vector<Nat>& sizes) { return parameter(name, array_type(sizes, f32)); }
Expr zero() { return literal(Scalar::f32, 0); }
Expr add(Expr a, Expr b) { return call(Function::add, {a, b}); }
Expr multiply(Expr a, Expr b) { return call(Function::multiply, {a, b}); }
Expr product_sum(Expr a, Expr b) {
  return reduce(Function::add, zero(), map([](Expr p) { return multiply(get(0, p), get(1, p)); }, zip({a, b})));
}

Expr convolution(int64_t channels, int64_t filters, int64_t height, int64_t width, int64_t step, bool materialised) {
  Expr x = input("x", {channels, height, width}), w = input("w", {filters, channels, 3, 3}), b = input("b", {filters});
  auto padded = [&](Expr p) {
    return pad(1, 1, repeat(width + 2, zero()), map([](Expr row) { return pad(1, 1, zero(), row); }, p));
  };
  auto windows_of = [&](Expr p) {
    return map([&](Expr rows) { return transpose(map([&](Expr row) { return slide(3, step, 1, row); }, rows)); },
               slide(3, step, 1, p));
  };
  Expr windows = map_at(
      2, [](Expr window) { return join(join(window)); },
      transpose({1, 2, 0, 3, 4}, map([&](Expr p) { return windows_of(padded(p)); }, x)));
  if (materialised) windows = materialise(Memory::global, windows);
  return let(windows, [&](Expr im2col) {
    return map(
        [&](Expr filter) {
          return map_at(
              2,
              [&](Expr window) {
                return call(Function::maximum,
                            {add(product_sum(window, join(join(get(0, filter)))), get(1, filter)), zero()});
              },
              im2col);
        },
        zip({w, b}));
  });
}

// A register-tiled matmul.
Expr tiled_product(int64_t m, int64_t n, int64_t k, int64_t rows, int64_t columns) {
  Expr a = input("a", {m, k}), b = input("b", {n / columns, k, columns});
  Expr tiles = map(
      [&](Expr block) {
        return map(
            [&](Expr panel) {
              return fold(
                  [&](Expr tile, Expr step) {
                    return map(
                        [&](Expr row) {
                          return join(map(
                              [&](Expr part) {
                                return map(
                                    [&](Expr p) {
                                      return call(Function::fma, {get(1, row), get(1, p), get(0, p)});
                                    },
                                    zip({get(0, part), get(1, part)}), Mode::vec);
                              },
                              zip({split(2, get(0, row)), split(2, get(1, step))}), Mode::unroll));
                        },
                        zip({tile, get(0, step)}), Mode::unroll);
                  },
                  repeat({rows, columns}, zero()), zip({transpose(block), panel}));
            },
            b, Mode::group, 0);
      },
      split(rows, a), Mode::group, 1);
  return join(map([](Expr block) { return map([](Expr row) { return join(row); }, transpose(block)); }, tiles));
}

TEST(Evaluate, MatrixProducts) {
  Expr a = input("a", {13, 21}), b = input("b", {21, 37});
  expect_same(
      map([&](Expr row) { return map([&](Expr column) { return product_sum(row, column); }, transpose(b)); }, a));
  expect_same(tiled_product(8, 12, 5, 4, 6));
}

TEST(Evaluate, Convolutions) {
  for (bool materialised : {false, true}) {
    expect_same(convolution(3, 4, 5, 5, 1, materialised));
    expect_same(convolution(2, 3, 9, 7, 2, materialised));
    expect_same(convolution(2, 2, 3, 40, 1, materialised));
  }
}

TEST(Evaluate, Softmax) {
  Expr x = input("x", {6, 50});
  expect_same(map(
      [](Expr row) {
        return let(reduce(Function::maximum, literal(Scalar::f32, -1e30), row), [&](Expr largest) {
          return let(map(
                         [&](Expr v) {
                           return call(Function::exp, {call(Function::subtract, {v, largest})});
                         },
                         row),
                     [&](Expr e) {
                       return let(reduce(Function::add, zero(), e), [&](Expr sum) {
                         return map([&](Expr v) { return call(Function::divide, {v, sum}); }, e);
                       });
                     });
        });
      },
      x));
}

// The accumulator (largest, sum, [d] weighted sum) of attention in one pass.
TEST(Evaluate, FoldsWithSeveralAccumulators) {
  Expr scores = input("s", {4, 11}), values = input("v", {11, 6});
  Expr e = map(
      [&](Expr row) {
        Expr last = fold(
            [&](Expr state, Expr step) {
              Expr largest = call(Function::maximum, {get(0, state), get(0, step)});
              auto weight = [&](Expr x) { return call(Function::exp, {call(Function::subtract, {x, largest})}); };
              Expr old = weight(get(0, state)), fresh = weight(get(0, step));
              return tuple({largest, add(multiply(get(1, state), old), fresh),
                            map([&](Expr p) { return add(multiply(get(0, p), old), multiply(get(1, p), fresh)); },
                                zip({get(2, state), get(1, step)}))});
            },
            tuple({literal(Scalar::f32, -100), zero(), repeat(6, zero())}), zip({row, values}));
        return map([&](Expr x) { return call(Function::divide, {x, get(1, last)}); }, get(2, last));
      },
      scores);
  expect_same(e);
  // The position of the maximum.
  Expr best = map(
      [&](Expr row) {
        return get(1, fold(
                          [](Expr state, Expr step) {
                            return select(call(Function::greater, {get(0, step), get(0, state)}), step, state);
                          },
                          tuple({literal(Scalar::f32, -1e30), literal_integer(Scalar::i64, -1)}),
                          zip({row, iota(11, Scalar::i64)})));
      },
      scores);
  expect_same(best);
  expect_same(map([&](Expr p) { return index(get(0, p), get(1, p)); }, zip({best, scores})));
}

// A recurrent layer: every step mixes the state's elements.
TEST(Evaluate, RecurrentLayers) {
  Expr xs = input("x", {7, 5}), w = input("w", {5, 5}), initial = input("h", {5});
  auto step = [&](Expr h, Expr x) {
    return map([&](Expr p) { return call(Function::tanh, {add(product_sum(get(0, p), h), get(1, p))}); }, zip({w, x}));
  };
  expect_same(scan(step, initial, xs));
  expect_same(fold(step, initial, xs));
  // One recurrence per row of a batch.
  expect_same(map([&](Expr batch) { return fold(step, batch, xs); }, input("batch", {3, 5})));
  // As tuples.
  Expr both = fold(
      [&](Expr s, Expr x) {
        return tuple({step(get(0, s), x), slice(4, 5, get(0, s), -1)});
      },
      tuple({initial, initial}), xs);
  expect_same(get(0, both));
  expect_same(get(1, both));
}

// The evaluator falls back to the interpreter for nested folds that mix elements, with the same result.
TEST(Evaluate, WhatItCannotCompile) {
  Expr xs = input("x", {3, 4});
  Expr e = fold(
      [&](Expr s, Expr row) {
        return fold([&](Expr t, Expr x) { return map([&](Expr y) { return add(y, x); }, slice(4, 5, t, -1)); }, s, row);
      },
      input("h", {5}), xs);
  std::mt19937_64 random(3);
  expect_same(e, bind_all(e, random), false);
}

TEST(Evaluate, Layouts) {
  Expr x = input("x", {6, 4, 5});
  expect_same(transpose({2, 0, 1}, x));
  expect_same(join(join(transpose({1, 2, 0}, x))));
  expect_same(split(7, slice(1, 112, join(join(transpose(x))))));
  expect_same(map([](Expr p) { return transpose(p); }, split(2, map([](Expr a) { return join(a); }, x))));
  expect_same(untile(6, map(
                            [](Expr t) {
                              return map_at(
                                  3, [](Expr v) { return add(v, v); }, t);
                            },
                            tile(4, x))));
  expect_same(concat({x, slice(5, 6, x, -1), pad(1, 1, Border::wrap, slice(2, 2, x))}));
  expect_same(map_at(
      2, [](Expr row) { return pad(3, 4, Border::mirror, row); }, x));
  expect_same(map_at(
      2, [](Expr row) { return slide(3, 1, 1, pad(2, 0, Border::clamp, row)); }, x));
  for (Scalar s : {Scalar::i4, Scalar::u4, Scalar::boolean, Scalar::f16, Scalar::f64, Scalar::f8e5m2}) {
    expect_same(transpose(parameter("y", array_type({5, 7}, scalar_type(s)))));
  }
}

TEST(Evaluate, BlocksOfEverySize) {
  for (int64_t n : {1, 31, 32, 33, 255, 256, 257, 511, 512, 513, 1500}) {
    expect_same(map([](Expr v) { return add(v, v); }, input("x", {n})));
    expect_same(transpose(input("x", {3, n})));
    expect_same(map([&](Expr row) { return slice(n - 1, n, row, -1); }, input("x", {3, n})));
  }
}

// Short rows, vectorised along an outer dimension: several blocks, blocks of all sizes, threads that start anywhere,
// too large inner dimensions, and no long dimension.
TEST(Evaluate, ShortRowsInsideLongDimensions) {
  const std::vector<std::vector<Nat>> shapes = {{3, 300, 3, 5},  {2, 32, 7},  {129, 6},        {5, 31, 4},
                                                {700, 40, 3, 3}, {40, 9, 31}, {3, 65, 2, 4, 2}};
  for (const std::vector<Nat>& shape : shapes) {
    const auto deep = static_cast<int>(shape.size());
    Expr x = input("x", shape);
    expect_same(map_at(
        deep, [](Expr v) { return add(v, v); }, x));
    expect_same(map_at(
        deep - 1, [](Expr row) { return pad(1, 1, Border::mirror, row); }, x));
    expect_same(map_at(
        deep - 2, [](Expr rows) { return transpose(rows); }, x));
  }
}

TEST(Evaluate, ManyThreadsGiveOneAnswer) {
  Expr a = input("a", {64, 300}), b = input("b", {300, 128});
  Expr e = map([&](Expr row) { return map([&](Expr column) { return product_sum(row, column); }, transpose(b)); }, a);
  std::mt19937_64 random(5);
  expect_same(e, bind_all(e, random));
}

TEST(Evaluate, PositionsThatAreComputed) {
  Expr table = input("t", {9, 3}), wanted = parameter("i", array_type(5, i64));
  std::mt19937_64 random(2);
  Bindings bindings = bind_all(table, random);
  bindings["i"] = Tensor::of<int>(Scalar::i64, {5}, {8, 0, 3, 3, 1});
  expect_same(map([&](Expr i) { return index(i, table); }, wanted), bindings);
  expect_same(scatter(wanted, slice(0, 5, table), table), bindings);
  // Out of bounds in an unused element: the interpreter's result is right.
  bindings["i"] = Tensor::of<int>(Scalar::i64, {5}, {8, -1, 3, 99, 1});
  Expr guarded = map(
      [&](Expr i) {
        Expr inside = call(Function::logical_and, {call(Function::greater_equal, {i, literal_integer(Scalar::i64, 0)}),
                                                   call(Function::less, {i, literal_integer(Scalar::i64, 9)})});
        return select(inside, index(literal_integer(Scalar::i64, 0), index(i, table)), zero());
      },
      wanted);
  expect_same(guarded, bindings, false);
}

TEST(Evaluate, EmptyArrays) {
  Expr none = slice(0, 0, input("x", {4}));
  expect_same(map([](Expr v) { return add(v, v); }, none), {{"x", Tensor(Scalar::f32, {4})}}, false);
  expect_same(reduce(Function::add, zero(), none));
  expect_same(concat({none, input("x", {4})}));
  expect_same(pad(2, 1, zero(), none));
  expect_same(scatter(slice(0, 0, iota(3, Scalar::i64)), none, input("x", {4})));
  expect_same(
      repeat(3, reduce(Function::add, zero(),
                       map([](Expr row) { return reduce(Function::add, zero(), row); }, repeat({0, 0}, zero())))));
}

TEST(Evaluate, TooMuchIsAnError) {
  Expr huge = repeat({int64_t{1} << 20, int64_t{1} << 20}, zero());
  EXPECT_FALSE(evaluate(huge, {}).ok());
  // A huge value is allowed if few of its elements are used.
  expect_same(slice(0, 3, join(huge)), {});
}

TEST(Evaluate, RandomTermsAsInterpreted) {
  std::mt19937_64 random(2026);
  int compiled = 0, computed = 0;
  for (int round = 0; round < 1500; ++round) {
    RandomTermOptions options;
    options.patterns = 4 + round % 20;
    Expr e = random_term(random, options);
    const std::vector<Expr> parameters = parameters_of(e);
    if (std::any_of(parameters.begin(), parameters.end(), [](Expr p) { return !leaf_of(p->type)->is_scalar(); })) {
      EXPECT_FALSE(evaluate(e, {}).ok());  // tensors hold no tuples
      continue;
    }
    const Bindings bindings = bind_all(e, random);
    auto slow = interpret(e, bindings);
    auto fast = evaluate(e, bindings);
    ASSERT_TRUE(slow.ok()) << "term " << round << ": " << slow.errors()[0].text();
    ASSERT_TRUE(fast.ok()) << "term " << round << ": " << fast.errors()[0].text();
    ++computed;
    ASSERT_TRUE(*slow == *fast) << "term " << round;
    auto positions = sample_positions(slow->size(), 4, static_cast<uint64_t>(round));
    auto some = interpret_at(e, bindings, positions);
    ASSERT_TRUE(some.ok());
    for (size_t i = 0; i < positions.size(); ++i) {
      ASSERT_EQ(some->integer_at(static_cast<int64_t>(i)), slow->integer_at(positions[i])) << "term " << round;
    }
    if (slow->size() == 0) continue;
    auto program = compile(e, bindings);
    compiled += program != nullptr && run(*program);
  }
  EXPECT_GT(computed, 1000);
  EXPECT_GT(compiled, computed * 9 / 10);
}

TEST(Cancellation, ADeadlineEndsWorkAndNests) {
  cancellation_point();
  {
    const Deadline never(std::numeric_limits<double>::infinity());
    cancellation_point();
    {
      const Deadline over(0);
      EXPECT_THROW(cancellation_point(), TimeIsOver);
      const Deadline later(1000);
      EXPECT_THROW(cancellation_point(), TimeIsOver);
    }
    cancellation_point();
  }
  cancellation_point();
}

TEST(Cancellation, EndsWorkUntilItIsWithdrawn) {
  const Expr x = parameter("x", f32);
  const Bindings bindings = {{"x", Tensor(Scalar::f32, {})}};
  request_cancellation();
  EXPECT_THROW(static_cast<void>(evaluate(x, bindings)), Cancelled);
  EXPECT_THROW(static_cast<void>(interpret_at(x, bindings, {0})), Cancelled);
  withdraw_cancellation();
  EXPECT_TRUE(evaluate(x, bindings).ok());
}

}  // namespace hoist::evaluate_test
