// Compares every row that approximates a function, as the rewritten term computes it, with its certificate; and tests
// layers as lowering writes them.
#include "neural_rules/functions/functions.h"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <set>

#include "ir/text/text.h"
#include "tests/lowering/operators/operators_layer.h"
#include "tests/support/print_steps.h"

namespace hoist::functions_test {

using testing::HasSubstr;

double exact(const std::string& function, double x) {
  if (function == "tanh") return std::tanh(x);
  if (function == "erf") return std::erf(x);
  if (function == "exp") return std::exp(x);
  return 1 / (1 + std::exp(-x));
}

// The function of a row's left side, and its type.
std::string function_of(const RuleRow& row) {
  return row.left.front() == '1' ? "sigmoid" : row.left.substr(0, row.left.find('('));
}
Scalar type_of(const RuleRow& row) { return *scalar_named(row.given.substr(3)); }

// The right side of a row for an array of inputs, through the rule engine.
Tensor rewritten(const RuleRow& row, const Tensor& x) {
  const std::string type(hoist::row(x.scalar()).name);
  auto term = parse("map (\\x. " + row.left + ") (%x : [" + std::to_string(x.size()) + "]" + type + ")");
  HOIST_CHECK(term.ok(), term.errors()[0].text());
  Rewriter rewriter(function_rule_table(), *term);
  HOIST_CHECK(rewriter.apply_everywhere({row.name}) == 1, row.name + " does not apply");
  auto y = evaluate(rewriter.term(), {{"x", x}});
  HOIST_CHECK(y.ok(), y.errors()[0].text());
  return *y;
}

// Values over all of f32, ordered by their bits, from `first` in equal steps.
Tensor all_over(uint32_t first, uint32_t step) {
  const auto n = static_cast<int64_t>((0xffffffffu - first) / step);
  Tensor x(Scalar::f32, {n});
  for (int64_t i = 0; i < n; ++i) {
    x.set_float(i, static_cast<double>(std::bit_cast<float>(first + static_cast<uint32_t>(i) * step)));
  }
  return x;
}

// The same number of values in the interval where functions vary.
Tensor between(double low, double high, int64_t n) {
  Tensor x(Scalar::f32, {n});
  for (int64_t i = 0; i < n; ++i)
    x.set_float(i, low + (high - low) * static_cast<double>(i) / static_cast<double>(n - 1));
  return x;
}

Tensor every_bf16() {
  Tensor x(Scalar::bf16, {1 << 16});
  for (int i = 0; i < 1 << 16; ++i) {
    x.data()[2 * i] = static_cast<std::byte>(i & 0xff);
    x.data()[2 * i + 1] = static_cast<std::byte>(i >> 8);
  }
  return x;
}

struct Measured {
  double largest = 0, at = 0;
};

// The largest error in the range of the certificate; outside of it NaN must stay NaN, and no other input may give NaN.
Measured measure(const RuleRow& row, const Certificate& c, const Tensor& x) {
  const std::string function = function_of(row);
  const Tensor y = rewritten(row, x);
  Measured m;
  for (int64_t i = 0; i < x.size(); ++i) {
    const double v = x.float_at(i), found = y.float_at(i);
    if (std::isnan(v) != std::isnan(found)) ADD_FAILURE() << row.name << " of " << v << " is " << found;
    if (std::isnan(v) || v < c.low || v > c.high) continue;
    const double want = exact(function, v);
    const double error = std::fabs(found - want) / (c.relative ? want : 1);
    if (!(error <= m.largest)) m = {error, v};
  }
  return m;
}

TEST(FunctionRules, KeepTheirPromiseOnEveryKindOfInput) {
  for (const RuleRow& row : function_rule_rows()) {
    const Certificate c = *certificate_of(row.name);
    std::vector<Tensor> inputs;
    if (type_of(row) == Scalar::bf16)
      inputs = {every_bf16()};
    else
      inputs = {all_over(0, 4099), all_over(7, 7919), between(-12, 12, 400'000), between(-1, 1, 200'000)};
    double largest = 0;
    for (const Tensor& x : inputs) {
      Measured m = measure(row, c, x);
      EXPECT_LE(m.largest, c.error) << row.name << " at " << m.at;
      largest = std::max(largest, m.largest);
    }
    // A certificate far above the real error would be useless for a budget.
    EXPECT_GT(largest, c.error / 2.5) << row.name;
    RecordProperty(row.name, fmt::format("{:.4g} of {:.4g}", largest, c.error));
  }
}

TEST(FunctionRules, TreatSpecialValuesAsTheFunctionDoes) {
  const Tensor x = Tensor::of<double>(Scalar::f32, {5}, {INFINITY, -INFINITY, NAN, 0.0, -0.0});
  for (const RuleRow& row : function_rule_rows()) {
    const std::string function = function_of(row);
    const bool bits = type_of(row) == Scalar::bf16;
    const Tensor y =
        rewritten(row, bits ? Tensor::of<double>(Scalar::bf16, {5}, {INFINITY, -INFINITY, NAN, 0.0, -0.0}) : x);
    EXPECT_EQ(y.float_at(0), exact(function, INFINITY)) << row.name;
    EXPECT_EQ(y.float_at(1), exact(function, -INFINITY)) << row.name;
    EXPECT_TRUE(std::isnan(y.float_at(2))) << row.name;
    EXPECT_NEAR(y.float_at(3), exact(function, 0), certificate_of(row.name)->error) << row.name;
    EXPECT_EQ(std::signbit(y.float_at(4)), function == "tanh" || function == "erf") << row.name;
  }
}

// Sigmoid's and GELU's tails are products with these values, so they must be exact.
TEST(FunctionRules, ReachTheirLimits) {
  const Tensor x = Tensor::of<double>(Scalar::f32, {4}, {20, -20, 1e30, -1e30});
  for (const RuleRow& row : function_rule_rows()) {
    const std::string function = function_of(row);
    if (function == "exp" || type_of(row) != Scalar::f32) continue;
    const Tensor y = rewritten(row, x);
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(y.float_at(i), x.float_at(i) > 0 ? 1 : function == "sigmoid" ? 0 : -1) << row.name;
    }
  }
}

