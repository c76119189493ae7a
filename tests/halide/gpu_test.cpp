// Tests the GPU mapping: tiles in local memory and register tiles per work-item. Sizes are small, since the tests also
// run under Oclgrind.
#include <gtest/gtest.h>

#include "ir/text/text.h"
#include "tests/halide/runner.h"

namespace hoist::gpu_test {

using testing::check;

Type array(const std::vector<Nat>& sizes) { return array_type(sizes, scalar_type(Scalar::f32)); }
Expr zero() { return literal(Scalar::f32, 0); }

// A chunk of rows in local memory, copied by all work-items, four elements each at a time.
Expr stage(Expr chunk, int64_t columns, int64_t ty, int64_t tx) {
  Expr flat = split(ty, split(tx, split(4, join(chunk))));
  Expr nest = map(
      [](Expr a) {
        return map(
            [](Expr b) {
              return map([](Expr v) { return map([](Expr s) { return s; }, v, Mode::vec); }, b, Mode::local, 0);
            },
            a, Mode::local, 1);
      },
      flat, Mode::unroll);
  return split(columns, materialise(Memory::local, join(join(join(nest)))));
}

Expr gemm(int64_t m, int64_t n, int64_t k, int64_t bm, int64_t bn, int64_t ty, int64_t tx, int64_t kc) {
  int64_t ry = bm / ty;
  Expr a = parameter("a", array({m, k})), b = parameter("b", array({k, n}));
  Expr e = map(
      [&](Expr as) {
        return map(
            [&](Expr bs) {
              Expr a_chunks = transpose(map([&](Expr row) { return split(kc, row); }, as));
              Expr acc = fold(
                  [&](Expr acc, Expr ab) {
                    return let(stage(get(0, ab), kc, ty, tx), [&](Expr al) {
                      return let(stage(get(1, ab), bn, ty, tx), [&](Expr bl) {
                        Expr at = split(ry, al);
                        Expr bt = transpose(map([&](Expr row) { return transpose(split(tx, split(4, row))); }, bl));
                        return map(
                            [&](Expr p) {
                              return map(
                                  [&](Expr q) {
                                    return fold(
                                        [&](Expr acc2, Expr r) {
                                          return map(
                                              [&](Expr s) {
                                                return map(
                                                    [&](Expr u) {
                                                      return map(
                                                          [&](Expr w) {
                                                            return call(Function::fma,
                                                                        {get(1, s), get(1, w), get(0, w)});
                                                          },
                                                          zip({get(0, u), get(1, u)}), Mode::vec);
                                                    },
                                                    zip({get(0, s), get(1, r)}), Mode::unroll);
                                              },
                                              zip({acc2, get(0, r)}), Mode::unroll);
                                        },
                                        get(0, q), zip({transpose(get(1, p)), get(1, q)}));
                                  },
                                  zip({get(0, p), bt}), Mode::local, 0);
                            },
                            zip({acc, at}), Mode::local, 1);
                      });
                    });
                  },
                  repeat({ty, tx, ry, bn / tx / 4, 4}, zero()), zip({a_chunks, split(kc, bs)}));
              return map(
                  [](Expr y) {
                    return map(
                        [](Expr x) {
                          return map(
                              [](Expr r) {
                                return map([](Expr v) { return map([](Expr s) { return identity(s); }, v, Mode::vec); },
                                           r, Mode::unroll);
                              },
                              x, Mode::unroll);
                        },
                        y, Mode::local, 0);
                  },
                  acc, Mode::local, 1);
            },
            transpose(map([&](Expr row) { return split(bn, row); }, b)), Mode::group, 0);
      },
      split(bm, a), Mode::group, 1);
  Expr tile = map(
      [](Expr mo) {
        return map(
            [](Expr no) {
              return join(
                  map([](Expr y) { return map([](Expr r) { return join(join(transpose(r))); }, transpose(y)); }, no));
            },
            mo);
      },
      e);
  return join(map([](Expr mo) { return map([](Expr row) { return join(row); }, transpose(mo)); }, tile));
}

TEST(Gpu, MatrixProductWithLocalPanels) {
  EmitOptions gpu;
  gpu.gpu = true;
  Expr e = gemm(32, 32, 16, 16, 16, 4, 2, 8);
  auto kernel = emit(e, gpu);
  ASSERT_TRUE(kernel.ok()) << kernel.errors()[0].text();
  EXPECT_EQ(kernel->local, (std::array<uint64_t, 3>{2, 4, 1}));
  EXPECT_EQ(kernel->local_bytes, 4u * (16 * 8 + 8 * 16));
  // The accumulators of one work-item: 4 rows by 2 vectors of 4.
  EXPECT_NE(kernel->source.find("[32]"), std::string::npos) << kernel->source;
  // Every barrier orders local memory, so that oclgrind --data-races finds no race.
  EXPECT_NE(kernel->source.find("barrier(CLK_LOCAL_MEM_FENCE);"), std::string::npos);
  EXPECT_EQ(kernel->source.find("barrier(0"), std::string::npos);
  EXPECT_EQ(check(e, gpu), "");
}

// A matmul with tiles distributed over work-items and registers; the folds fill tiles in local memory.
Expr product_with_local_tiles(int64_t m, int64_t n, int64_t k, int64_t ty, int64_t ry, int64_t tx, int64_t rx,
                              int64_t depth) {
  Expr a = parameter("a", array({m, k})), b = parameter("b", array({k, n}));
  Expr product = map(
      [&](Expr row) {
        return map(
            [&](Expr column) {
              return fold(
                  [](Expr sum, Expr chunk) {
                    return fold(
                        [](Expr s, Expr p) {
                          return call(Function::fma, {get(0, p), get(1, p), s});
                        },
                        sum,
                        zip({materialise(Memory::local, get(0, chunk)), materialise(Memory::local, get(1, chunk))}));
                  },
                  zero(), zip({split(depth, row), split(depth, column)}));
            },
            transpose(b));
      },
      a);
  auto keep = [](Mode mode, int dimension, std::function<Expr(Expr)> inside) {
    return [=](Expr x) { return map(inside, x, mode, dimension); };
  };
  auto one = [](Expr s) { return s; };
  Expr tiles = map([&](Expr band) { return transpose(map([&](Expr row) { return split(tx * rx * 4, row); }, band)); },
                   split(ty * ry, product));
  Expr items = map(
      [&](Expr band) {
        return map(
            [&](Expr tile) {
              Expr columns = map([&](Expr row) { return transpose(split(tx, split(4, row))); }, tile);
              return map([](Expr rows) { return transpose(rows); }, split(ry, columns));
            },
            band);
      },
      tiles);
  Expr nest = keep(
      Mode::group, 1,
      keep(Mode::group, 0,
           keep(Mode::local, 1,
                keep(Mode::local, 0, keep(Mode::unroll, 0, keep(Mode::unroll, 0, keep(Mode::vec, 0, one)))))))(items);
  return map(
      [&](Expr band) {
        return map(
            [&](Expr tile) {
              Expr columns = join(map([](Expr rows) { return transpose(rows); }, tile));
              return map([](Expr row) { return join(join(transpose(row))); }, columns);
            },
            band);
      },
      nest);
}

TEST(Gpu, PanelsInsideWorkItems) {
  EmitOptions gpu;
  gpu.gpu = true;
  Expr tiles = product_with_local_tiles(32, 32, 24, 4, 2, 2, 2, 8);
  Expr e = join(map([](Expr band) { return map([](Expr row) { return join(row); }, transpose(band)); }, tiles));
  auto kernel = emit(e, gpu);
  ASSERT_TRUE(kernel.ok()) << kernel.errors()[0].text();
  EXPECT_EQ(kernel->local, (std::array<uint64_t, 3>{2, 4, 1}));
  EXPECT_EQ(kernel->local_bytes, 4u * (8 * 8 + 8 * 16));

  EXPECT_NE(kernel->source.find("[16]"), std::string::npos) << kernel->source;
  EXPECT_EQ(check(e, gpu), "");
}

// A matmul with a 4 by 8 tile per work-group, where further work-items compute parts of the sums: `steps` is one part's
// sum of the pairs p.0, p.1.
Expr product_in_parts(const std::string& steps) {
  const std::string text =
      "%a : [10][64]f32 |> map (\\row. %b : [64][24]f32 |> transpose |> map (\\column."
      " let parts = zip(split 16 row, split 16 column) |> map local(2) (\\p. " +
      steps +
      ") |> materialise local in fold (\\s v. s + v) 0f32 parts + 1f32))"
      " |> pad 0 2 undefined |> split 4 |> map (map (split 8) >> transpose)"
      " |> map group(0) (map group(2) (map (split 4 >> split 2 >> transpose) >> split 2 >> map transpose"
      " >> map local(1) (map local(0) (map unroll (map unroll (map vec (\\v. v))))) >> map transpose >> join"
      " >> map (transpose >> join >> join)))"
      " |> map (transpose >> map join) |> join |> slice 0 10";
  auto e = parse(text);
  HOIST_CHECK(e.ok(), "the term parses: " + (e.ok() ? "" : e.errors()[0].text()));
  return *e;
}

TEST(Gpu, WorkItemsShareSums) {
  EmitOptions gpu;
  gpu.gpu = true;
  const Expr direct = product_in_parts("zip(p.0, p.1) |> fold (\\s e. fma(e.0, e.1, s)) 0f32");
  const auto kernel = emit(direct, gpu);
  ASSERT_TRUE(kernel.ok()) << kernel.errors()[0].text();
  EXPECT_EQ(kernel->local, (std::array<uint64_t, 3>{2, 2, 4})) << "parts are the work-items' last dimension";
  EXPECT_EQ(kernel->local_bytes, 4u * (4 * 4 * 8)) << "four parts of a tile";
  EXPECT_EQ(check(direct, gpu), "");

  const Expr tiled = product_in_parts(
      "zip(split 8 p.0, split 8 p.1) |> fold (\\s c. zip(materialise local c.0, materialise local c.1)"
      " |> fold unroll (\\t e. fma(e.0, e.1, t)) s) 0f32");
  const auto with_tiles = emit(tiled, gpu);
  ASSERT_TRUE(with_tiles.ok()) << with_tiles.errors()[0].text();
  EXPECT_EQ(with_tiles->local, kernel->local);
  EXPECT_EQ(with_tiles->local_bytes, 4u * (4 * (4 + 8) * 8)) << "the parts' memory is that of what they read";
  EXPECT_EQ(check(tiled, gpu), "");
}

TEST(Gpu, PartsOfSumsAreNumbers) {
  EmitOptions gpu;
  gpu.gpu = true;
  auto e = parse(
      "%a : [4][8][3]f32 |> map group(0) (\\x. %i : [2]f32 |> map local(0) (\\i."
      " let parts = x |> map local(1) (\\y. map (+ i) y) |> materialise local in"
      " parts |> map (fold (\\s v. s + v) 0f32) |> fold (\\s v. s + v) 0f32))");
  ASSERT_TRUE(e.ok()) << e.errors()[0].text();
  const auto kernel = emit(*e, gpu);
  ASSERT_FALSE(kernel.ok());
  EXPECT_NE(kernel.errors()[0].text().find("keep numbers"), std::string::npos) << kernel.errors()[0].text();
}

TEST(Gpu, RowsInGroups) {  // softmax with one group per row: the sums are computed once and shared
  EmitOptions gpu;
  gpu.gpu = true;
  Expr x = parameter("x", array({5, 24}));
  Expr e = map(
      [](Expr r) {
        return let(reduce(Function::maximum, literal(Scalar::f32, -1e30), r), [&](Expr m) {
          return map([&](Expr v) { return call(Function::subtract, {v, m}); }, r, Mode::local);
        });
      },
      x, Mode::group);
  EXPECT_EQ(check(e, gpu), "");
}

TEST(Gpu, FoldsInsideWorkItems) {
  EmitOptions gpu;
  gpu.gpu = true;
  Expr x = parameter("x", array({6, 8, 10}));
  Expr e = map(
      [](Expr p) {
        return map([](Expr r) { return fold([](Expr a, Expr b) { return operator_add(a, b); }, zero(), r); }, p,
                   Mode::local);
      },
      x, Mode::group);
  EXPECT_EQ(check(e, gpu), "");
}

TEST(Gpu, SharedTermsInsideFolds) {  // the body's tree size is 2^40 times its graph size
  EmitOptions gpu;
  gpu.gpu = true;
  Expr x = parameter("x", array({2, 8, 3}));
  Expr e = map(
      [](Expr p) {
        return map(
            [](Expr r) {
              return fold(
                  [](Expr sum, Expr v) {
                    for (int i = 0; i < 40; ++i) v = operator_add(v, v);
                    return operator_add(sum, v);
                  },
                  zero(), r);
            },
            p, Mode::local);
      },
      x, Mode::group);
  EXPECT_EQ(check(e, gpu), "");
}

}  // namespace hoist::gpu_test
