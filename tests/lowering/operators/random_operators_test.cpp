// Tests operators that draw random numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/lowering/operators/operators_layer.h"

namespace hoist::random_operators_test {

double mean_of(const Tensor& x) {
  double sum = 0;
  for (int64_t i = 0; i < x.size(); ++i)
    sum += is_float(x.scalar()) ? x.float_at(i) : static_cast<double>(x.integer_at(i));
  return sum / static_cast<double>(x.size());
}

TEST(RandomOperators, NumbersAreAFunctionOfSeedAndPlace) {
  const auto drawn = [](const char* name, double seed, Ints shape, int64_t type = 1) {
    return LayerCase(name, {}, {{"shape", shape}, {"seed", seed}, {"dtype", type}}).run();
  };
  for (const char* name : {"RandomUniform", "RandomNormal"}) {
    const Tensor x = drawn(name, 7, {40, 50});
    EXPECT_TRUE(std::ranges::equal(drawn(name, 7, {2000}).bytes(), x.bytes()));
    EXPECT_FALSE(std::ranges::equal(drawn(name, 8, {2000}).bytes(), x.bytes()));
    EXPECT_NEAR(mean_of(x), name == std::string("RandomUniform") ? 0.5 : 0, 0.06) << name;
  }
  const Tensor uniform = drawn("RandomUniform", 3, {1000});
  for (int64_t i = 0; i < uniform.size(); ++i) {
    EXPECT_GE(uniform.float_at(i), 0);
    EXPECT_LT(uniform.float_at(i), 1);
  }
  EXPECT_EQ(drawn("RandomUniform", 3, {0}).size(), 0);
  EXPECT_EQ(drawn("RandomNormal", 3, {2, 3}, 11).scalar(), Scalar::f64);
  EXPECT_EQ(drawn("RandomUniform", 3, {4}, 10).scalar(), Scalar::f16);
}

TEST(RandomOperators, ProbabilitiesAreThoseAskedFor) {
  const Tensor likely = floats({2000}, std::vector<double>(2000, 0.8));
  const Tensor bits = LayerCase("Bernoulli", {likely}, {{"seed", 1.0}, {"dtype", int64_t{9}}}).run();
  EXPECT_EQ(bits.scalar(), Scalar::boolean);
  EXPECT_NEAR(mean_of(bits), 0.8, 0.04);
}

TEST(RandomOperators, ClassesAreDrawnByTheLogarithmsOfTheirWeights) {
  const double none = -std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const auto drawn = [](const Tensor& x, int64_t count, double seed = 1, int64_t type = 6) {
    return LayerCase("Multinomial", {x}, {{"sample_size", count}, {"seed", seed}, {"dtype", type}}).run();
  };
  const auto counts = [](const Tensor& classes, int64_t row, size_t of) {
    std::vector<int> out(of);
    const int64_t samples = classes.shape()[1];
    for (int64_t i = 0; i < samples; ++i) ++out.at(static_cast<size_t>(classes.integer_at(row * samples + i)));
    return out;
  };
  // Weights need not sum to 1: both rows are multiples of 1/8, 1/2, 3/8.
  const std::vector<double> shares = {0.125, 0.5, 0.375};
  std::vector<double> rows;
  for (const double share : shares) rows.push_back(std::log(share));
  for (const double share : shares) rows.push_back(std::log(share) + 300);
  const Tensor classes = drawn(floats({2, 3}, rows), 4000);
  EXPECT_EQ(classes.scalar(), Scalar::i32);
  EXPECT_EQ(classes.shape(), (Ints{2, 4000}));
  for (const int64_t row : {0, 1}) {
    double squares = 0;  // chi-squared with two degrees of freedom: above 18 for one of 8000 seeds
    const std::vector<int> found = counts(classes, row, 3);
    for (size_t i = 0; i < 3; ++i) squares += std::pow(found[i] - 4000 * shares[i], 2) / (4000 * shares[i]);
    EXPECT_LT(squares, 18) << "row " << row;
  }
  // Rows are independent of each other.
  EXPECT_NE(counts(classes, 0, 3), counts(classes, 1, 3));
  EXPECT_TRUE(std::ranges::equal(drawn(floats({2, 3}, rows), 4000).bytes(), classes.bytes()));
  EXPECT_FALSE(std::ranges::equal(drawn(floats({2, 3}, rows), 4000, 2).bytes(), classes.bytes()));
  // With replacement, and never a class of weight 0.
  const Tensor only = drawn(floats({1, 4}, {none, 1, none, none}), 100);
  EXPECT_EQ(counts(only, 0, 4), (std::vector<int>{0, 100, 0, 0}));
  EXPECT_EQ(counts(drawn(floats({1, 1}, {-7}), 9), 0, 1)[0], 9);
  EXPECT_EQ(counts(drawn(floats({1, 3}, {-1e30, 0, 0}), 50), 0, 3)[0], 0);
  // Without positive weights: the first class.
  EXPECT_EQ(counts(drawn(floats({2, 3}, {none, none, none, 0, nan, 0}), 5), 0, 3)[0], 5);
  EXPECT_EQ(counts(drawn(floats({2, 3}, {none, none, none, 0, nan, 0}), 5), 1, 3)[0], 5);
  EXPECT_EQ(drawn(floats({0, 3}, {}), 4).shape(), (Ints{0, 4}));
  EXPECT_EQ(drawn(floats({1, 3}, {0, 0, 0}), 4, 1, 7).scalar(), Scalar::i64);
  EXPECT_NE(LayerCase("Multinomial", {floats({1, 0}, {})}, {}).error().find("has no classes"), std::string::npos);
}

TEST(RandomOperators, DropoutScalesWhatItKeeps) {
  const Tensor x = floats({1000}, std::vector<double>(1000, 3)), ratio = floats({}, {0.25});
  const Tensor yes = Tensor::of<int>(Scalar::boolean, {}, {1}), no = Tensor::of<int>(Scalar::boolean, {}, {0});
  const LayerCase training("Dropout", {x, ratio, yes}, {{"seed", int64_t{5}}}, 2);
  const Tensor y = training.run(0), mask = training.run(1);
  EXPECT_NEAR(mean_of(mask), 0.75, 0.05);
  for (int64_t i = 0; i < x.size(); ++i) EXPECT_EQ(y.float_at(i), mask.integer_at(i) != 0 ? 4 : 0);
  EXPECT_EQ(LayerCase("Dropout", {x, ratio, no}, {}, 2).run(0), x);
  EXPECT_EQ(LayerCase("Dropout", {x, floats({}, {0}), yes}, {}, 2).run(0), x);
  EXPECT_EQ(mean_of(LayerCase("Dropout", {x}, {}, 2).run(1)), 1);
}

}  // namespace hoist::random_operators_test
