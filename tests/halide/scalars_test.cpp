// Compares every scalar function on its types, and every cast, alone and in vectors, with the interpreter.
#include <gtest/gtest.h>

#include <cmath>

#include "ir/text/text.h"
#include "tests/halide/runner.h"

namespace hoist::scalars_test {

constexpr Scalar arithmetic[] = {Scalar::i8,  Scalar::u8,  Scalar::i16,  Scalar::u16, Scalar::i32, Scalar::u32,
                                 Scalar::i64, Scalar::u64, Scalar::bf16, Scalar::f16, Scalar::f32, Scalar::f64};

// Values at which types and functions change their behaviour.
Tensor sample(Scalar s, int64_t n, uint64_t seed) {
  Tensor t =
      testing::random_tensor(array_type(n, scalar_type(s)), seed, row(s).is_signed || is_float(s) ? -100 : 0, 100);
  if (is_float(s)) {
    const double special[] = {0.0, -0.0,  1,    -1,    0.5, 1.5,   2.5,   -2.5,         INFINITY, -INFINITY,
                              NAN, 1e-36, 1e30, -1e30, 3e5, 127.5, 255.5, 2147483647.0, 0.999};
    for (size_t i = 0; i < std::size(special); ++i)
      t.set_float(static_cast<int64_t>((i * 7 + seed * 3)) % n, special[i]);
  } else if (s != Scalar::boolean) {
    int bits = row(s).bits;
    const int64_t special[] = {0,
                               1,
                               -1,
                               2,
                               3,
                               31,
                               32,
                               63,
                               64,
                               static_cast<int64_t>(uint64_t{1} << (bits - 1)),
                               static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1)};
    for (size_t i = 0; i < std::size(special); ++i)
      t.set_integer(static_cast<int64_t>((i * 5 + seed * 3)) % n, special[i]);
  }
  return t;
}

bool same(const Tensor& a, const Tensor& b, int64_t i, int ulp) {
  if (!is_float(a.scalar())) return a.integer_at(i) == b.integer_at(i);
  double x = a.float_at(i), y = b.float_at(i);
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  if (x == y) return std::signbit(x) == std::signbit(y) || ulp > 0;
  if (ulp == 0) return false;
  double relative = a.scalar() == Scalar::f64   ? 2.3e-16
                    : a.scalar() == Scalar::f32 ? 1.2e-7
                    : a.scalar() == Scalar::f16 ? 1e-3
                                                : 8e-3;
  return std::fabs(x - y) <= ulp * relative * std::fabs(x) + (a.scalar() == Scalar::f64 ? 1e-300 : 1e-37);
}

// OpenCL C, OpenCL C with native f16 arithmetic, machine code.
enum class Form { plain, half, machine };

void compare(const std::vector<Expr>& rows, const std::vector<std::string>& names, const std::vector<int>& ulps,
             const Bindings& inputs, int64_t n, Form form = Form::plain) {
  std::vector<EmittedKernel> kernels;
  std::vector<std::string> kernel_names;
  for (size_t k = 0; k < rows.size(); ++k) {
    EmitOptions options;
    options.half = form == Form::half;
    if (form == Form::machine) options.native = {testing::native_targets_here().back()};
    options.kernel_name = "kernel_" + std::to_string(k);
    auto kernel = emit(rows[k], options);
    ASSERT_TRUE(kernel.ok()) << names[k] << ": " << kernel.errors()[0].text();
    kernels.push_back(*kernel);
    kernel_names.push_back(options.kernel_name);
  }
  auto found = testing::run_all(kernels, kernel_names, inputs, leaf_of(rows[0]->type)->scalar, {n});
  ASSERT_TRUE(found.ok()) << found.errors()[0].text();
  for (size_t k = 0; k < rows.size(); ++k) {
    auto want = interpret(rows[k], inputs);
    ASSERT_TRUE(want.ok()) << want.errors()[0].text();
    auto show = [](const Tensor& t, int64_t i) {
      return is_float(t.scalar()) ? std::to_string(t.float_at(i)) : std::to_string(t.integer_at(i));
    };
    for (int64_t i = 0; i < n; ++i) {
      std::string arguments;
      for (const auto& [name, t] : inputs) arguments += " " + name + " = " + show(t, i);
      EXPECT_TRUE(same(*want, (*found)[k], i, ulps[k]))
          << names[k] << " at" << arguments << ": expected " << show(*want, i) << ", found " << show((*found)[k], i);
      if (::testing::Test::HasFailure()) break;
    }
  }
}

