// Compares folds, scans and scatters in kernels with the interpreter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/properties/properties.h"
#include "tests/halide/runner.h"
#include "tests/halide/small_terms.h"

namespace hoist::folds_test {

using testing::array;
using testing::check;
using ::testing::HasSubstr;
using testing::plus;
using testing::real;
using testing::store1;
using testing::store2;
using testing::twice;
using testing::x;
using testing::y;

TEST(Folds, Plain) {
  EXPECT_EQ(check(map([](Expr r) { return fold(plus, real(0), r); }, x({4, 9}), Mode::group)), "");
  EXPECT_EQ(check(map([](Expr r) { return fold(plus, real(0), r, Mode::unroll); }, x({4, 9}), Mode::group)), "");
  EXPECT_EQ(check(map([](Expr r) { return reduce(Function::maximum, real(-INFINITY), r); }, x({4, 9}), Mode::group)),
            "");
  EXPECT_EQ(check(map([](Expr r) { return fold(plus, real(0), map(twice, r)); }, x({4, 9}))), "");
}
TEST(Folds, UnderVectors) {  // pooling and depthwise convolution: a fold of vectors
  Expr e = map(
      [](Expr row) {
        return join(
            map([](Expr c) { return map([](Expr w) { return fold(plus, real(0), w); }, transpose(c), Mode::vec); },
                map([](Expr s) { return transpose(s); }, split(8, transpose(row))), Mode::unroll));
      },
      x({3, 5, 16}), Mode::group);
  EXPECT_EQ(check(e), "");
}
TEST(Folds, OfEverySecondElement) {  // windows with stride two, whose sums native code computes in another order of
                                     // lanes
  const auto windows = [](int64_t lanes, const std::function<Expr(Expr)>& folded) {
    return map(
        [&](Expr row) {
          return join(
              map([&](Expr w) { return map(folded, w, Mode::vec); }, split(lanes, slide(5, 2, 1, row)), Mode::unroll));
        },
        x({3, 67}), Mode::group);
  };
  for (const int64_t lanes : {4, 8, 16}) {
    const auto weighted = [](Expr window) {
      return fold([](Expr s, Expr v) { return call(Function::fma, {v, real(2.5), s}); }, real(-1), window);
    };
    EXPECT_EQ(check(windows(lanes, weighted)), "") << lanes;
    const auto largest = [](Expr window) { return reduce(Function::maximum, real(-INFINITY), window); };
    EXPECT_EQ(check(windows(lanes, largest)), "") << lanes;
    // The start value of each lane differs.
    const auto numbered = [](Expr window) {
      return plus(fold(plus, index(literal_integer(Scalar::i32, 1), window), window), real(3));
    };
    EXPECT_EQ(check(windows(lanes, numbered)), "") << lanes;
  }
}
TEST(Folds, VectorsRunInnermost) {  // loops inside a vec map, one of them around a fold
  Expr e = map([](Expr c) { return map([](Expr w) { return fold(plus, real(0), w); }, slide(3, 1, 1, c), Mode::seq); },
               transpose(x({9, 8})), Mode::vec);
  EXPECT_EQ(check(e), "");
  Expr inner = map(
      [](Expr r) {
        return fold(
            [](Expr acc, Expr s) {
              return map([](Expr p) { return fold(plus, get(0, p), get(1, p)); }, zip({acc, transpose(s)}), Mode::vec);
            },
            repeat(4, real(0)), split(3, r));
      },
      x({2, 6, 4}), Mode::group);
  EXPECT_EQ(check(inner), "");
}
TEST(Folds, Nested) {
  Expr sum = map([](Expr m) { return fold([](Expr acc, Expr r) { return fold(plus, acc, r); }, real(0), m); },
                 x({3, 4, 5}), Mode::group);
  EXPECT_EQ(check(sum), "");
  Expr inner =
      map([](Expr m) { return fold([](Expr acc, Expr r) { return plus(acc, fold(plus, real(0), r)); }, real(0), m); },
          x({3, 4, 5}), Mode::group);
  EXPECT_EQ(check(inner), "");
}
TEST(Folds, Arrays) {
  Expr sums = map(
      [](Expr m) {
        return fold(
            [](Expr acc, Expr r) {
              return map([](Expr p) { return plus(get(0, p), get(1, p)); }, zip({acc, r}), Mode::vec);
            },
            repeat(4, real(0)), m);
      },
      x({3, 5, 4}), Mode::group);
  EXPECT_EQ(check(sums), "");
}
TEST(Folds, Tuples) {  // the position of the first maximum
  Type pair = tuple_type({scalar_type(Scalar::f32), scalar_type(Scalar::i32)});
  (void)pair;
  Expr e = map(
      [](Expr r) {
        return get(1, fold(
                          [](Expr acc, Expr p) {
                            return select(call(Function::greater, {get(0, p), get(0, acc)}), p, acc);
                          },
                          tuple({real(-INFINITY), literal_integer(Scalar::i32, 0)}), zip({r, iota(9, Scalar::i32)})));
      },
      x({4, 9}), Mode::group);
  EXPECT_EQ(check(e), "");
}
TEST(Folds, TuplesNested) {  // the same over rows of rows, as in pooling
  Expr pairs = zip({x({4, 5}), split(5, iota(20, Scalar::i64))});
  auto larger = [](Expr best, Expr p) { return select(call(Function::greater, {get(0, p), get(0, best)}), p, best); };
  Expr start = tuple({real(-1e30), literal(Scalar::i64, -1)});
  Expr best = fold(
      [&](Expr outer, Expr row) {
        return fold(larger, outer, zip({get(0, row), get(1, row)}));
      },
      start, pairs);
  EXPECT_EQ(check(get(1, best)), "");
}

TEST(Folds, Softmax) {
  Expr e = map(
      [](Expr r) {
        return let(reduce(Function::maximum, real(-INFINITY), r), [&](Expr m) {
          return let(materialise(Memory::private_, map(
                                                       [&](Expr v) {
                                                         return call(Function::exp, {call(Function::subtract, {v, m})});
                                                       },
                                                       r, Mode::seq)),
                     [&](Expr exps) {
                       return let(fold(plus, real(0), exps), [&](Expr s) {
                         return map([&](Expr v) { return call(Function::divide, {v, s}); }, exps, Mode::seq);
                       });
                     });
        });
      },
      x({3, 10}), Mode::group);
  EXPECT_EQ(check(e, {}, 8), "");
  Expr recomputed = map(
      [](Expr r) {
        return let(reduce(Function::maximum, real(-INFINITY), r), [&](Expr m) {
          Expr exps = map([&](Expr v) { return call(Function::exp, {call(Function::subtract, {v, m})}); }, r);
          return let(fold(plus, real(0), exps), [&](Expr s) {
            return join(map(
                [&](Expr w) {
                  return map([&](Expr v) { return call(Function::divide, {v, s}); }, w, Mode::vec);
                },
                split(4, exps), Mode::seq));
          });
        });
      },
      x({3, 12}), Mode::group);
  EXPECT_EQ(check(recomputed, {}, 8), "");
}
TEST(Folds, LayerNormalisation) {
  Expr e = map(
      [](Expr r) {
        return let(call(Function::divide, {fold(plus, real(0), r), real(16)}), [&](Expr mean) {
          return let(fold(
                         [&](Expr acc, Expr v) {
                           return let(call(Function::subtract, {v, mean}), [&](Expr d) {
                             return plus(acc, call(Function::multiply, {d, d}));
                           });
                         },
                         real(0), r),
                     [&](Expr square) {
                       return let(call(Function::sqrt, {plus(call(Function::divide, {square, real(16)}), real(1e-5))}),
                                  [&](Expr s) {
                                    return map(
                                        [&](Expr v) {
                                          return call(Function::divide, {call(Function::subtract, {v, mean}), s});
                                        },
                                        r, Mode::vec);
                                  });
                     });
        });
      },
      x({3, 16}), Mode::group);
  EXPECT_EQ(check(e, {}, 4), "");
}
TEST(Folds, Scan) {
  EXPECT_EQ(check(map([](Expr r) { return scan(plus, real(0), r); }, x({4, 9}), Mode::group)), "");
  EXPECT_EQ(check(scan(
                [](Expr acc, Expr r) {
                  return map([](Expr p) { return plus(get(0, p), get(1, p)); }, zip({acc, r}), Mode::seq);
                },
                repeat(4, real(1)), x({5, 4}))),
            "");
}
TEST(Folds, OpenBordersAroundMaterialisedArrays) {  // elements of the border are read and discarded
  Expr sums = map([](Expr row) { return scan(plus, real(0), row); }, x({4, 7}));
  Expr padded = map([](Expr row) { return split(4, pad(0, 1, Border::undefined, row)); }, sums);
  Expr vectors = map(
      [](Expr row) {
        return map([](Expr v) { return map([](Expr s) { return identity(s); }, v, Mode::vec); }, row, Mode::unroll);
      },
      padded, Mode::group);
  EXPECT_EQ(check(map([](Expr row) { return slice(0, 7, join(row)); }, vectors)), "");
}

TEST(Folds, Materialise) {
  EXPECT_EQ(check(map(
                [](Expr r) {
                  return let(materialise(Memory::private_, map(twice, r, Mode::unroll)),
                             [](Expr k) { return store2(slide(3, 1, 1, k)); });
                },
                x({3, 8}), Mode::seq)),
            "");
  EXPECT_EQ(check(map(
                [](Expr r) {
                  return let(materialise(Memory::local, map(twice, r, Mode::local)), [](Expr k) {
                    return map([](Expr w) { return fold(plus, real(0), w); }, slide(3, 1, 1, k), Mode::local);
                  });
                },
                x({3, 8}), Mode::group)),
            "");
  EXPECT_NE(check(map([](Expr r) { return let(materialise(Memory::global, r), [](Expr k) { return store1(k); }); },
                      x({3, 8}), Mode::group)),
            "");
}
TEST(Folds, Scatter) {
  Expr e = store1(scatter(parameter("p", array({4}, Scalar::i64)), y({4}), x({9})));
  EXPECT_EQ(check(e, {}, 0, 0, 8), "");
}

// The kernel writes its result at computed positions: after the initial value, in order, and never out of bounds.
TEST(Scatters, WriteWherePositionsSay) {
  const auto p = [](Nat m, Scalar s = Scalar::i64) { return parameter("p", array({m}, s)); };
  EXPECT_EQ(check(scatter(p(40), y({40}), x({30})), {}, 0, -3, 35), "");
  EXPECT_EQ(check(scatter(p(1, Scalar::i32), y({1}), x({2})), {}, 0, -1, 2), "");
  EXPECT_EQ(check(scatter(p(7), map(twice, y({7})), map(twice, x({1}))), {}, 0, -1, 1), "");
  // Positions that would become other, valid positions if they were truncated to 32 bits.
  const Expr far = constant(Tensor::of(
      Scalar::i64, {6}, std::vector<int64_t>{(int64_t{1} << 32) + 1, INT64_MIN, 2, INT64_MAX, -(int64_t{1} << 32), 2}));
  EXPECT_EQ(check(scatter(far, y({6}), x({5}))), "");
  // The border of the stored array stays.
  EXPECT_EQ(check(slice(0, 9, scatter(p(20), y({20}), x({12}))), {}, 0, -3, 14), "");
}
TEST(Scatters, OfRows) {
  const auto p = [](Nat m) { return parameter("p", array({m}, Scalar::i64)); };
  const auto vectors = [](Expr row) {
    return join(
        map([](Expr four) { return map([](Expr v) { return v; }, four, Mode::vec); }, split(4, row), Mode::seq));
  };
  EXPECT_EQ(check(scatter(p(9), y({9, 8}), x({6, 8})), {}, 0, -3, 8), "");
  EXPECT_EQ(check(scatter(p(9), map(vectors, y({9, 8}), Mode::seq), map(vectors, x({6, 8}), Mode::seq)), {}, 0, -3, 8),
            "");
}
TEST(Scatters, OfWorkItems) {
  const Scalar s = Scalar::i64;
  const auto rows = [&](Mode mode, Nat n) {
    return map([](Expr t) { return scatter(get(0, t), get(1, t), get(2, t)); },
               zip({parameter("p", array({n, 9}, s)), y({n, 9}), x({n, 12})}), mode);
  };
  EmitOptions gpu;
  gpu.gpu = true;
  for (Mode mode : {Mode::view, Mode::group}) EXPECT_EQ(check(rows(mode, 5), {}, 0, -3, 14), "");
  EXPECT_EQ(check(rows(Mode::global, 70), gpu, 0, -3, 14), "");
  // Parallel columns: the positions of a vector's lanes differ.
  const Expr columns = map(
      [](Expr four) { return map([](Expr t) { return scatter(get(0, t), get(1, t), get(2, t)); }, four, Mode::vec); },
      split(4, zip({transpose(parameter("p", array({9, 8}, s))), transpose(y({9, 8})), transpose(x({12, 8}))})),
      Mode::group);
  EXPECT_EQ(check(transpose(join(columns)), {}, 0, -3, 14), "");
  // Parts of one row; the last part is a tail.
  const Expr starts = map([](Expr row) { return index(literal_integer(Scalar::i64, 0), row); }, split(4, iota(12, s)));
  for (Mode mode : {Mode::group, Mode::global}) {
    const Expr parts = map(
        [&](Expr part) {
          const Expr own = map(
              [&](Expr q) {
                return call(Function::subtract, {q, get(1, part)});
              },
              parameter("p", array({9}, s)));
          return scatter(own, y({9}), get(0, part));
        },
        zip({split(4, pad(0, 2, Border::undefined, x({10}))), starts}), mode);
    EXPECT_EQ(check(slice(0, 10, join(parts)), mode == Mode::global ? gpu : EmitOptions(), 0, -3, 14), "");
  }
}

TEST(Scatters, CombineWithWhatIsThere) {
  const Expr p = parameter("p", array({40}, Scalar::i64));
  for (Function function : {Function::add, Function::multiply, Function::maximum, Function::minimum}) {
    EXPECT_EQ(check(combined_at(function, p, y({40}), x({9})), {}, 0, -3, 12), "");
    EXPECT_EQ(check(combined_at(function, p, y({40}, Scalar::i32), x({9}, Scalar::i32)), {}, 0, -3, 12), "");
    EXPECT_EQ(check(combined_at(function, p, y({40}, Scalar::f16), x({9}, Scalar::f16)), {}, 0, -3, 12), "");
  }
  const Expr columns = map(
      [&](Expr four) {
        return map([&](Expr t) { return combined_at(Function::add, p, get(0, t), get(1, t)); }, four, Mode::vec);
      },
      split(4, zip({transpose(y({40, 8})), transpose(x({7, 8}))})), Mode::group);
  EXPECT_EQ(check(transpose(join(columns)), {}, 0, -3, 9), "");
}

// The array that the steps change is the result: each step sees all changes of the step before.
TEST(Steps, ChangeTheResult) {
  const auto in_vectors = [](Expr row) {
    return join(
        map([](Expr four) { return map([](Expr v) { return v; }, four, Mode::vec); }, split(4, row), Mode::seq));
  };
  const auto steps = [&](Expr row, Scalar scalar, const std::function<Expr(Expr)>& nest) {
    return fold(
        [&](Expr state, Expr number) {
          return let(reduce(Function::maximum, literal(scalar, -100), state), [&](Expr most) {
            const auto next = [&](Expr own) {
              return select(call(Function::equal, {own, most}), call(Function::subtract, {number, own}), own);
            };
            return nest(map(next, state));
          });
        },
        nest(row), y({7}, scalar));
  };
  for (const Scalar scalar : {Scalar::f32, Scalar::i32, Scalar::f16}) {
    EXPECT_EQ(check(steps(x({12}, scalar), scalar, in_vectors)), "");
    EXPECT_EQ(check(map([&](Expr row) { return steps(row, scalar, in_vectors); }, x({3, 8}, scalar), Mode::group)), "");
    EXPECT_EQ(check(steps(x({5}, scalar), scalar, [](Expr e) { return e; })), "");
  }
  // A step that changes elements depending on other elements would read its own writes.
  const auto mirrored = [&](Expr state, Expr) {
    return let(reduce(Function::maximum, real(0), state), [&](Expr most) {
      return map([&](Expr v) { return call(Function::add, {v, most}); }, slice(7, 8, state, -1));
    });
  };
  EXPECT_THAT(check(fold(mirrored, x({8}), y({2}))),
              HasSubstr("steps read other elements of the array that they change"));
  EXPECT_THAT(check(slice(0, 3, steps(x({5}), Scalar::f32, [](Expr e) { return e; }))),
              HasSubstr("a part of an array"));
}

TEST(Scans, WrittenAsTheyAreFormed) {
  const auto side_by_side = [](Expr columns) {
    return scan(
        [](Expr sums, Expr row) {
          return map([](Expr p) { return call(Function::add, {get(0, p), get(1, p)}); }, zip({sums, row}), Mode::vec);
        },
        repeat(4, real(0)), transpose(columns));
  };
  for (const int64_t n : {1, 2, 9})
    EXPECT_EQ(check(map([&](Expr c) { return side_by_side(c); }, split(4, x({8, n})), Mode::group)), "") << n;
  EXPECT_EQ(check(scan(plus, real(2), x({6}))), "");
  EXPECT_EQ(check(slice(1, 4, scan(plus, real(2), x({6})))), "");
}

// A constant border replaces parts of the values in some of a kernel's groups, items or steps. If the computation were
// skipped there, the select would be between a constant and uninitialised memory, and a driver may choose the memory.
TEST(Folds, CoveredByABorder) {
  const auto store3 = [](Expr e, Mode inner) {  // [n][rows][columns], one group per outermost index
    return map([&](Expr a) { return map([&](Expr b) { return store1(b, inner); }, a, Mode::unroll); }, e, Mode::group);
  };
  const auto columns = [](Expr e) { return transpose({1, 2, 0}, e); };  // [n][r][c] as [r][c][n]
  const auto outside = [](Expr e) { return transpose({2, 0, 1}, e); };
  for (int64_t n : {1, 2, 3}) {
    for (int64_t c : {3, 4, 8}) {
      const Mode inner = c == 3 ? Mode::unroll : Mode::vec;
      Expr sums = map_at(
          2, [](Expr line) { return scan(plus, real(0), line); }, columns(x({n, 3, c})));
      Expr before = map_at(
          2, [&](Expr line) { return slice(0, n, pad(1, 0, real(0), line)); }, sums);
      EXPECT_EQ(check(store3(outside(before), inner)), "") << n << " " << c;
      Expr after = map_at(
          2, [&](Expr line) { return slice(1, n, pad(0, 1, real(7), line)); }, sums);
      EXPECT_EQ(check(store3(outside(after), inner)), "") << n << " " << c;
      // The same for a fold in every element of the middle.
      Expr folded = map_at(
          3, [](Expr v) { return fold(plus, real(1), v); }, x({n, 3, c, 5}));
      EXPECT_EQ(check(store3(pad(1, 1, repeat({3, c}, real(-3)), folded), inner)), "") << n << " " << c;
      EXPECT_EQ(check(store3(map([&](Expr a) { return pad(1, 1, repeat(c, real(-3)), a); }, folded), inner)), "");
      Expr others = map_at(
          3, [](Expr v) { return fold([](Expr s, Expr w) { return operator_multiply(s, w); }, real(1), v); },
          x({n, 3, c, 5}));
      EXPECT_EQ(check(store3(concat({folded, others, folded}), inner)), "") << n << " " << c;
    }
  }
}

// A transposed convolution of stride 2: the lanes of a vector read other elements, or none. Halide makes two scalars a
// ramp, whose second lane is a rounded sum.
TEST(Folds, InVectorsOfTwoReadElementsOfTheirOwn) {
  const Expr term = testing::parsed(R"(%x : [1][2][3][3]f32
|> map2d (split 1 >> map (pad 0 1 (fill 0 [3])) >> join >> slice 0 5)
|> map2d (pad 1 2 (fill 0 [3]))
|> map3d (split 1 >> map (pad 0 1 0) >> join >> slice 0 5)
|> map3d (pad 1 2 0)
|> map (\a.
    %w : [1][2][3][3]f32
    |> map (\b.
        a
        |> map (slide 3 1)
        |> map3d (slide 3 1)
        |> transpose (1 3 0 2)
        |> map2d (\c.
            zip(transpose (1 2 0) c, transpose (1 2 0) b)
            |> fold (\d (e, f).
                zip(e, f)
                |> fold (\g (h, i). zip(h, i) |> fold (\j (k, l). fma(k, l, j)) g) d) 0f32)))
|> join
|> map group(1) (split 6
    >> map (map (split 6) >> transpose)
    >> map group(0) (map group(2) (map unroll (split 2 >> map unroll (map vec (\a. a)) >> join)))
    >> map (transpose >> map join)
    >> join)
|> split 1)");
  EXPECT_EQ(check(term), "");
}

}  // namespace hoist::folds_test
