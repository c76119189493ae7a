// Compares emitted kernels with the interpreter, bit for bit, for the mappings that strategies generate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "ir/plan/plan.h"
#include "tests/halide/runner.h"
#include "tests/halide/small_terms.h"

namespace hoist::emit_test {

using testing::array;
using testing::check;
using testing::copy;
using testing::zero;

// acc : [R][C], a : [R], b : [C] -> acc + a x b, C vectorised by 16
Expr row_tile(Expr acc, Expr a, Expr b, int64_t vector = 16) {
  return map(
      [&](Expr p) {
        return join(map(
            [&](Expr q) {
              return map(
                  [&](Expr r) {
                    return call(Function::fma, {get(1, p), get(1, r), get(0, r)});
                  },
                  zip({get(0, q), get(1, q)}), Mode::vec);
            },
            zip({split(vector, get(0, p)), split(vector, b)}), Mode::unroll));
      },
      zip({acc, a}), Mode::unroll);
}

Expr gemm(int64_t m, int64_t n, int64_t k, int64_t rows, int64_t columns) {
  Expr a = parameter("a", array({m, k})), b = parameter("b", array({n / columns, k, columns}));
  Expr tiles = map(
      [&](Expr band) {
        return map(
            [&](Expr panel) {
              Expr sum = fold([&](Expr acc, Expr p) { return row_tile(acc, get(0, p), get(1, p)); },
                              repeat({rows, columns}, zero()), zip({transpose(band), panel}));
              return map([](Expr r) { return join(map([](Expr v) { return copy(v); }, split(16, r), Mode::unroll)); },
                         sum, Mode::unroll);
            },
            b, Mode::group, 0);
      },
      split(rows, a), Mode::group, 1);
  return join(map([](Expr band) { return map([](Expr x) { return join(x); }, transpose(band)); }, tiles));
}

TEST(Emit, Elementwise) {
  Expr x = parameter("x", array({64})), y = parameter("y", array({64}));
  Expr e = join(map(
      [](Expr v) {
        return map(
            [](Expr p) {
              return call(Function::maximum, {operator_add(get(0, p), get(1, p)), literal(Scalar::f32, 0)});
            },
            v, Mode::vec);
      },
      split(16, zip({x, y})), Mode::group));
  EXPECT_EQ(check(e), "");
}

// A driver may split vector loads at unaligned addresses into one load per lane.
TEST(Emit, SmallNumbersAreLoadedTogether) {
  for (const Scalar scalar : {Scalar::u8, Scalar::i8, Scalar::i16, Scalar::u16}) {
    for (const int64_t lanes : {4, 8, 16}) {
      const auto vectors = [&](Expr row) {
        return join(map([](Expr v) { return map([](Expr s) { return identity(s); }, v, Mode::vec); }, split(lanes, row),
                        Mode::seq));
      };
      const Expr x = parameter("x", array({3, 37}, scalar));
      const Expr e =
          map([&](Expr row) { return pad(1, 0, Border::undefined, vectors(slice(3, 32, row))); }, x, Mode::group);
      EXPECT_EQ(check(e), "");
      const auto kernel = emit(e);
      ASSERT_TRUE(kernel.ok());
      EXPECT_NE(kernel->source.find("hoist_load" + std::to_string(lanes) + "("), std::string::npos) << kernel->source;
      EXPECT_NE(kernel->source.find("hoist_store" + std::to_string(lanes) + "("), std::string::npos) << kernel->source;
      EXPECT_EQ(kernel->source.find("vload"), std::string::npos) << kernel->source;
    }
  }
}

// A column is stored lane by lane at constant offsets: no vector of indices is computed.
TEST(Emit, ColumnsAreStoredLaneByLane) {
  for (const Scalar scalar : {Scalar::u8, Scalar::f32}) {
    const Expr x = parameter("x", array({5, 16}, scalar));
    const Expr e = transpose(
        map([](Expr row) { return map([](Expr s) { return identity(s); }, row, Mode::vec); }, x, Mode::group));
    EXPECT_EQ(check(e), "");
    const auto kernel = emit(e);
    ASSERT_TRUE(kernel.ok());
    EXPECT_NE(kernel->source.find("x)[75] ="), std::string::npos) << kernel->source;
    EXPECT_EQ(kernel->source.find("(0, 1, 2"), std::string::npos) << kernel->source;
  }
}

TEST(Emit, FunctionsOfLiterals) {  // constant for all work-items, but not evaluated on the host
  for (Scalar kind : {Scalar::f32, Scalar::f16}) {
    Expr x = parameter("x", array({4, 16}, kind)), two = call(Function::sqrt, {literal(kind, 4)});
    auto sum = [&](Expr row) { return fold([](Expr a, Expr b) { return operator_add(a, b); }, two, row); };
    EXPECT_EQ(check(map(sum, x, Mode::group)), "");
    EXPECT_EQ(check(map([&](Expr row) { return map([&](Expr v) { return operator_add(v, two); }, row, Mode::vec); }, x,
                        Mode::group)),
              "");
  }
}

TEST(Emit, FoldsWhoseStepsAreAllTheSame) {
  for (const Mode mode : {Mode::seq, Mode::unroll}) {
    for (Scalar kind : {Scalar::f32, Scalar::i32}) {
      auto times = [&](Expr v) {
        return fold([](Expr a, Expr b) { return operator_add(a, b); }, literal(kind, 0), repeat(3, v), mode);
      };
      EXPECT_EQ(check(map(times, parameter("x", array({16}, kind)), Mode::group)), "");
      EXPECT_EQ(check(map([&](Expr row) { return map(times, row, Mode::vec); }, parameter("x", array({4, 16}, kind)),
                          Mode::group)),
                "");
    }
  }
  // Two accumulators, both independent of the element.
  Expr x = parameter("x", array({4, 5}));
  auto doubled = [](Expr s, Expr) {
    return tuple({operator_add(get(0, s), get(1, s)), operator_add(get(1, s), literal(Scalar::f32, 1))});
  };
  auto counted = [&](Expr row) {
    return get(0, fold(doubled, tuple({literal(Scalar::f32, 0), literal(Scalar::f32, 1)}), row));
  };
  EXPECT_EQ(check(map(counted, x, Mode::group)), "");
}

TEST(Emit, RegisterTiledMatrixProduct) { EXPECT_EQ(check(gemm(16, 128, 24, 8, 64)), ""); }

TEST(Emit, ThreadsDivideTheLoopWhosePartsHaveLeastInCommon) {
  const auto grid = [](Expr e) {
    const auto kernel = emit(e, {.native = {"x86-64-v3"}});
    EXPECT_TRUE(kernel);
    return kernel ? kernel->global : std::array<uint64_t, 3>{};
  };
  using Grid = std::array<uint64_t, 3>;
  // Rows by columns, with rows outermost: 2 by 2 for a short left operand, 64 by 2 for a long one.
  EXPECT_EQ(grid(gemm(16, 128, 24, 8, 64)), (Grid{2, 2, 1}));
  EXPECT_EQ(grid(gemm(512, 128, 8, 8, 64)), (Grid{128, 1, 1}));
  EXPECT_EQ(grid(gemm(16, 64, 24, 8, 64)), (Grid{2, 1, 1}));
}

// x : [h+2][w+2][c], weights [o/to][3][3][c][to], bias [o/to][to] -> [h][w][o], `tile` pixels at a time; w need not be
// a multiple of the tile if x has spare columns.
Expr convolution(int64_t h, int64_t w, int64_t c, int64_t o, int64_t tile, int64_t to) {
  int64_t tiles = (w + tile - 1) / tile, columns = tiles * tile + 2;
  Expr x = parameter("x", array({h + 2, columns, c})), weights = parameter("weights", array({o / to, 3, 3, c, to})),
       bias = parameter("bias", array({o / to, to}));
  Expr bands = slide(3, 1, 1, x);  // [h][3][columns][c]
  Expr e = map(
      [&](Expr wb) {
        return map(
            [&](Expr band) {
              Expr windows = map([](Expr r) { return slide(3, 1, 1, r); }, band);  // [3][columns - 2][3][c]
              return map(
                  [&](Expr px) {  // [tile][3][3][c]
                    Expr sum = fold(
                        [&](Expr acc, Expr p) {
                          return fold(
                              [&](Expr acc2, Expr p2) {
                                return fold([&](Expr acc3, Expr p3) { return row_tile(acc3, get(0, p3), get(1, p3)); },
                                            acc2, zip({transpose(get(0, p2)), get(1, p2)}));
                              },
                              acc, zip({transpose(get(0, p)), get(1, p)}));
                        },
                        repeat({tile, to}, zero()), zip({transpose(px), get(0, wb)}));
                    return map(
                        [&](Expr r) {
                          return join(map(
                              [](Expr p) {
                                return map(
                                    [](Expr q) {
                                      return call(Function::maximum, {operator_add(get(0, q), get(1, q)), zero()});
                                    },
                                    zip({get(0, p), get(1, p)}), Mode::vec);
                              },
                              zip({split(16, r), split(16, get(1, wb))}), Mode::unroll));
                        },
                        sum, Mode::unroll);
                  },
                  split(tile, transpose(windows)), Mode::group, 0);
            },
            bands, Mode::group, 1);
      },
      zip({weights, bias}), Mode::group, 2);
  // [o/to][h][tiles][tile][to] -> [h][w][o]
  Expr rows = map([&](Expr ob) { return map([&](Expr r) { return slice(0, w, join(r)); }, ob); }, e);
  return map([](Expr r) { return map([](Expr px) { return join(px); }, transpose(r)); }, transpose(rows));
}

TEST(Emit, DirectConvolution) { EXPECT_EQ(check(convolution(4, 14, 8, 32, 7, 16)), ""); }
TEST(Emit, DirectConvolutionWithTail) { EXPECT_EQ(check(convolution(3, 11, 8, 64, 4, 32)), ""); }

// Halide numbers its names across the whole process; the text must not depend on them.
TEST(Emit, SameTermSameText) {
  Expr e = convolution(4, 14, 8, 32, 7, 16);
  auto first = emit(e);
  auto other = emit(gemm(16, 128, 24, 8, 64));
  auto second = emit(e);
  ASSERT_TRUE(first.ok() && other.ok() && second.ok());
  EXPECT_EQ(first->source, second->source);
  EXPECT_EQ(first->schedule, second->schedule);
  EXPECT_EQ(first->source.find('$'), std::string::npos);
  EXPECT_EQ(first->source.find("avx"), std::string::npos);
  EXPECT_EQ(first->source.find("dummy"), std::string::npos);
  EXPECT_NE(first->source.find("reqd_work_group_size(1, 1, 1)"), std::string::npos);
  EXPECT_EQ(first->arguments, (std::vector<std::string>{"weights", "bias", "x", "result"}))
      << ::testing::PrintToString(first->arguments);
}

// Chains whose tree size is 2^40 times their graph size: of arrays, of scalars above a fold, of arrays read through two
// views, and of lets in a vector.
TEST(Emit, SharedTermsAreEvaluatedOnce) {
  constexpr int64_t levels = 40;
  auto twice = [](Expr p) { return operator_add(get(0, p), get(1, p)); };
  Expr arrays = parameter("x", array({8}));
  for (int64_t i = 0; i < levels; ++i) arrays = map(twice, zip({arrays, arrays}));
  Expr sums = map(
      [](Expr row) {
        Expr sum = reduce(Function::add, zero(), row);
        for (int64_t i = 0; i < levels; ++i) sum = operator_add(sum, sum);
        return sum;
      },
      parameter("x", array({8, 6})), Mode::seq);
  Expr adjacent_sums = parameter("x", array({8 + levels}));
  for (int64_t n = 8 + levels - 1; n >= 8; --n) {
    adjacent_sums = map(twice, zip({slice(0, n, adjacent_sums), slice(1, n, adjacent_sums)}));
  }
  Expr limited = map(
      [](Expr element) {
        for (int64_t i = 0; i < levels; ++i) {
          element = let(operator_add(element, element), [](Expr v) {
            const Expr most = literal(Scalar::f32, 3);
            return select(call(Function::greater, {v, most}), most, v);
          });
        }
        return element;
      },
      parameter("x", array({8})), Mode::vec);
  struct Case {
    Expr term;
    size_t most_text;
  };
  for (const auto& [term, most_text] :
       {Case{copy(arrays), 4000}, {sums, 4000}, {copy(adjacent_sums), 80000}, {limited, 8000}}) {
    auto kernel = emit(term);
    ASSERT_TRUE(kernel.ok()) << kernel.errors()[0].text();
    EXPECT_LT(kernel->source.size(), most_text);
    EXPECT_EQ(check(term), "");
  }
}

// Counts vunpcklps on 16 lanes.
int count_unpackings(const std::string& object) {
  int found = 0;
  for (size_t i = 0; i + 4 < object.size(); ++i) {
    const auto byte = [&](size_t k) { return static_cast<unsigned char>(object[i + k]); };
    found += byte(0) == 0x62 && (byte(1) & 0x0f) == 1 && byte(4) == 0x14 ? 1 : 0;
  }
  return found;
}

// Vectors across lines, loaded along the lines: whole blocks of steps, partial blocks, and tails.
TEST(Emit, BlocksAreTransposedInRegisters) {
  for (const Scalar scalar : {Scalar::f32, Scalar::u8}) {
    for (const int64_t lanes : {4, 8, 16}) {
      for (const int64_t steps : {3, 14, 28, 37}) {
        Expr x = parameter("x", array({3, 2 * lanes, steps + 20}, scalar));
        Expr term = map(
            [&](Expr lines) {
              return map([](Expr rows) { return map([](Expr row) { return copy(row); }, rows, Mode::seq); },
                         map([](Expr tile) { return transpose(tile); },
                             split(lanes, map([&](Expr line) { return slice(1, steps, line); }, lines))),
                         Mode::seq);
            },
            x, Mode::group, 0);
        EmitOptions best;
        best.native = {"x86-64-v4"};
        auto kernel = emit(term, best);
        ASSERT_TRUE(kernel.ok()) << kernel.errors()[0].text();
        if (scalar == Scalar::f32 && lanes == 16) {
          EXPECT_EQ(count_unpackings(kernel->objects[0]) > 0, steps >= 4) << steps;
        }
        for (const std::string& target : testing::native_targets_here()) {
          EmitOptions native;
          native.native = {target};
          EXPECT_EQ(check(term, native, 0, 0, 255), "") << target << ", " << lanes << " lanes, " << steps << " steps";
        }
      }
    }
  }
}

TEST(Emit, AFoldThatAParameterSwitchesOff) {
  Expr x = parameter("x", array({4, 16})), on = parameter("on", scalar_type(Scalar::boolean));
  Expr e = map(
      [&](Expr row) {
        Expr sum = reduce(Function::add, zero(), row);
        return map([&](Expr v) { return select(on, operator_add(v, sum), v); }, row, Mode::vec);
      },
      x, Mode::group);
  EXPECT_EQ(check(e), "");
}

// A vector maximum in f16 under a condition that is false at run time: values that were not computed must not be used.
TEST(Emit, AFoldOfVectorsThatDataSwitchOff) {
  Expr windows = parameter("windows", array({14, 4, 112})), other = parameter("other", array({14, 112}));
  Expr level = parameter("level", scalar_type(Scalar::f32));
  for (double limit : {-3.0, 3.0}) {  // the data are between them
    Expr on = call(Function::less, {level, literal(Scalar::f32, limit)});
    Expr e = map(
        [&](Expr row) {
          Expr halves = map([](Expr w) { return map([](Expr v) { return cast(Scalar::f16, v); }, w); }, get(0, row));
          Expr vectors = map(
              [&](Expr pair) {
                return map(
                    [&](Expr lane) {
                      Expr most = fold(
                          [](Expr a, Expr b) {
                            return call(Function::maximum, {a, b});
                          },
                          literal(Scalar::f16, -65504), get(0, lane));
                      return select(on, cast(Scalar::f32, most), get(1, lane));
                    },
                    zip({get(0, pair), get(1, pair)}), Mode::vec);
              },
              zip({split(8, transpose(halves)), split(8, get(1, row))}), Mode::unroll);
          return join(vectors);
        },
        zip({windows, other}), Mode::group);
    EXPECT_EQ(check(e), "") << limit;
  }
}

TEST(Emit, ErrorsNameThePattern) {
  auto message = [](Expr e) {
    auto kernel = emit(e);
    return kernel.ok() ? std::string() : kernel.errors()[0].text();
  };
  Expr x = parameter("x", array({12}));
  EXPECT_NE(message(map([](Expr v) { return identity(v); }, x, Mode::vec)).find("vec map over 12"), std::string::npos);
  EXPECT_NE(
      message(map([](Expr r) { return let(materialise(Memory::global, r), [](Expr v) { return copy(v, Mode::seq); }); },
                  split(4, x)))
          .find("its own kernel"),
      std::string::npos);
  EXPECT_NE(message(map([](Expr v) { return tuple({v, v}); }, x)).find("result of type"), std::string::npos);
  EXPECT_NE(message(parameter("y", array({Nat::name("n")}))).find("symbolic"), std::string::npos);
  EXPECT_NE(message(constant(Tensor(Scalar::f32, {100}))).find("100 elements"), std::string::npos);
}

TEST(Emit, Speed) {
  if (std::getenv("HOIST_SPEED") == nullptr) GTEST_SKIP() << "set HOIST_SPEED to measure";
  auto time = [](const char* what, Expr e, double operations) {
    auto kernel = emit(e);
    ASSERT_TRUE(kernel.ok()) << kernel.errors()[0].text();
    Bindings inputs;
    for (Expr p : parameters_of(e)) inputs[p->name] = testing::random_tensor(p->type, 1);
    double seconds = 0;
    auto out = testing::run(*kernel, "kernel_0", inputs, Scalar::f32, shape_of(e->type), 0, &seconds);
    ASSERT_TRUE(out.ok()) << out.errors()[0].text();
    std::printf("%s: %.3f ms, %.1f GFLOP/s\n", what, seconds * 1e3, operations / seconds * 1e-9);
  };
  time("gemm 1024", gemm(1024, 1024, 1024, 8, 64), 2.0 * 1024 * 1024 * 1024);
  time("conv 56x56x64", convolution(56, 56, 64, 64, 7, 64), 2.0 * 56 * 56 * 64 * 64 * 9);
  time("conv 13x13x256", convolution(13, 13, 256, 256, 7, 64), 2.0 * 13 * 13 * 256 * 256 * 9);
}

// Rows of sixteen whose flag is set are sums over a matrix, at no cost for the other rows.
TEST(Emit, RareValuesAreComputedInABranch) {
  const auto row = [](Expr p) {
    const Expr sums = fold(
        [](Expr acc, Expr line) {
          return map([](Expr q) { return operator_add(get(0, q), get(1, q)); }, zip({acc, line}), Mode::vec);
        },
        repeat(16, zero()), parameter("m", array({9, 16})));
    const Expr doubled =
        materialise(Memory::private_, map([](Expr v) { return operator_add(v, v); }, get(1, p), Mode::vec));
    return map(
        [&](Expr q) {
          const Expr is_set = call(Function::greater, {get(0, p), zero()});
          return call(Function::maximum, {rarely(is_set, get(0, q), get(1, q)), literal(Scalar::f32, -1)});
        },
        zip({sums, doubled}), Mode::vec);
  };
  const Expr e = map(row, zip({parameter("flags", array({12})), parameter("x", array({12, 16}))}), Mode::group);
  EXPECT_EQ(check(e), "");
  const auto kernel = emit(e);
  ASSERT_TRUE(kernel.ok()) << kernel.errors()[0].text();
  EXPECT_THAT(kernel->source, ::testing::Not(::testing::HasSubstr("hoist_rarely")));
  // The sums are only in the first branch, before the other branch begins.
  const size_t branch = kernel->source.find("if ("), otherwise = kernel->source.find("else");
  ASSERT_NE(branch, std::string::npos) << kernel->source;
  ASSERT_NE(otherwise, std::string::npos) << kernel->source;
  EXPECT_GT(kernel->source.find("for ("), branch) << kernel->source;
  EXPECT_EQ(kernel->source.find("for (", otherwise), std::string::npos) << kernel->source;
}

// PoCL copies code that depends on a work-item's number into each of the three forms that it generates of a kernel.
TEST(Emit, FunctionsOfGroupsAskForNoNumberOfAWorkItem) {
  EmitOptions options;
  const auto alone = emit(testing::products_of_panels(2, 2, 64), options);
  options.is_fused = true;
  const auto joined = emit(testing::products_of_panels(2, 2, 64), options);
  ASSERT_TRUE(alone.ok() && joined.ok());
  EXPECT_THAT(alone->source, ::testing::HasSubstr("get_local_id(0)"));
  EXPECT_THAT(joined->source, ::testing::HasSubstr(group_function(options.kernel_name) + "("));
  EXPECT_THAT(joined->source, ::testing::Not(::testing::HasSubstr("get_local_id")));
}

}  // namespace hoist::emit_test