struct Kind {
  Scalar scalar;
  Form form;
};

std::vector<Kind> kinds() {
  std::vector<Kind> out;
  for (Scalar s : arithmetic) out.push_back({s, Form::plain});
  out.push_back({Scalar::f16, Form::half});
  for (Scalar s : arithmetic) out.push_back({s, Form::machine});
  return out;
}

class OnType : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (GetParam().form == Form::half && !testing::no_half().empty()) GTEST_SKIP() << testing::no_half();
    if (GetParam().form == Form::machine && testing::native_targets_here().empty())
      GTEST_SKIP() << "no target of native code is for this processor";
  }
};
INSTANTIATE_TEST_SUITE_P(Scalars, OnType, ::testing::ValuesIn(kinds()), [](const auto& info) {
  return std::string(row(info.param.scalar).name) + (info.param.form == Form::half      ? "_native"
                                                     : info.param.form == Form::machine ? "_machine"
                                                                                        : "");
});

// Dividends at and next to multiples of the divisor, where a rounded quotient is one too large.
TEST_P(OnType, RemaindersBesideMultiples) {
  const auto [s, form] = GetParam();
  if (!is_float(s)) GTEST_SKIP() << "integers are divided exactly";
  constexpr int64_t n = 4096;
  const Type t = array_type(n, scalar_type(s));
  Tensor a = testing::random_tensor(t, 1, 1, 100), b = testing::random_tensor(t, 2, -3, 3);
  for (int64_t i = 0; i < n; ++i) {
    if (b.float_at(i) == 0) b.set_float(i, 0.75);
    // Quotients of all magnitudes; the largest, and infinite divisors, have separate vectors.
    const double times = std::floor(std::ldexp(std::fabs(a.float_at(i)), static_cast<int>(i / 64 % 32) - 8));
    a.set_float(i, times * b.float_at(i) * (i % 2 == 0 ? 1 : -1) * (i / 64 % 40 == 39 ? 1e30 : 1));
    const double beside = i % 3 == 0 ? INFINITY : -INFINITY, at = a.float_at(i);
    if (i % 5 < 2) a.set_float(i, s == Scalar::f64 ? std::nextafter(at, beside) : std::nextafterf(at, beside));
    if (i / 64 == 40) b.set_float(i, INFINITY);
  }
  const Bindings inputs = {{"a", a}, {"b", b}};
  std::vector<Expr> rows;
  for (Function f : {Function::remainder, Function::modulo}) {
    const std::function<Expr(Expr)> element = [&](Expr p) { return call(f, {get(0, p), get(1, p)}); };
    const Expr tiles = split(16, zip({parameter("a", t), parameter("b", t)}));
    rows.push_back(join(map([&](Expr tile) { return map(element, tile, Mode::vec); }, tiles, Mode::group)));
  }
  compare(rows, {"remainder", "modulo"}, {0, 0}, inputs, n, form);
}

