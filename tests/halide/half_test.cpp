// Compares kernels with native f16 arithmetic with the interpreter, bit for bit, and checks their text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "tests/halide/runner.h"

namespace hoist::half_test {

using ::testing::HasSubstr;
using ::testing::Not;

Type array(const std::vector<Nat>& sizes) { return array_type(sizes, scalar_type(Scalar::f16)); }
Expr number(double value) { return literal(Scalar::f16, value); }
Expr plus(Expr a, Expr b) { return call(Function::add, {a, b}); }
Expr times(Expr a, Expr b) { return call(Function::multiply, {a, b}); }
Expr copy(Expr e, Mode mode = Mode::vec) {
  return map([](Expr x) { return x; }, e, mode);
}
Expr sum_of_products(Expr a, Expr b) {
  return fold([](Expr sum, Expr p) { return plus(sum, times(get(0, p), get(1, p))); }, number(0.5), zip({a, b}));
}

EmitOptions native(bool gpu = false) {
  EmitOptions options;
  options.half = true;
  options.gpu = gpu;
  return options;
}

std::string source_of(Expr e, const EmitOptions& options = native()) {
  auto kernel = emit(e, options);
  return kernel ? kernel->source : kernel.errors()[0].text();
}

Expr on_vectors(const std::function<Expr(Expr)>& body, Expr e, int64_t width = 8) {
  return join(map([&](Expr v) { return map(body, v, Mode::vec); }, split(width, e), Mode::group));
}

TEST(HalfText, HasNativeOperationsWithoutRounding) {
  Expr x = parameter("x", array({64})), y = parameter("y", array({64}));
  Expr e = on_vectors(
      [](Expr p) {
        return call(Function::subtract, {times(get(0, p), get(1, p)), plus(get(0, p), number(1))});
      },
      zip({x, y}));
  const std::string text = source_of(e);
  EXPECT_THAT(text, HasSubstr("#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n"));
  for (const char* operation : {"hoist_half_add(", "hoist_half_subtract(", "hoist_half_multiply("}) {
    EXPECT_THAT(text, HasSubstr(operation));
  }
  for (const char* other : {"float", "hoist_round_f16", "hoist_to_f16", "hoist_from_f16"}) {
    EXPECT_THAT(text, Not(HasSubstr(other)));
  }
  EXPECT_THAT(source_of(e, {}), Not(HasSubstr("half")));
}

// Kernels that only store or upcast halves run on every device.
TEST(HalfText, NeedsHalvesOnlyWhereItComputesWithThem) {
  Expr x = parameter("x", array({64}));
  for (Function f : {Function::divide, Function::maximum}) {
    const std::string text = source_of(on_vectors([&](Expr v) { return call(f, {v, number(3)}); }, x));
    EXPECT_THAT(text, HasSubstr("hoist_from_f16"));
    EXPECT_THAT(text, HasSubstr("hoist_to_f16"));
    EXPECT_THAT(text, Not(HasSubstr("half")));
    EXPECT_THAT(text, Not(HasSubstr("hoist_round_f16")));
  }
  EXPECT_THAT(source_of(on_vectors([](Expr v) { return cast(Scalar::f32, v); }, x)), Not(HasSubstr("half")));
}

TEST(HalfText, KernelsOfOneProgramShareTheOpening) {
  if (!testing::no_half().empty()) GTEST_SKIP() << testing::no_half();
  Expr x = parameter("x", array({16}));
  std::vector<EmittedKernel> kernels;
  std::vector<std::string> names = {"doubled", "halved", "squared"};
  const std::function<Expr(Expr)> bodies[] = {[](Expr v) { return plus(v, v); },
                                              [](Expr v) {
                                                return call(Function::divide, {v, number(2)});
                                              },
                                              [](Expr v) { return times(v, v); }};
  for (size_t i = 0; i < 3; ++i) {
    EmitOptions options = native();
    options.kernel_name = names[i];
    auto kernel = emit(on_vectors(bodies[i], x), options);
    ASSERT_TRUE(kernel.ok()) << kernel.errors()[0].text();
    kernels.push_back(*kernel);
  }
  Tensor values(Scalar::f16, {16});
  for (int64_t i = 0; i < 16; ++i) values.set_float(i, static_cast<double>(i));
  auto found = testing::run_all(kernels, names, {{"x", values}}, Scalar::f16, {16});
  ASSERT_TRUE(found.ok()) << found.errors()[0].text();
  for (int64_t i = 0; i < 16; ++i) {
    const auto v = static_cast<double>(i);
    EXPECT_EQ((*found)[0].float_at(i), 2 * v);
    EXPECT_EQ((*found)[1].float_at(i), v / 2);
    EXPECT_EQ((*found)[2].float_at(i), v * v);
  }
}

class Half : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::no_half().empty()) GTEST_SKIP() << testing::no_half();
  }
};

