// Compares formulas of functions, as the interpreter computes them, with the functions in f64: over all exponents and
// the special values.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "ir/evaluate/evaluate.h"
#include "ir/rules/rewrite.h"
#include "ir/text/text.h"
#include "lowering/rules/rules.h"

namespace hoist::function_rules_test {

constexpr int64_t samples = 1 << 16;

// Both signs and every exponent, with evenly spaced values.
Tensor all_magnitudes() {
  Tensor out(Scalar::f32, {2 * samples});
  for (int64_t i = 0; i < samples; ++i) {
    const auto bits = static_cast<uint32_t>(static_cast<double>(i) / samples * 0x7f800000);
    float x = 0;
    std::memcpy(&x, &bits, sizeof x);
    out.set_float(2 * i, x);
    out.set_float(2 * i + 1, -x);
  }
  return out;
}

// A fine grid over the interval in which the function varies.
Tensor all_between(double low, double high) {
  Tensor out(Scalar::f32, {samples});
  for (int64_t i = 0; i < samples; ++i) out.set_float(i, low + (high - low) * static_cast<double>(i) / samples);
  return out;
}

Tensor computed(const std::string& name, const Tensor& x) {
  const Type type = array_type(Nat(x.size()), scalar_type(Scalar::f32));
  auto term = parse("%x : " + text(type) + " |> map " + name);
  EXPECT_TRUE(term.ok()) << term.errors()[0].text();
  Rewriter rewriter(lowering_rules(), *term);
  EXPECT_GT(rewriter.apply_everywhere({"erf-by-quotient", "tanh-by-exponential", "exp-by-powers-of-two"}), 0);
  EXPECT_EQ(print(rewriter.term()).find(name + " "), std::string::npos);
  auto value = evaluate(rewriter.term(), {{"x", x}});
  EXPECT_TRUE(value.ok()) << value.errors()[0].text();
  return *value;
}

// In f32 ulps of the function's value.
double largest_error(const std::string& name, double (*function)(double), const Tensor& x) {
  const Tensor y = computed(name, x);
  double largest = 0;
  for (int64_t i = 0; i < x.size(); ++i) {
    const double exact = function(x.float_at(i)), found = y.float_at(i);
    const auto rounded = static_cast<float>(exact);
    if (std::isinf(rounded) || std::isinf(found)) {
      // The largest finite value may be on either side.
      EXPECT_NEAR(std::min(found, 3.402823e38), std::min(exact, 3.402823e38), 1e33) << name << " " << x.float_at(i);
      continue;
    }
    const float next = std::nextafter(std::abs(rounded), std::numeric_limits<float>::infinity());
    const double error = std::abs(found - exact) / (static_cast<double>(next) - std::abs(rounded));
    EXPECT_FALSE(std::isnan(error)) << name << " " << x.float_at(i);
    largest = std::max(largest, error);
  }
  return largest;
}

double largest_error(const std::string& name, double (*function)(double)) {
  return std::max({largest_error(name, function, all_magnitudes()), largest_error(name, function, all_between(-5, 5)),
                   largest_error(name, function, all_between(-110, 95))});
}

TEST(FunctionRulesOfKernels, AreWithinTheirUnits) {
  EXPECT_LE(largest_error("exp", [](double x) { return std::exp(x); }), 1.2);
  EXPECT_LE(largest_error("tanh", [](double x) { return std::tanh(x); }), 2.5);
  EXPECT_LE(largest_error("erf", [](double x) { return std::erf(x); }), 5);
}

TEST(FunctionRulesOfKernels, KeepSpecialValues) {
  Tensor x(Scalar::f32, {3});
  x.set_float(0, std::numeric_limits<float>::quiet_NaN());
  x.set_float(1, std::numeric_limits<float>::infinity());
  x.set_float(2, -std::numeric_limits<float>::infinity());
  const double infinite = std::numeric_limits<double>::infinity();
  for (const auto& [name, high, low] : std::initializer_list<std::tuple<const char*, double, double>>{
           {"exp", infinite, 0}, {"tanh", 1, -1}, {"erf", 1, -1}}) {
    const Tensor y = computed(name, x);
    EXPECT_TRUE(std::isnan(y.float_at(0))) << name;
    EXPECT_EQ(y.float_at(1), high) << name;
    EXPECT_EQ(y.float_at(2), low) << name;
  }
}

}  // namespace hoist::function_rules_test