TEST_P(OnType, Functions) {
  const auto [s, form] = GetParam();
  constexpr int64_t n = 64;
  Type t = array_type(n, scalar_type(s));
  Bindings inputs = {{"a", sample(s, n, 1)}, {"b", sample(s, n, 2)}, {"c", sample(s, n, 3)}};
  Expr a = parameter("a", t), b = parameter("b", t), c = parameter("c", t);
  std::vector<Expr> rows, tests;
  std::vector<std::string> row_names, test_names;
  std::vector<int> ulps, zeros;
  for (const FunctionRow& f : function_table()) {
    if (is_float(s) ? !f.on_float : !f.on_integer) continue;
    auto body = [&](Expr p) {
      std::vector<Expr> arguments;
      for (int i = 0; i < f.arity; ++i) arguments.push_back(get(i, p));
      return call(f.function, arguments);
    };
    Expr e = join(map([&](Expr v) { return map(body, v, Mode::vec); }, split(8, zip({a, b, c})), Mode::group));
    bool is_test = f.result == ResultKind::boolean;
    int ulp = is_float(s) ? f.ulp : 0;
    if (f.function == Function::divide || f.function == Function::sqrt) ulp = s == Scalar::f32 ? 3 : 0;
    if (ulp > 0 && row(s).bits < 32) ulp = 1;  // the final rounding to the type may go the other way
    (is_test ? tests : rows).push_back(e);
    (is_test ? test_names : row_names).push_back(std::string(f.name));
    (is_test ? zeros : ulps).push_back(is_test ? 0 : ulp);
  }
  compare(rows, row_names, ulps, inputs, n, form);
  if (!HasFatalFailure()) compare(tests, test_names, zeros, inputs, n, form);
}

// Constant bounds use other code than bounds from memory.
TEST_P(OnType, ExtremaOfAConstant) {
  const auto [s, form] = GetParam();
  if (!is_float(s)) GTEST_SKIP() << "integers have no NaN and one zero";
  constexpr int64_t n = 64;
  const Type t = array_type(n, scalar_type(s));
  Tensor a = sample(s, n, 1);
  const double special[] = {0.0, -0.0, 6, -1.5, INFINITY, -INFINITY, NAN, 5, 7};
  for (size_t i = 0; i < std::size(special); ++i) a.set_float(static_cast<int64_t>(i) * 7, special[i]);
  std::vector<Expr> rows;
  std::vector<std::string> names;
  for (const double bound : {0.0, -0.0, 6.0, -1.5, double{INFINITY}, -double{INFINITY}, double{NAN}})
    for (const Function f : {Function::minimum, Function::maximum})
      for (const bool first : {false, true}) {
        const Expr known = literal(s, bound);
        const std::function<Expr(Expr)> element = [&](Expr x) {
          return first ? call(f, {known, x}) : call(f, {x, known});
        };
        rows.push_back(
            join(map([&](Expr v) { return map(element, v, Mode::vec); }, split(8, parameter("a", t)), Mode::group)));
        names.push_back(std::string(row(f).name) + (first ? " of a constant and " : " with ") + std::to_string(bound));
      }
  compare(rows, names, std::vector<int>(rows.size(), 0), {{"a", a}}, n, form);
}

void check_cast(Scalar from, Scalar to, Form form) {
  constexpr int64_t n = 64;
  Expr a = parameter("a", array_type(n, scalar_type(from)));
  Expr e = join(
      map([&](Expr v) { return map([&](Expr x) { return cast(to, x); }, v, Mode::vec); }, split(8, a), Mode::group));
  const std::string name = "cast from " + std::string(row(from).name) + " to " + std::string(row(to).name);
  compare({e}, {name}, {0}, {{"a", sample(from, n, 1)}}, n, form);
}

TEST_P(OnType, Casts) {
  const auto [s, form] = GetParam();
  for (int other = 0; other < scalar_count; ++other) {
    const auto target = static_cast<Scalar>(other);
    if (target == Scalar::string) continue;
    if (row(target).bits >= 8) check_cast(s, target, form);
    if (form == Form::half) check_cast(target, s, form);
    if (HasFatalFailure()) return;
  }
}