// Pairs every half with a thousandth of all others, including subnormals, infinities and NaN.
TEST_F(Half, EveryValueGivesTheInterpretersBits) {
  constexpr int64_t n = 1 << 20;
  Tensor a(Scalar::f16, {n}), b(Scalar::f16, {n});
  for (int64_t i = 0; i < n; ++i) {
    const auto x = static_cast<uint16_t>(i), y = static_cast<uint16_t>(i * 40503 + (i >> 16) * 4099);
    std::memcpy(a.data() + 2 * i, &x, 2);
    std::memcpy(b.data() + 2 * i, &y, 2);
  }
  const Bindings inputs = {{"a", a}, {"b", b}};
  Expr pairs = zip({parameter("a", array({n})), parameter("b", array({n}))});
  std::vector<EmittedKernel> kernels;
  std::vector<std::string> names;
  std::vector<Expr> terms;
  auto add = [&](const std::string& name, const std::function<Expr(Expr, Expr)>& body, int64_t width) {
    EmitOptions options = native();
    options.kernel_name = name + "_" + std::to_string(width);
    terms.push_back(on_vectors([&](Expr p) { return body(get(0, p), get(1, p)); }, pairs, width));
    auto kernel = emit(terms.back(), options);
    ASSERT_TRUE(kernel.ok()) << kernel.errors()[0].text();
    kernels.push_back(*kernel);
    names.push_back(options.kernel_name);
  };
  for (Function f : {Function::add, Function::subtract, Function::multiply, Function::divide, Function::maximum})
    add(
        std::string(row(f).name),
        [&](Expr x, Expr y) {
          return call(f, {x, y});
        },
        16);
  // With two roundings, and with one.
  for (int64_t width : {2, 4, 8, 16})
    add(
        "multiply_add", [](Expr x, Expr y) { return plus(times(x, y), y); }, width);
  for (int64_t width : {4, 16})
    add(
        "fma",
        [](Expr x, Expr y) {
          return call(Function::fma, {x, y, y});
        },
        width);
  add(
      "copy", [](Expr x, Expr) { return x; }, 16);
  auto found = testing::run_all(kernels, names, inputs, Scalar::f16, {n});
  ASSERT_TRUE(found.ok()) << found.errors()[0].text();
  for (size_t k = 0; k < kernels.size(); ++k) {
    auto want = interpret(terms[k], inputs);
    ASSERT_TRUE(want.ok()) << want.errors()[0].text();
    ASSERT_EQ((*found)[k].bytes().size(), want->bytes().size());
    for (int64_t i = 0; i < n; ++i) {
      uint16_t is = 0, should = 0;
      std::memcpy(&is, (*found)[k].data() + 2 * i, 2);
      std::memcpy(&should, want->data() + 2 * i, 2);
      ASSERT_EQ(is, should) << names[k] << " at " << i;
    }
  }
}

TEST_F(Half, Elementwise) {
  for (Mode mode : {Mode::seq, Mode::unroll}) {
    Expr x = parameter("x", array({13})), y = parameter("y", array({13}));
    EXPECT_EQ(
        testing::check(map([](Expr p) { return plus(get(0, p), times(get(1, p), number(3))); }, zip({x, y}), mode),
                       native()),
        "");
  }
  // Vectors built from loads of odd widths.
  Expr rows = parameter("rows", array({4, 3}));
  Expr e = on_vectors([](Expr v) { return plus(v, v); }, join(transpose(rows)), 4);
  EXPECT_EQ(testing::check(e, native()), "");
}

