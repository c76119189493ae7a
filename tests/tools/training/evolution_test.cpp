// Hyper-parameters that a training finds: the hypergradient's direction, and the way to the best values.
#include "tools/training/evolution.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

namespace hoist::evolution_test {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TrainingOptions automatic(std::vector<std::string> names) {
  TrainingOptions out;
  out.automatic = std::move(names);
  return out;
}

// A validation loss with its least value at these hyper-parameters.
double loss_of(const HyperParameters& at, const HyperParameters& best) {
  double out = 1;
  for (const auto& [name, value] : at) out += 0.1 * std::pow(std::log(value / best.at(name)), 2);
  return out;
}

HyperParameters after(int64_t segments, HyperParameters centre, const HyperParameters& best, uint64_t seed,
                      double spread = 0) {
  for (int64_t i = 0; i < segments; ++i) {
    const std::vector<HyperParameters> copies = perturbed(centre, seed, i);
    std::vector<double> losses;
    for (const HyperParameters& copy : copies) losses.push_back(loss_of(copy, best));
    centre = mean_of(copies, *shares_of(losses, spread));
  }
  return centre;
}

TEST(Evolution, FindsTheBestValues) {
  const HyperParameters best = {{"lr", 0.1}, {"weight-decay", 1e-5}, {"clip", 3}, {"label-smoothing", 0.2}};
  const auto first = first_hyper_parameters(automatic({"lr", "weight-decay", "clip", "label-smoothing"}));
  ASSERT_TRUE(first.ok());
  for (const uint64_t seed : {1, 2, 3}) {
    const HyperParameters one = after(40, {{"lr", 0.001}}, {{"lr", 0.1}}, seed);
    EXPECT_NEAR(std::log(one.at("lr") / 0.1), 0, 0.3) << seed;
    for (const auto& [name, value] : after(200, *first, best, seed))
      EXPECT_NEAR(std::log(value / best.at(name)), 0, 0.5) << name << " " << seed;
  }
}

// For small differences of losses the mean step is a fixed multiple of the gradient of the loss by the logarithms.
TEST(Evolution, StepsAlongTheHypergradient) {
  const HyperParameters best = {{"lr", 0.0011}, {"clip", 0.95}};
  const HyperParameters centre = {{"lr", 0.001}, {"clip", 1}};
  std::map<std::string, double> sums;
  constexpr int64_t segments = 2000;
  for (int64_t i = 0; i < segments; ++i) {
    for (const auto& [name, value] : after(1, centre, best, static_cast<uint64_t>(i), 1))
      sums[name] += std::log(value / centre.at(name)) / segments;
  }
  constexpr double h = 1e-4;
  std::map<std::string, double> ratios;
  for (const auto& [name, value] : centre) {
    HyperParameters up = centre, down = centre;
    up[name] *= std::exp(h), down[name] *= std::exp(-h);
    ratios[name] = sums[name] / -((loss_of(up, best) - loss_of(down, best)) / (2 * h));
  }
  EXPECT_GT(ratios["lr"], 0);
  EXPECT_NEAR(ratios["lr"] / ratios["clip"], 1, 0.1);
}

TEST(Evolution, WeighsCopies) {
  double spread = 0;
  std::vector<double> shares = *shares_of({1.02, 1, nan}, spread);
  EXPECT_NEAR(shares[0] + shares[1], 1, 1e-12);
  EXPECT_NEAR(shares[1] / shares[0], std::exp(2), 1e-9);
  EXPECT_EQ(shares[2], 0);
  // A difference that is smaller than recent ones counts less.
  shares = *shares_of({1.002, 1}, spread);
  EXPECT_LT(shares[1] / shares[0], std::exp(0.3));
  EXPECT_NEAR(spread, 0.0095, 1e-4);
  EXPECT_FALSE(shares_of({nan, nan}, spread).ok());
  shares = *shares_of({1, 1}, spread = 0);
  EXPECT_EQ(shares[0], 0.5);
  // Opposite copies with equal shares change nothing.
  const HyperParameters centre = {{"clip", 1}, {"lr", 0.001}};
  for (const auto& [name, value] : mean_of(perturbed(centre, 7, 3), {0.5, 0.5}))
    EXPECT_NEAR(value, centre.at(name), 1e-12);
  EXPECT_EQ(perturbed(centre, 7, 3), perturbed(centre, 7, 3));
  // The range of a row.
  EXPECT_EQ(mean_of({{{"label-smoothing", 3}}}, {1}).at("label-smoothing"), 0.5);
}

TEST(Evolution, BeginsWithTheOptions) {
  TrainingOptions options = automatic({"lr", "clip"});
  options.rate = 0.02;
  EXPECT_EQ(*first_hyper_parameters(options), (HyperParameters{{"lr", 0.02}, {"clip", 1}}));
  const auto unknown = first_hyper_parameters(automatic({"lr", "clp"}));
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.errors()[0].text(), testing::HasSubstr("--auto clp: is no hyper-parameter"));
  EXPECT_THAT(unknown.errors()[0].text(), testing::HasSubstr("did you mean clip?"));
}

}  // namespace hoist::evolution_test