TEST_P(OnType, Reinterpretations) {
  const auto [s, form] = GetParam();
  constexpr int64_t n = 64;
  Bindings inputs = {{"a", sample(s, n, 1)}};
  Expr a = parameter("a", array_type(n, scalar_type(s)));
  for (int to = 0; to < scalar_count; ++to) {
    Scalar target = static_cast<Scalar>(to);
    if (target == Scalar::boolean || target == Scalar::string || row(target).bits != row(s).bits) continue;
    Expr e = join(map([&](Expr v) { return map([&](Expr x) { return reinterpret(target, x); }, v, Mode::vec); },
                      split(8, a), Mode::group));
    compare({e}, {"reinterpret " + std::string(row(target).name)}, {0}, inputs, n, form);
    if (HasFatalFailure()) return;
  }
}

TEST(Scalars, StorageOnlyTypes) {
  for (Scalar s : {Scalar::i4, Scalar::u4, Scalar::f8e4m3fn, Scalar::f8e4m3fnuz, Scalar::f8e5m2, Scalar::f8e5m2fnuz,
                   Scalar::boolean, Scalar::i2, Scalar::u2, Scalar::f4e2m1, Scalar::f8e8m0}) {
    Tensor t(s, {256});
    for (size_t i = 0; i < t.bytes().size(); ++i)
      t.data()[i] = static_cast<std::byte>(s == Scalar::boolean ? i & 1 : i);
    Expr a = parameter("a", array_type(256, scalar_type(s)));
    Expr e = map([](Expr x) { return cast(Scalar::f32, x); }, a, Mode::seq);
    compare({e}, {"cast from " + std::string(row(s).name)}, {0}, {{"a", t}}, 256);
    if (HasFatalFailure()) return;
  }
}

// Conversions to float8 saturate; an infinity of the same type is not converted.
TEST(Scalars, InfinitiesOfFloat8Stay) {
  Tensor t(Scalar::f8e5m2, {256});
  for (size_t i = 0; i < t.bytes().size(); ++i) t.data()[i] = static_cast<std::byte>(i);
  Expr a = parameter("a", array_type(256, scalar_type(Scalar::f8e5m2)));
  const Expr zero = literal(Scalar::f8e5m2, 0), infinity = literal(Scalar::f8e5m2, -INFINITY);
  const auto body = [&](Expr x) { return select(call(Function::less_equal, {x, zero}), infinity, x); };
  for (Form form : {Form::plain, Form::machine}) {
    if (form == Form::machine && testing::native_targets_here().empty()) continue;
    Expr e = join(map([&](Expr v) { return map(body, v, Mode::vec); }, split(8, a), Mode::group));
    compare({e}, {"infinities"}, {0}, {{"a", t}}, 256, form);
  }
}

// Halide folds literals next to indices; the difference of two extreme ones may overflow the type.
TEST(Scalars, LiteralsFarFromZeroBesideIndices) {
  const char* const bodies[] = {
      "select(v == 3, p + 1, -2147483648)",
      "select(v < 5, p - 20, 2147483647)",
      "select(v < 5, -2147483648i32, 2147483647i32)",
      "max(select(v == 3, p + 1, -2147483648), -2147483640)",
      "max(p + 1, -2147483648)",
      "max(p + 1, -2147483647)",
      "min(p + 1, -2147483647)",
      "min(p - 100, 2147483647)",
      "max(p * 2 + 1, -2147483647) + v",
      "max(p - 2147483647, -2147483647)",
      "select(p + 1 < -2147483647, p, v)",
      "select(p - 100 > 2147483646, p, v)",
      "select(p + 5 == -2147483647, p, v)",
      "p - 2147483640 - v",
      "p * 2147483647 + 1",
  };
  for (const char* const body : bodies) {
    const auto e = parse("zip(%x : [64]i32, iota 64 i32) |> split 8 |> map group(0) (map vec (\\(v, p). " +
                         std::string(body) + ")) |> join");
    ASSERT_TRUE(e.ok()) << body << ": " << e.errors()[0].text();
    EXPECT_EQ(testing::check(*e, {}, 0, 0, 10), "") << body;
  }
}

