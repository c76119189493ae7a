// Gradients of few bits: rounding at random is unbiased and has the variance that the header states, and feedback keeps
// sums over runs within one rounding.
#include "ir/gradient/training/gradient_formats.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/gradient/training/training_step.h"
#include "ir/program/states.h"
#include "tests/ir/gradient/program_gradients.h"

namespace hoist::gradients {
namespace gradient_formats_test {

const std::vector<double> numbers = {1, -0.93, 0.4444, -0.01, 0, 0.7001};

Tensor number(Scalar scalar, int64_t value) {
  Tensor out(scalar, {});
  out.set_integer(0, value);
  return out;
}

TEST(GradientFormats, RoundWithoutABiasAndWithTheStatedVariance) {
  constexpr int runs = 4000;
  const Expr gradient = parameter("g", array_type(std::vector<Nat>{2, 3}, scalar_type(Scalar::f32)));
  const Expr run = parameter("run", scalar_type(Scalar::u64)), step = parameter("step", scalar_type(Scalar::f32));
  const Tensor exact = Tensor::of<double>(Scalar::f32, {2, 3}, numbers);
  for (const GradientFormat& format : gradient_formats()) {
    const auto found = evaluate(gradient_step(format, gradient), {{"g", exact}});
    ASSERT_TRUE(found.ok()) << found.errors()[0].text();
    const double s = found->float_at(0);
    EXPECT_NEAR(s, 1.0 / static_cast<double>(format.largest()), 1e-7);
    const Expr rounded = gradient_of(rounded_gradient(format, gradient, step, 7, run), step);
    std::vector<double> sums(6), squares(6);
    for (int i = 0; i < runs; ++i) {
      const auto value = evaluate(rounded, {{"g", exact}, {"step", *found}, {"run", number(Scalar::u64, i)}});
      ASSERT_TRUE(value.ok()) << value.errors()[0].text();
      for (size_t k = 0; k < 6; ++k) {
        const double q = value->float_at(static_cast<int64_t>(k)), steps = q / s;
        ASSERT_NEAR(steps, std::round(steps), 1e-4) << "not on the grid";
        ASSERT_LE(std::abs(q - numbers[k]), s * 1.001);
        sums[k] += q, squares[k] += (q - numbers[k]) * (q - numbers[k]);
      }
    }
    for (size_t k = 0; k < 6; ++k) {
      const double part = numbers[k] / s - std::floor(numbers[k] / s), variance = s * s * part * (1 - part);
      EXPECT_LE(variance, s * s / 4);
      // Five standard errors; of a Bernoulli variable the fourth moment bounds that of the variance.
      EXPECT_NEAR(sums[k] / runs, numbers[k], 5 * std::sqrt(variance / runs) + 2e-6) << format.name << " " << k;
      EXPECT_NEAR(squares[k] / runs, variance, 5 * s * s * std::sqrt(0.25 / runs) + 1e-9) << format.name << " " << k;
    }
  }
}

TEST(GradientFormats, ArraysOfZerosStayZero) {
  const Expr gradient = parameter("g", array_type(std::vector<Nat>{3}, scalar_type(Scalar::f32)));
  const GradientFormat& format = *find_gradient_format("i4");
  const Expr step = gradient_step(format, gradient);
  const Expr rounded = gradient_of(rounded_gradient(format, gradient, step, 1, literal_integer(Scalar::u64, 3)), step);
  const auto value = evaluate(rounded, {{"g", Tensor(Scalar::f32, {3})}});
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(*value, Tensor(Scalar::f32, {3}));
  EXPECT_EQ(find_gradient_format("i3"), nullptr);
}

// With sgd the weight is the sum of the rounded gradients, and a loss of squares without inputs has known gradients.
TEST(GradientFormats, FeedbackKeepsSumsWithinOneRounding) {
  const Program model = program(
      "input %x : [1][4]f64\nconstant %w : [1][4]f64 = {0, 0, 0, 0}\ndefine %y : [1][4]f64 = Add(%x, %w)\noutput %y\n");
  const Tensor x(Scalar::f64, {1, 4}), target = Tensor::of<double>(Scalar::f64, {1, 4}, {-2, 0.3, 0.07, 1.1});
  Tensor rate(Scalar::f32, {});
  rate.set_float(0, 1e-6);
  const auto moved = [&](const char* format, int runs) {
    TrainingRequest request;
    request.value = "y", request.loss = "mse", request.weights = {"w"};
    request.optimiser = *optimiser_named("sgd");
    request.gradients = find_gradient_format(format);
    auto step = training_step(model, request);
    EXPECT_TRUE(step.ok()) << (step.ok() ? "" : step.errors()[0].text());
    RunSequence sequence(step->program);
    for (int i = 0; i < runs; ++i) EXPECT_TRUE(sequence.run({x, target, rate}).ok());
    for (size_t i = 0; i < step->program.states.size(); ++i) {
      if (step->program.states[i].name == "w") return sequence.states()[i];
    }
    return Tensor();
  };
  constexpr int runs = 64;
  const Tensor exact = moved("", runs), with = moved("i2-feedback", runs);
  const double step = 2 * 2.0 / 4 * 1e-6;  // of the grid of 2 bits, times the rate: the largest gradient itself
  double largest = 0;
  for (int64_t i = 0; i < 4; ++i) largest = std::max(largest, std::abs(with.float_at(i) - exact.float_at(i)));
  EXPECT_LE(largest, 1.001 * step);
  EXPECT_GT(largest, 0);
  const Tensor again = moved("i2-feedback", runs);
  EXPECT_EQ(with, again) << "the same seed gives the same bits";
}

}  // namespace gradient_formats_test
}  // namespace hoist::gradients
