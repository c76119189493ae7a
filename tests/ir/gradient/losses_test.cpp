// Losses: their values, their gradients, and what they refuse.
#include "ir/gradient/losses.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>

#include "tests/ir/gradient/program_gradients.h"

namespace hoist::gradients {
namespace losses_test {

using testing::HasSubstr;

// The program with the loss, and with a constant in place of the loss's own input.
Program with_loss(const std::string& text, const std::string& value, const std::string& loss,
                  const std::string& given) {
  Program p = program(text + "output %" + value + "\n");
  const auto added = add_loss(p, value, loss);
  EXPECT_TRUE(added.ok()) << (added.ok() ? "" : added.errors()[0].text());
  if (!added.ok()) return p;
  EXPECT_EQ(*added, "loss");
  p.outputs = {*added};
  const auto [name, type] = p.inputs.back();
  p.inputs.pop_back();
  const Program constants = program(fmt::format("constant %c : {} = {{{}}}\noutput %c\n", hoist::text(type), given));
  p.constants.emplace(name, constants.constants.at("c"));
  return p;
}

double loss_of(const Program& p) { return values_of(p, random_inputs(p, 9)).at("loss").float_at(0); }

TEST(Losses, AreMeansOfSquares) {
  const Program p = with_loss("constant %y : [2][2]f64 = {1, 2, 3, 4}\ndefine %z : [2][2]f64 = Neg(%y)\n", "z", "mse",
                              "-1, -1, -3, -1");
  EXPECT_DOUBLE_EQ(loss_of(p), (0 + 1 + 0 + 9) / 4.0);
  expect_gradients(p, {"loss", false, {"y"}});
}

// p log(p / q) for two classes with these differences of logits.
double divergence(double teacher, double student) {
  const double p = 1 / (1 + std::exp(-teacher)), q = 1 / (1 + std::exp(-student));
  return p * std::log(p / q) + (1 - p) * std::log((1 - p) / (1 - q));
}

TEST(Losses, AreDivergencesFromATeacher) {
  constexpr char logits[] = "constant %y : [2][2]f64 = {0.5, -1, 2, 0.25}\n";
  const Program one = with_loss(logits, "y", "distillation", "1, 0, -3, 1");
  EXPECT_NEAR(loss_of(one), (divergence(1, 1.5) + divergence(-4, 1.75)) / 2, 1e-12);
  expect_gradients(one, {"loss", false, {"y"}});
  const Program warm = with_loss(logits, "y", "distillation:1,2", "1, 0, -3, 1");
  EXPECT_NEAR(loss_of(warm), 4 * (divergence(0.5, 0.75) + divergence(-2, 0.875)) / 2, 1e-12);
  expect_gradients(warm, {"loss", false, {"y"}});
  // Probabilities of the teacher, for a value that is a copy of probabilities.
  const Program soft = with_loss(std::string(logits) +
                                     "define %s : [2][2]f64 = Softmax(%y; axis = 1)\n"
                                     "define %z : [2][2]f64 = Identity(%s)\n",
                                 "z", "distillation",
                                 "0.73105857863000487925, 0.26894142136999512075, 0.01798620996209155803, "
                                 "0.98201379003790844197");
  EXPECT_NEAR(loss_of(soft), loss_of(one), 1e-9);
}

double cross_entropy(const std::vector<double>& row, size_t label) {
  double sum = 0;
  for (const double v : row) sum += std::exp(v);
  return std::log(sum) - row[label];
}

constexpr char logits[] = "constant %y : [3][2]f64 = {0.5, -1, 2, 0.25, -3, 1}\n";

TEST(Losses, AreCrossEntropies) {
  const double rows[] = {cross_entropy({0.5, -1}, 1), cross_entropy({2, 0.25}, 0), cross_entropy({-3, 1}, 1)};
  const Program all = with_loss(logits, "y", "cross-entropy", "1, 0, 1");
  EXPECT_NEAR(loss_of(all), (rows[0] + rows[1] + rows[2]) / 3, 1e-12);
  expect_gradients(all, {"loss", false, {"y"}});
  // A negative label leaves a row out, and a label without a class shows as NaN.
  const Program some = with_loss(logits, "y", "cross-entropy", "1, -100, 1");
  EXPECT_NEAR(loss_of(some), (rows[0] + rows[2]) / 2, 1e-12);
  expect_gradients(some, {"loss", false, {"y"}});
  EXPECT_TRUE(std::isnan(loss_of(with_loss(logits, "y", "cross-entropy", "1, 2, 1"))));
  EXPECT_EQ(loss_of(with_loss(logits, "y", "cross-entropy", "-1, -1, -1")), 0);
}

TEST(Losses, NameTheDimensionOfTheClasses) {
  const std::string columns = "constant %y : [2][3]f64 = {0.5, 2, -3, -1, 0.25, 1}\n";
  const double expected = loss_of(with_loss(logits, "y", "cross-entropy", "1, 0, 1"));
  EXPECT_NEAR(loss_of(with_loss(columns, "y", "cross-entropy:0", "1, 0, 1")), expected, 1e-12);
  EXPECT_NEAR(loss_of(with_loss(logits, "y", "cross-entropy:-1", "1, 0, 1")), expected, 1e-12);
  const std::string images = "constant %y : [1][2][3][1]f64 = {0.5, 2, -3, -1, 0.25, 1}\n";
  EXPECT_NEAR(loss_of(with_loss(images, "y", "cross-entropy", "1, 0, 1")), expected, 1e-12);
  EXPECT_NEAR(loss_of(with_loss("constant %y : [2]f64 = {0.5, -1}\n", "y", "cross-entropy:0", "1")),
              cross_entropy({0.5, -1}, 1), 1e-12);
}

// The loss of probabilities is that of the logits that they are made of, without a logarithm of a rounded number.
TEST(Losses, OfProbabilitiesAreThoseOfTheLogits) {
  const std::string probabilities = std::string(logits) + "define %p : [3][2]f64 = Softmax(%y)\n";
  const Program p = with_loss(probabilities, "p", "cross-entropy", "1, 0, 1");
  EXPECT_THAT(print_program(p), HasSubstr("LogSoftmax(%y"));
  EXPECT_NEAR(loss_of(p), loss_of(with_loss(logits, "y", "cross-entropy", "1, 0, 1")), 1e-12);
  // A softmax over other elements is no distribution over the classes.
  const std::string others = std::string(logits) + "define %p : [3][2]f64 = Softmax(%y; axis = 0)\n";
  EXPECT_THAT(print_program(with_loss(others, "p", "cross-entropy", "1, 0, 1")), HasSubstr("LogSoftmax(%p"));
}

TEST(Losses, RefuseOtherValues) {
  const auto problem = [](const std::string& value, const std::string& loss) {
    Program p = program("input %x : [2][3]f32\ninput %n : [2]i64\noutput %x\noutput %n\n");
    const auto added = add_loss(p, value, loss);
    return added.ok() ? "none" : added.errors()[0].text();
  };
  EXPECT_THAT(problem("x", "hinge"),
              HasSubstr("hinge: is no loss (cross-entropy, attention-transfer, distillation, mse)"));
  EXPECT_THAT(problem("x", "cross-entropy:2"), HasSubstr("x: is [2][3]f32, and has no axis 2 for the classes"));
  EXPECT_THAT(problem("x", "cross-entropy:one"), HasSubstr("cross-entropy:one: names no axis"));
  EXPECT_THAT(problem("x", "mse:1"), HasSubstr("mse has no axis"));
  EXPECT_THAT(problem("n", "mse"), HasSubstr("n: is [2]i64, and a loss needs floats"));
  EXPECT_THAT(problem("y", "mse"), HasSubstr("y: is no value of the model"));
  EXPECT_EQ(problem("x", "mse"), "none");
}

}  // namespace losses_test
}  // namespace hoist::gradients