// Quantisation as in layers: a rounded value plus a zero point, saturated, then perhaps upcast, or minus the zero
// point. Machine code has special forms for it.
TEST(Scalars, QuantisedNumbers) {
  constexpr int64_t n = 256;
  Tensor a = sample(Scalar::f32, n, 1);
  for (int64_t i = 64; i < n; ++i) a.set_float(i, static_cast<double>(i - 160) * (i % 2 == 0 ? 1.5 : 511.25));
  for (Form form : {Form::plain, Form::machine}) {
    if (form == Form::machine && testing::native_targets_here().empty()) continue;
    for (const Scalar narrow : {Scalar::u8, Scalar::i8, Scalar::u16, Scalar::i16}) {
      const Bindings inputs = {{"a", a}, {"z", sample(narrow, n, 2)}};
      const Expr numbers = parameter("a", array_type(n, scalar_type(Scalar::f32)));
      const Expr zeros = parameter("z", array_type(n, scalar_type(narrow)));
      for (const Scalar wide : {narrow, Scalar::i16, Scalar::i32, Scalar::f32}) {
        std::vector<Expr> rows;
        for (const bool moved : {true, false}) {
          const auto body = [&](Expr p) {
            Expr rounded = call(Function::round, {get(0, p)});
            if (moved) rounded = call(Function::add, {rounded, cast(Scalar::f32, get(1, p))});
            return cast(wide, cast(narrow, rounded));
          };
          rows.push_back(
              join(map([&](Expr v) { return map(body, v, Mode::vec); }, split(8, zip({numbers, zeros})), Mode::group)));
        }
        compare(rows, {"quantised with a zero point", "quantised"}, {0, 0}, inputs, n, form);
        if (HasFailure()) return;
      }
      const auto dequantised = [&](Expr p) {
        const Expr rounded = call(Function::round, {get(0, p)}), zero = get(1, p);
        const Expr sum = cast(narrow, call(Function::add, {rounded, cast(Scalar::f32, zero)}));
        return cast(Scalar::f32, call(Function::subtract, {cast(Scalar::i32, sum), cast(Scalar::i32, zero)}));
      };
      const Expr less_again = join(
          map([&](Expr v) { return map(dequantised, v, Mode::vec); }, split(8, zip({numbers, zeros})), Mode::group));
      EXPECT_NE(emit(less_again, {})->source.find("hoist_rounded_" + std::string(row(narrow).name)), std::string::npos);
      compare({less_again}, {"less the zero point again"}, {0}, inputs, n, form);
      if (HasFailure()) return;
    }
  }
}

TEST(Scalars, Booleans) {
  Type t = array_type(16, scalar_type(Scalar::boolean));
  Expr a = parameter("a", t), b = parameter("b", t);
  Bindings inputs = {{"a", sample(Scalar::boolean, 16, 1)}, {"b", sample(Scalar::boolean, 16, 2)}};
  for (Mode mode : {Mode::seq, Mode::vec}) {
    std::vector<Expr> rows;
    std::vector<std::string> names;
    for (const FunctionRow& f : function_table()) {
      if (!f.on_boolean) continue;
      rows.push_back(map(
          [&](Expr p) {
            return f.arity == 1 ? call(f.function, {get(0, p)}) : call(f.function, {get(0, p), get(1, p)});
          },
          zip({a, b}), mode));
      names.push_back(std::string(f.name));
    }
    compare(rows, names, std::vector<int>(rows.size(), 0), inputs, 16);
  }
  Expr any = fold([](Expr x, Expr y) { return call(Function::logical_or, {x, y}); }, literal(Scalar::boolean, 0), a);
  EXPECT_EQ(testing::check(any), "");
}

}  // namespace hoist::scalars_test
