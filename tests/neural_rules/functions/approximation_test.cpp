// Compares best approximations with known errors, and error bounds of terms with their errors.
#include "neural_rules/functions/approximation.h"

#include <gmock/gmock.h>

#include <cmath>

#include "ir/text/text.h"
#include "neural_rules/functions/minimax.h"
#include "neural_rules/functions/term_error.h"

namespace hoist::approximation_test {

using testing::HasSubstr;

double exact_tanh(double x) { return std::tanh(x); }

// Computed with 40 digits: the known errors for these functions and degrees.
TEST(Minimax, FindsTheKnownErrors) {
  const double power[] = {1.7e-3, 7.5e-5, 2.6e-6, 7.5e-8, 1.9e-9};
  for (int degree = 2; degree <= 6; ++degree) {
    auto fit = minimax([](double x) { return std::exp2(x); }, -0.5, 0.5, {false, degree, 0, true});
    ASSERT_TRUE(fit.has_value());
    EXPECT_NEAR(fit->error, power[degree - 2], 0.03 * power[degree - 2]);
  }
  const double odd[] = {1.1e-2, 9.6e-4, 8.1e-5, 6.9e-6};
  for (int terms = 1; terms <= 4; ++terms) {
    auto fit = minimax(exact_tanh, 0, 1, {true, terms, 0, true});
    ASSERT_TRUE(fit.has_value());
    EXPECT_NEAR(fit->error, odd[terms - 1], 0.04 * odd[terms - 1]);
  }
}

double value_of(const Minimax& fit, double x) {
  auto sum = [&](const std::vector<double>& c) {
    double s = 0;
    for (size_t i = c.size(); i-- > 0;) s = s * x * x + c[i];
    return s;
  };
  return x * sum(fit.numerator) / sum(fit.denominator);
}

// The property of best approximations: the error reaches its maximum with alternating sign once more often than there
// are coefficients.
TEST(Minimax, ErrorsOfQuotientsAlternate) {
  for (int half = 1; half <= 4; ++half) {
    auto fit = minimax(exact_tanh, 0, 5, {true, half, half, false});
    ASSERT_TRUE(fit.has_value());
    int peaks = 0, side = 0;
    for (int i = 1; i <= 200'000; ++i) {
      const double x = 5.0 * i / 200'000, e = value_of(*fit, x) - std::tanh(x);
      EXPECT_LE(std::fabs(e), fit->error * 1.001);
      if (std::fabs(e) > fit->error * 0.99 && (e > 0 ? 1 : -1) != side) {
        side = e > 0 ? 1 : -1;
        ++peaks;
      }
    }
    EXPECT_GE(peaks, 2 * half + 2) << half;
  }
}

TEST(ErrorBound, IsTightWhereTheErrorIsPlain) {
  const KnownFunction known = {"tanh", exact_tanh, [](double x) { return 1 / (std::cosh(x) * std::cosh(x)); }, 0.77};
  auto bound = [&](const std::string& text, double low, double high, bool relative = false) {
    return error_bound({*parse(text), low, high, relative}, known);
  };
  EXPECT_NEAR(bound("%x : f32", 0, 1), 1 - std::tanh(1), 0.003);
  EXPECT_NEAR(bound("%x : f32", 0.5, 1, true), 1 / std::tanh(1) - 1, 0.005);
  EXPECT_NEAR(bound("select(%x : f32 < 2f32, %x * 0.5f32, 1f32)", 0, 1.5), std::tanh(1) - 0.5, 0.2);
  EXPECT_NEAR(bound("(%x : f32) / fma(%x, %x, 1f32)", 0, 1), std::tanh(1) - 0.5, 0.01);
  // A rounding in every step: 1000 is added and subtracted, so f32 keeps three digits.
  EXPECT_GT(bound("(%x : f32 + 1000f32) - 1000f32", 0, 0.01), 5e-5);
  EXPECT_EQ(bound("1f32 / (%x : f32 - 0.5f32)", 0, 1), INFINITY);
}

TEST(Approximation, SaysWhatIsOutOfReach) {
  EXPECT_THAT(approximation("tanh", 4).errors()[0].text(), HasSubstr("no approximation of degree 4"));
  EXPECT_THAT(approximation("tahn", 3).errors()[0].text(), HasSubstr("did you mean tanh?"));
}

}  // namespace hoist::approximation_test