TEST(FunctionRules, ExpIsZeroBelowAndInfiniteAboveItsRange) {
  for (const RuleRow& row : function_rule_rows()) {
    if (function_of(row) != "exp") continue;
    const Tensor y = rewritten(row, Tensor::of<double>(Scalar::f32, {6}, {-87.34, -88, -200, -1e38, 88.8, 1e38}));
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_GE(y.float_at(i), 0);
      EXPECT_LE(y.float_at(i), 1.2e-38);
    }
    for (int64_t i = 4; i < 6; ++i) EXPECT_EQ(y.float_at(i), INFINITY);
  }
}

TEST(FunctionRules, AreNamedOnceAndHaveRows) {
  std::set<std::string> names;
  for (const NeuralRule& rule : function_rules()) {
    EXPECT_TRUE(names.insert(std::string(rule.name)).second) << rule.name;
    ASSERT_TRUE(certificate_of(rule.name).has_value()) << rule.name;
    EXPECT_EQ(rule.family, RuleFamily::function);
    // The description states no smaller error than the certificate; "within 4e-3" is in every line.
    const auto found = rule.what.find("within ");
    ASSERT_NE(found, std::string_view::npos) << rule.name;
    EXPECT_LE(certificate_of(rule.name)->error, std::stod(std::string(rule.what.substr(found + 7)))) << rule.name;
  }
  for (const RuleRow& row : function_rule_rows()) EXPECT_EQ(row.rule_class, RuleClass::neural);
  EXPECT_FALSE(certificate_of("tanh-rational-4").has_value());
}

// ---- Layers --------------------------------------------------------------------------------------------------------

Tensor spread(std::vector<int64_t> shape, double scale) {
  Tensor x(Scalar::f32, std::move(shape));
  for (int64_t i = 0; i < x.size(); ++i) x.set_float(i, scale * std::sin(0.7 * static_cast<double>(i * i + 1)));
  return x;
}

struct LayerUnderRule {
  LayerCase layer;
  std::string rule;
  double bound;  // bound of the layer's output, derived from the certificate's error at the call
  size_t calls;
};

TEST(Approximate, LayersStayWithinWhatTheirCallsPromise) {
  const double scale = 9;
  auto error = [](const char* rule) { return certificate_of(rule)->error; };
  const Tensor x = spread({3, 50}, scale);
  const std::vector<LayerUnderRule> cases = {
      {{"Tanh", {x}}, "tanh-rational-3", error("tanh-rational-3"), 1},
      {{"Tanh", {x}}, "tanh-rational-7", error("tanh-rational-7"), 1},
      {{"Tanh", {x}}, "k-tanh", error("k-tanh-of-f32"), 1},
      {{"Sigmoid", {x}}, "tanh-rational-5", error("sigmoid-rational-5"), 1},
      {{"Sigmoid", {x}}, "exp-polynomial-3", error("exp-polynomial-3"), 1},  // e / (1 + e)^2 is at most a quarter
      {{"Sigmoid", {x}}, "k-tanh", error("k-sigmoid-of-f32"), 1},
      {{"Swish", {x}}, "tanh-rational-5", scale * error("sigmoid-rational-5"), 1},
      {{"Gelu", {x}}, "erf-rational-5", scale / 2 * error("erf-rational-5"), 1},
      {{"Gelu", {x}, {{"approximate", std::string("tanh")}}},
       "tanh-rational-5",
       scale / 2 * error("tanh-rational-5"),
       1},
      {{"Mish", {x}}, "tanh-rational-7", scale * error("tanh-rational-7"), 1},
      // Power and sum each have at most that relative error.
      {{"Softmax", {x}}, "exp-polynomial-3", 2.01 * error("exp-polynomial-3"), 2},
      {{"Softmax", {x}}, "exp-polynomial-5", 2.01 * error("exp-polynomial-5") + 1e-6, 2},
  };
  for (const LayerUnderRule& c : cases) {
    LayerCase layer = c.layer;
    auto lowered = layer.at_version(24).lower();
    ASSERT_TRUE(lowered.ok()) << lowered.errors()[0].text();
    auto made = approximate((*lowered)[0], c.rule);
    ASSERT_TRUE(made.ok()) << made.errors()[0].text();
    EXPECT_EQ(made->derivation.steps.size(), c.calls) << print(made->term);
    const Bindings bindings = {{"x0", x}};
    auto want = interpret((*lowered)[0], bindings), got = interpret(made->term, bindings);
    ASSERT_TRUE(want.ok() && got.ok());
    double largest = 0;
    for (int64_t i = 0; i < want->size(); ++i)
      largest = std::max(largest, std::fabs(want->float_at(i) - got->float_at(i)));
    EXPECT_LE(largest, c.bound + 1e-6) << c.layer.layer.operation << " under " << c.rule;
    EXPECT_GT(largest, 0) << c.layer.layer.operation << " under " << c.rule;
    auto again = evaluate(made->term, bindings);
    ASSERT_TRUE(again.ok());
    EXPECT_TRUE(*again == *got) << "the evaluator agrees with the interpreter";
  }
}

