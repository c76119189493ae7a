// Adjoints of terms against central differences in f64: every row of the table of derivatives, and every pattern.
#include <gmock/gmock.h>

#include <cmath>
#include <optional>
#include <random>

#include "ir/base/seeded.h"
#include "ir/evaluate/evaluate.h"
#include "ir/gradient/adjoints.h"
#include "ir/gradient/derivatives.h"
#include "ir/operators/operators.h"
#include "ir/text/text.h"
#include "tests/ir/gradient/central_differences.h"
#include "tests/support/random_terms.h"

namespace hoist::gradients {
namespace terms_test {

Expr term(const std::string& text) {
  auto parsed = parse(text);
  EXPECT_TRUE(parsed.ok()) << text << ": " << (parsed.ok() ? "" : parsed.errors()[0].text());
  return parsed.ok() ? *parsed : nullptr;
}

TEST(Derivatives, EveryFunctionOfFloatsHasARow) {
  for (const FunctionRow& row : function_table()) {
    const bool wanted = row.on_float && row.result == ResultKind::same;
    EXPECT_EQ(find_derivative(row.function) != nullptr, wanted) << row.name;
  }
  EXPECT_TRUE(check_own_derivatives().ok());
}

TEST(Derivatives, AgreeWithCentralDifferences) {
  for (const DerivativeRow& row : derivative_table()) {
    uint64_t state = 7;
    for (int instance = 0; instance < 20; ++instance) {
      Bindings at;
      std::vector<Expr> operands;
      for (const std::string& name : row.operands) {
        operands.push_back(parameter(name, scalar_type(Scalar::f64)));
        Tensor value(Scalar::f64, {});
        value.set_float(0, row.low + (row.high - row.low) * static_cast<double>(next_random(state) >> 11) * 0x1p-53);
        at.emplace(name, value);
      }
      expect_adjoints(call(row.function, operands), at, std::string(hoist::row(row.function).name));
    }
  }
}

// Values at kinks are choices; the file of derivatives lists them.
TEST(Derivatives, AtKinks) {
  const auto value = [](const std::string& name, size_t i, std::vector<double> at) {
    std::vector<Expr> operands;
    for (const double v : at) operands.push_back(literal(Scalar::f64, v));
    const Function function = *function_named(name);
    const Expr result = call(function, operands);
    return evaluate(partial_derivative(*find_derivative(function), i, operands, result), {})->float_at(0);
  };
  EXPECT_EQ(value("max", 0, {0, 0}), 0);  // relu is max(x, 0)
  EXPECT_EQ(value("max", 1, {0, 0}), 1);
  EXPECT_EQ(value("min", 0, {2, 2}), 0);
  EXPECT_EQ(value("abs", 0, {0}), 0);
  EXPECT_EQ(value("floor", 0, {1}), 0);
  EXPECT_EQ(value("pow", 0, {0, 0}), 0);
  EXPECT_EQ(value("pow", 1, {0, 2}), 0);
  EXPECT_EQ(value("pow", 0, {0, 1}), 1);
}

struct TermCase {
  const char* name;
  const char* text;
};

TEST(Adjoints, OfPatterns) {
  const TermCase cases[] = {
#include "tests/ir/gradient/terms.inc"
  };
  for (const TermCase& c : cases) {
    const Expr e = term(c.text);
    if (e != nullptr) expect_adjoints(e, random_bindings(e, 11), c.name);
  }
}

// The central difference along element i of a parameter; nothing where the term has a kink or a pole nearby.
std::optional<double> smooth_difference(Expr e, const Bindings& at, const std::string& name, int64_t i,
                                        const Tensor& weights) {
  double found[2];
  for (const int k : {0, 1}) {
    const double step = k == 0 ? 1e-5 : 3e-6, here = at.at(name).float_at(i);
    Bindings above = at, below = at;
    above.at(name).set_float(i, here + step);
    below.at(name).set_float(i, here - step);
    const double high = weighted_sum(e, above, weights), low = weighted_sum(e, below, weights);
    if (!(std::abs(high) < 1e3) || !(std::abs(low) < 1e3)) return std::nullopt;
    found[k] = (high - low) / (2 * step);
  }
  if (!(std::abs(found[0]) < 1e3) || std::abs(found[0] - found[1]) > 1e-6 * (1 + std::abs(found[0])))
    return std::nullopt;
  return found[0];
}

TEST(Adjoints, OfRandomTerms) {
  std::mt19937_64 random(20);
  RandomTermOptions options;
  options.scalars = {Scalar::f64, Scalar::f64, Scalar::f64, Scalar::i32, Scalar::boolean};
  int compared = 0;
  std::set<std::string> faults;
  for (int instance = 0; instance < 4000; ++instance) {
    const Expr e = random_term(random, options);
    std::vector<Expr> wanted;
    bool is_bound = true;
    for (Expr p : parameters_of(e)) {
      is_bound &= leaf_of(p->type)->is_scalar();
      if (leaf_of(p->type) == scalar_type(Scalar::f64)) wanted.push_back(p);
    }
    if (!is_bound || wanted.empty() || leaf_of(e->type) != scalar_type(Scalar::f64)) continue;
    std::set<std::string> missing;
    const Adjoints adjoints = adjoints_of(e, seed_of(e), wanted, missing);
    faults.insert(missing.begin(), missing.end());
    if (!missing.empty()) continue;
    const Bindings at = random_bindings(e, random());
    Bindings with_seed = at;
    Tensor weights(Scalar::f64, shape_of(e->type));
    uint64_t state = 3;
    for (int64_t i = 0; i < weights.size(); ++i) weights.set_float(i, random_between(state, 0.5, 1.5));
    with_seed.emplace("adjoint", weights);
    for (size_t p = 0; p < wanted.size(); ++p) {
      const Expr adjoint = with_bindings(adjoints.bindings, adjoints.of[p]);
      const auto found = evaluate(adjoint, with_seed);
      ASSERT_TRUE(found.ok()) << found.errors()[0].text() << "\n" << print(e) << "\n" << print(adjoint);
      for (int64_t i = 0; i < found->size(); ++i) {
        const auto expected = smooth_difference(e, at, wanted[p]->name, i, weights);
        if (!expected || *expected == 0) continue;
        ++compared;
        ASSERT_NEAR(found->float_at(i), *expected, 1e-5 * (1 + std::abs(*expected)))
            << i << " of " << wanted[p]->name << "\n"
            << print(e) << "\n"
            << print(adjoint);
      }
    }
  }
  EXPECT_GT(compared, 500);
  EXPECT_EQ(faults, (std::set<std::string>{}));
}

TEST(Adjoints, OfSmoothTermsHaveAdjointsThemselves) {
  for (const char* text :
       {"map (\\v. exp(v) * v) (%x : [4]f64)",
        "reduce (+) 0 (map (\\(p, q). p * q * tanh(p)) (zip(%x : [3]f64, %y : [3]f64)))",
        "map (\\row. map (\\column. reduce (+) 0 (map (\\(p, q). p * q) (zip(row, column)))) (transpose (%b : "
        "[3][2]f64)))"
        " (%a : [4][3]f64)",
        "fold (\\s v. s * v + sin(s)) 0.5 (%x : [4]f64)", "map (reduce (*) 1) (slide 2 1 (%x : [5]f64))"}) {
    const Expr e = term(text);
    std::set<std::string> faults;
    const std::vector<Expr> wanted = parameters_of(e);
    const Adjoints first = adjoints_of(e, parameter("dy", e->type), wanted, faults);
    for (Expr adjoint : first.of) {
      const Expr whole = with_bindings(first.bindings, adjoint);
      expect_adjoints(whole, random_bindings(whole, 5), std::string("second order of ") + text);
    }
    EXPECT_TRUE(faults.empty());
  }
}

// The adjoint of a product is a product of the same form, and look-ups become one scatter.
TEST(Adjoints, KeepTheFormsThatStrategiesRecognise) {
  const auto adjoint = [](const std::string& text, size_t i) {
    const Expr e = term(text);
    std::set<std::string> faults;
    const Adjoints adjoints = adjoints_of(e, parameter("dy", e->type), parameters_of(e), faults);
    return print(with_bindings(adjoints.bindings, adjoints.of[i]));
  };
  const std::string product =
      "map (\\row. map (\\column. reduce (+) 0 (map (\\(p, q). p * q) (zip(row, column)))) (transpose (%b : "
      "[3][2]f32)))"
      " (%a : [4][3]f32)";
  EXPECT_EQ(adjoint(product, 0),
            "%a : [4][3]f32\n|> transpose\n"
            "|> map (\\a. %dy : [4][2]f32 |> transpose |> map (\\b. zip(a, b) |> map (*) |> reduce (+) 0))");
  EXPECT_EQ(adjoint(product, 1),
            "%dy : [4][2]f32 |> map (\\a. %b : [3][2]f32 |> map (\\b. zip(a, b) |> map (*) |> reduce (+) 0))");
  EXPECT_EQ(adjoint("map (\\i. index i (%x : [5]f32)) (%at : [3]i32)", 0),
            "zip(%at : [3]i32, %dy : [3]f32)\n"
            "|> fold (\\a (b, c). zip(a, iota 5 i32) |> map (\\(d, e). select(e == b, d + c, d))) (fill 0f32 [5])");
}

// The adjoint of a softmax reads its result, and needs neither the largest element nor the exponentials.
TEST(Adjoints, OfSoftmaxReadTheResult) {
  const auto adjoint = [](const std::string& call, bool has_result) {
    const Expr e = without_operator_calls(term(call)), y = parameter("y", e->type);
    std::set<std::string> faults;
    const Adjoints adjoints =
        adjoints_of(e, parameter("dy", e->type), parameters_of(e), faults, has_result ? y : nullptr);
    return print(with_bindings(adjoints.bindings, adjoints.of[0]));
  };
  const std::string of_result =
      "let b = zip(a, %dy : [5]f32) |> map (*) |> reduce (+) 0 in zip(a, %dy) |> map (\\(c, d). c * (d - b))";
  EXPECT_EQ(adjoint("Softmax(%x : [5]f32)", true),
            "let a = zip(%y : [5]f32, %dy : [5]f32) |> map (*) |> reduce (+) 0 in\n"
            "zip(%y, %dy) |> map (\\(b, c). b * (c - a))");
  EXPECT_EQ(adjoint("LogSoftmax(%x : [5]f32)", true),
            "let a = %dy : [5]f32 |> reduce (+) 0 in zip(%y : [5]f32, %dy) |> map (\\(b, c). c - exp(b) * a)");
  EXPECT_EQ(adjoint("ReduceLogSumExp(%x : [5]f32; keepdims = 0)", true),
            "%x : [5]f32 |> map (\\a. (%dy : f32) * exp(a - (%y : f32)))");
  EXPECT_THAT(adjoint("Softmax(%x : [5]f32)", false), testing::EndsWith("in\n" + of_result));
}

}  // namespace terms_test
}  // namespace hoist::gradients