TEST_F(Half, SelectionsConstantsAndBorders) {
  Expr x = parameter("x", array({62}));
  Tensor table(Scalar::f16, {64});
  for (int64_t i = 0; i < 64; ++i) table.set_float(i, 1.0 / static_cast<double>(i + 1));
  Expr padded = pad(1, 1, number(-0.125), x);
  Expr e = on_vectors(
      [](Expr p) {
        Expr v = get(0, p);
        return select(call(Function::less, {v, number(0)}), times(v, get(1, p)), plus(v, get(1, p)));
      },
      zip({padded, constant(table)}));
  EXPECT_EQ(testing::check(e, native()), "");
}

TEST_F(Half, DotProducts) {
  Expr a = parameter("a", array({6, 37})), b = parameter("b", array({16, 37}));
  Expr product = map([&](Expr row) { return map([&](Expr column) { return sum_of_products(row, column); }, b); }, a);
  EXPECT_EQ(testing::check(map([](Expr row) { return copy(row); }, product, Mode::group), native()), "");
}

TEST_F(Half, RegisterTiles) {
  constexpr int64_t rows = 4, columns = 32, depth = 24;
  Expr a = parameter("a", array({depth, rows})), b = parameter("b", array({depth, columns}));
  Expr sum = fold(
      [&](Expr acc, Expr p) {
        return map(
            [&](Expr q) {
              return join(map(
                  [&](Expr v) {
                    return map([&](Expr r) { return plus(get(0, r), times(get(1, q), get(1, r))); },
                               zip({get(0, v), get(1, v)}), Mode::vec);
                  },
                  zip({split(8, get(0, q)), split(8, get(1, p))}), Mode::unroll));
            },
            zip({acc, get(0, p)}), Mode::unroll);
      },
      repeat({rows, columns}, number(0)), zip({a, b}));
  Expr e = map([](Expr r) { return join(map([](Expr v) { return copy(v); }, split(8, r), Mode::unroll)); }, sum,
               Mode::unroll);
  const std::string text = source_of(e);
  EXPECT_THAT(text, HasSubstr("ushort "));
  EXPECT_THAT(text, Not(HasSubstr("float")));
  EXPECT_EQ(testing::check(e, native()), "");
}

TEST_F(Half, PrivateAndLocalArrays) {
  Expr x = parameter("x", array({8, 32})), weights = parameter("weights", array({32}));
  for (Memory memory : {Memory::private_, Memory::local}) {
    Expr e = map(
        [&](Expr row) {
          Expr doubled = map([](Expr v) { return plus(v, v); }, row);
          return let(materialise(memory, doubled), [&](Expr kept) {
            return map([&](Expr v) { return plus(v, sum_of_products(kept, weights)); }, kept, Mode::seq);
          });
        },
        x, Mode::group);
    EXPECT_EQ(testing::check(e, native()), "");
  }
  Expr tiles = map(
      [&](Expr row) {
        return map(
            [&](Expr v) {
              return fold(
                  [&](Expr sum, Expr chunk) {
                    return fold([&](Expr s, Expr w) { return plus(s, times(v, w)); }, sum,
                                materialise(Memory::local, chunk));
                  },
                  number(0), split(8, weights));
            },
            row, Mode::local);
      },
      x, Mode::group);
  EXPECT_EQ(testing::check(tiles, native(true)), "");
}

TEST_F(Half, ScansAndTuples) {
  Expr x = parameter("x", array({48}));
  EXPECT_EQ(testing::check(scan([](Expr sum, Expr v) { return plus(sum, v); }, number(0), x), native()), "");
  Expr both = fold(
      [](Expr state, Expr v) {
        return tuple({call(Function::maximum, {get(0, state), v}), plus(get(1, state), times(v, v))});
      },
      tuple({number(-100), number(0)}), x);
  Expr e = let(both, [&](Expr found) {
    return map([&](Expr v) { return plus(call(Function::subtract, {v, get(0, found)}), get(1, found)); }, x, Mode::seq);
  });
  EXPECT_EQ(testing::check(e, native()), "");
}

}  // namespace hoist::half_test