TEST(Approximate, SoftmaxOfLargeNumbersStaysFinite) {
  const LayerCase layer("Softmax", {Tensor::of<double>(Scalar::f32, {1, 4}, {1000, 999, -INFINITY, -1000})});
  auto made = approximate((*layer.lower())[0], "exp-polynomial-3");
  ASSERT_TRUE(made.ok());
  auto y = interpret(made->term, {{"x0", layer.inputs[0]}});
  ASSERT_TRUE(y.ok());
  EXPECT_NEAR(y->float_at(0), 1 / (1 + std::exp(-1)), 2e-4);
  EXPECT_NEAR(y->float_at(1), 1 / (1 + std::exp(1)), 2e-4);
  EXPECT_EQ(y->float_at(2), 0);
  EXPECT_EQ(y->float_at(3), 0);
}

TEST(Approximate, CanBeReplayedFromItsText) {
  const LayerCase layer("Tanh", {spread({7}, 2)});
  auto made = approximate((*layer.lower())[0], "tanh-rational-5");
  ASSERT_TRUE(made.ok());
  auto steps = parse_steps(print_steps(made->derivation.steps));
  ASSERT_TRUE(steps.ok());
  auto terms = replay(function_rule_table(), {made->derivation.start, *steps});
  ASSERT_TRUE(terms.ok()) << terms.errors()[0].text();
  EXPECT_EQ(terms->back(), made->term);
  EXPECT_THAT(print_steps(made->derivation.steps), HasSubstr("tanh-rational-5 at 0.0 neural"));
}

TEST(UnderFunctions, StepsSayWhatWasReplacedAndWhatIsPromised) {
  const LayerCase layer("Tanh", {spread({7}, 2)});
  const Expr tanh = (*layer.lower())[0];
  auto under = under_functions(tanh, {"before", "act"}, {{"act", "tanh-rational-5"}, {"elsewhere", "erf-rational-3"}});
  ASSERT_TRUE(under.ok()) << under.errors()[0].text();
  EXPECT_EQ(under->term, approximate(tanh, "tanh-rational-5")->term);
  ASSERT_EQ(under->steps.size(), 1u);
  const ProgramStep& step = under->steps[0];
  EXPECT_EQ(step.rule, "tanh-rational-5");
  EXPECT_EQ(step.layer, "act");
  EXPECT_EQ(step.rule_class, RuleClass::neural);
  EXPECT_EQ(step.place, (Path{0, 0}));
  EXPECT_EQ(step.note, "tanh(x): " + promise_of(*certificate_of("tanh-rational-5")));
  auto nothing = under_functions(tanh, {"before"}, {{"act", "tanh-rational-5"}});
  ASSERT_TRUE(nothing.ok());
  EXPECT_EQ(nothing->term, tanh);
  EXPECT_TRUE(nothing->steps.empty());
}

TEST(Approximate, SaysWhyNot) {
  const LayerCase layer("Relu", {spread({7}, 2)});
  Expr relu = (*layer.lower())[0];
  auto nothing = approximate(relu, "tanh-rational-5");
  ASSERT_FALSE(nothing.ok());
  EXPECT_EQ(nothing.errors()[0].text(),
            "tanh-rational-5: the layer has no function that the rule approximates (the layer calls tanh or a "
            "sigmoid on f32)");
  auto unknown = approximate(relu, "tanh-rationl-5");
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.errors()[0].text(), HasSubstr("did you mean tanh-rational-5?"));
}

}  // namespace hoist::functions_test
