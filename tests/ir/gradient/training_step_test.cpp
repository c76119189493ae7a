// Steps of training: the optimisers' formulas over several steps, gradients against central differences, layers in
// training mode, and refusals.
#include "ir/gradient/training/training_step.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>

#include "ir/gradient/training/initial_weights.h"
#include "ir/gradient/training/training_mode.h"
#include "ir/program/states.h"
#include "tests/ir/gradient/program_gradients.h"

namespace hoist::gradients {
namespace training_step_test {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double rate = 0.125;

// y = w * x, element by element.
constexpr char product[] =
    "input %x : [2][2]f64\nconstant %w : [2][2]f64 = {0.5, -1, 2, 0.25}\ndefine %y : [2][2]f64 = Mul(%x, %w)\n"
    "output %y\n";
const Tensor inputs = Tensor::of<double>(Scalar::f64, {2, 2}, {1, -2, 0.5, 3}),
             targets = Tensor::of<double>(Scalar::f64, {2, 2}, {0, 1, 1, -1});

TrainingRequest request(const std::string& optimiser, std::vector<std::string> weights = {"w"},
                        const std::string& loss = "mse") {
  TrainingRequest out;
  out.value = "y";
  out.loss = loss;
  const auto named = optimiser_named(optimiser);
  EXPECT_TRUE(named.ok()) << (named.ok() ? "" : named.errors()[0].text());
  if (named.ok()) out.optimiser = *named;
  out.weights = std::move(weights);
  return out;
}

TrainingStep step_of(const std::string& text, const TrainingRequest& request) {
  auto made = training_step(program(text), request);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.errors()[0].text());
  if (!made.ok()) return {};
  // The text holds the whole step.
  const std::string printed = print_program(made->program);
  const auto again = parse_program(printed);
  EXPECT_TRUE(again.ok() && same_program(made->program, *again))
      << (again.ok() ? "another program" : again.errors()[0].text()) << "\n"
      << printed;
  return std::move(*made);
}

std::vector<Tensor> given(const Tensor& x, const Tensor& target, double rate) {
  Tensor of_rate(Scalar::f32, {});
  of_rate.set_float(0, rate);
  return {x, target, of_rate};
}

size_t index_of(const Program& p, const std::string& state) {
  size_t i = 0;
  while (i < p.states.size() && p.states[i].name != state) ++i;
  EXPECT_LT(i, p.states.size()) << state;
  return i;
}

double run_once(RunSequence& sequence, const std::vector<Tensor>& inputs) {
  const auto outputs = sequence.run(inputs);
  EXPECT_TRUE(outputs.ok()) << (outputs.ok() ? "" : outputs.errors()[0].text());
  return outputs.ok() ? (*outputs)[0].float_at(0) : 0;
}

void expect_descent(const TrainingStep& step, const std::vector<Tensor>& inputs,
                    const std::vector<std::string>& weights);

// The next weight of one element, and its states, by the literature's formulas.
struct Reference {
  std::string optimiser;
  double decay = 0, a = 0, b = 0;

  double next(double w, double g, int t) {
    const double d = g + decay * w;
    if (optimiser == "sgd") return w - rate * d;
    if (optimiser == "momentum") return a = 0.9 * a + d, w - rate * a;
    if (optimiser == "nesterov") return a = 0.9 * a + d, w - rate * (d + 0.9 * a);
    if (optimiser == "adagrad") return a += d * d, w - rate * d / (std::sqrt(a) + 1e-10);
    const bool is_decoupled = optimiser == "adamw";
    const double e = is_decoupled ? g : d;
    a = 0.9 * a + 0.1 * e, b = 0.999 * b + 0.001 * e * e;
    const double mean = a / (1 - std::pow(0.9, t)), square = b / (1 - std::pow(0.999, t));
    return w - (is_decoupled ? rate * decay * w : 0) - rate * mean / (std::sqrt(square) + 1e-8);
  }
};

TEST(TrainingStep, MovesWeightsByTheOptimisersFormulas) {
  for (const OptimiserRow& row : optimiser_table()) {
    if (row.name.starts_with("shampoo")) continue;  // tests/tools/training/shampoo_test.cpp
    TrainingRequest wanted = request(row.name + ":decay=0.01");
    const TrainingStep step = step_of(product, wanted);
    EXPECT_EQ(step.program.states.size(), 2 + row.states().size()) << row.name;
    RunSequence sequence(step.program);
    const size_t place = index_of(step.program, "w");
    std::vector<double> w = {0.5, -1, 2, 0.25};
    std::vector<Reference> references(4, {row.name, 0.01});
    for (int t = 1; t <= 4; ++t) {
      double loss = 0;
      for (size_t i = 0; i < 4; ++i) {
        const double x = inputs.float_at(static_cast<int64_t>(i));
        const double difference = w[i] * x - targets.float_at(static_cast<int64_t>(i));
        loss += difference * difference / 4;
        w[i] = references[i].next(w[i], 2 * difference * x / 4, t);
      }
      EXPECT_NEAR(run_once(sequence, given(inputs, targets, rate)), loss, 1e-12) << row.name;
      for (size_t i = 0; i < 4; ++i)
        EXPECT_NEAR(sequence.states()[place].float_at(static_cast<int64_t>(i)), w[i], 1e-9) << row.name << " " << t;
    }
  }
}

TEST(TrainingStep, KeepsMaskedWeightsAtZero) {
  TrainingRequest wanted = request("momentum:decay=0.01");
  wanted.masks["w"] = Tensor::of<int64_t>(Scalar::boolean, {2, 2}, {1, 0, 1, 0});
  wanted.clip = 0.001;
  const TrainingStep step = step_of(product, wanted);
  RunSequence sequence(step.program);
  for (int t = 0; t < 3; ++t) run_once(sequence, given(inputs, targets, rate));
  const Tensor& w = sequence.states()[index_of(step.program, "w")];
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(w.float_at(i) == 0, i % 2 == 1) << i;
}

TEST(TrainingStep, DoesNotDecayVectors) {
  const std::string text =
      "input %x : [2][2]f64\nconstant %w : [2]f64 = {0.5, -1}\ndefine %y : [2][2]f64 = Mul(%x, %w)\noutput %y\n";
  const TrainingStep with_decay = step_of(text, request("sgd:decay=0.5")), without = step_of(text, request("sgd"));
  RunSequence a(with_decay.program), b(without.program);
  run_once(a, given(inputs, targets, rate)), run_once(b, given(inputs, targets, rate));
  EXPECT_EQ(a.states()[index_of(with_decay.program, "w")], b.states()[index_of(without.program, "w")]);
}

TEST(TrainingStep, LimitsTheNormOfGradients) {
  TrainingRequest wanted = request("sgd");
  const TrainingStep free = step_of(product, wanted);
  wanted.clip = 0.25;
  const TrainingStep limited = step_of(product, wanted);
  ASSERT_EQ(model_output_count(limited.program), 2);
  RunSequence a(free.program), b(limited.program);
  run_once(a, given(inputs, targets, 1));
  const auto outputs = b.run(given(inputs, targets, 1));
  ASSERT_TRUE(outputs.ok());
  double squares = 0, limited_squares = 0;
  for (int64_t i = 0; i < 4; ++i) {
    const double before =
        free.program.constants.at(free.program.states[index_of(free.program, "w")].initial).float_at(i);
    squares += std::pow(a.states()[index_of(free.program, "w")].float_at(i) - before, 2);
    limited_squares += std::pow(b.states()[index_of(limited.program, "w")].float_at(i) - before, 2);
  }
  EXPECT_NEAR((*outputs)[1].float_at(0), std::sqrt(squares), 1e-6);
  EXPECT_GT(std::sqrt(squares), 0.25);
  EXPECT_NEAR(std::sqrt(limited_squares), 0.25, 1e-6);
}

// Inputs in the place of numbers give the same weights; a smoothed label is a mixture of the label and all classes.
TEST(TrainingStep, TakesHyperParametersAsInputs) {
  const std::string text =
      "input %x : [2][2]f64\nconstant %w : [2][3]f64 = {0.5, -1, 2, 0.25, 1, 0}\n"
      "define %y : [2][3]f64 = MatMul(%x, %w)\noutput %y\n";
  TrainingRequest wanted = request("sgd:decay=0.25", {"w"}, "cross-entropy");
  wanted.clip = 0.5, wanted.smoothing = 0.25;
  const TrainingStep fixed = step_of(text, wanted);
  wanted = request("sgd", {"w"}, "cross-entropy");
  wanted.open = {"decay", "clip", "smoothing"};
  const TrainingStep open = step_of(text, wanted);
  EXPECT_EQ(open.open.size(), 3u);
  const Tensor labels = Tensor::of<int64_t>(Scalar::i64, {2}, {2, -1});
  std::vector<Tensor> all = given(inputs, labels, rate);
  RunSequence a(fixed.program), b(open.program);
  const double loss = run_once(a, all);
  const auto one = [](double value) { return Tensor::of<float>(Scalar::f32, {}, {static_cast<float>(value)}); };
  all.insert(all.begin() + 1, {one(0.5), one(0.25), one(0.25)});  // in the order of their names
  EXPECT_NEAR(run_once(b, all), loss, 1e-12);
  for (int64_t i = 0; i < 6; ++i)
    EXPECT_NEAR(a.states()[index_of(fixed.program, "w")].float_at(i),
                b.states()[index_of(open.program, "w")].float_at(i), 1e-12);
  // The first row's logits are 1 * (0.5, -1, 2) - 2 * (0.25, 1, 0) = (0, -3, 2); the second row has no label.
  const double sum = std::log(1 + std::exp(-3.0) + std::exp(2.0));
  EXPECT_NEAR(loss, 0.75 * (sum - 2) + 0.25 * (sum + 1.0 / 3), 1e-6);
  expect_descent(open, {all[0], one(1e9), one(0), one(0.25), all[4], all[5]}, {"w"});
}

// Two runs with the halves of a batch move the weights as one run with the batch.
TEST(TrainingStep, AccumulatesGradients) {
  const auto text = [](int rows) {
    return fmt::format(
        "input %x : [{0}][2]f64\nconstant %w : [2][2]f64 = {{0.5, -1, 2, 0.25}}\n"
        "define %y : [{0}][2]f64 = MatMul(%x, %w)\noutput %y\n",
        rows);
  };
  const auto part = [](const Tensor& all, int64_t row) {
    return Tensor::of<double>(Scalar::f64, {1, 2}, {all.float_at(2 * row), all.float_at(2 * row + 1)});
  };
  TrainingRequest wanted = request("adam");
  const TrainingStep whole = step_of(text(2), wanted);
  wanted.accumulated = 2;
  const TrainingStep halves = step_of(text(1), wanted);
  RunSequence a(whole.program), b(halves.program);
  const size_t at_a = index_of(whole.program, "w"), at_b = index_of(halves.program, "w");
  for (int step = 0; step < 3; ++step) {
    run_once(a, given(inputs, targets, rate));
    const Tensor before = b.states()[at_b];
    run_once(b, given(part(inputs, 0), part(targets, 0), rate));
    EXPECT_EQ(b.states()[at_b], before);
    run_once(b, given(part(inputs, 1), part(targets, 1), rate));
    for (int64_t i = 0; i < 4; ++i)
      EXPECT_NEAR(a.states()[at_a].float_at(i), b.states()[at_b].float_at(i), 1e-12) << step;
  }
}

// The weights after a step of sgd against central differences of the step's own loss.
void expect_descent(const TrainingStep& step, const std::vector<Tensor>& inputs,
                    const std::vector<std::string>& weights) {
  constexpr double width = 1e-5;
  for (const std::string& name : weights) {
    const size_t place = index_of(step.program, name);
    RunSequence moved(step.program);
    run_once(moved, inputs);
    const Tensor& here = step.program.constants.at(step.program.states[place].initial);
    for (int64_t i = 0; i < here.size(); ++i) {
      double losses[2];
      for (const int side : {0, 1}) {
        RunSequence other(step.program);
        Tensor changed = here;
        changed.set_float(i, here.float_at(i) + (side == 1 ? width : -width));
        other.set_state(place, changed);
        losses[side] = run_once(other, inputs);
      }
      const double gradient = (losses[1] - losses[0]) / (2 * width);
      EXPECT_NEAR(moved.states()[place].float_at(i), here.float_at(i) - rate * gradient,
                  1e-6 * (1 + std::abs(gradient)))
          << name << " at " << i;
    }
  }
}

constexpr char normalised[] =
    "input %x : [4][2][2][2]f64\nconstant %w : [2][2][1][1]f64 = {0.5, -1, 2, 0.25}\n"
    "constant %scale : [2]f64 = {1.5, -0.5}\nconstant %bias : [2]f64 = {0.25, 1}\n"
    "constant %mean : [2]f64 = {0.5, 0}\nconstant %variance : [2]f64 = {2, 1}\n"
    "define %c : [4][2][2][2]f64 = Conv(%x, %w)\n"
    "define %n : [4][2][2][2]f64 = BatchNormalization(%c, %scale, %bias, %mean, %variance; epsilon = 0.001, "
    "momentum = 0.75)\n"
    "define %r : [4][2][2][2]f64 = Relu(%n)\n"
    "define %p : [4][2][1][1]f64 = GlobalAveragePool(%r)\ndefine %y : [4][2]f64 = Flatten(%p; axis = 1)\noutput %y\n";

Tensor seeded(const std::vector<int64_t>& shape) { return seeded_tensor(Scalar::f64, shape, 3, 0, -1, 1); }

TEST(TrainingStep, NormalisesByTheBatch) {
  TrainingRequest wanted = request("sgd", {"w", "scale", "bias"}, "cross-entropy");
  wanted.averages = {"mean", "variance"};
  const TrainingStep step = step_of(normalised, wanted);
  EXPECT_THAT(step.weights, ElementsAre("w", "scale", "bias", "mean", "variance"));
  const Tensor x = seeded({4, 2, 2, 2});
  const std::vector<Tensor> all = given(x, Tensor::of<int64_t>(Scalar::i64, {4}, {0, 1, 1, 0}), rate);
  expect_descent(step, all, wanted.weights);
  for (const Definition& d : step.program.definitions)
    EXPECT_THAT(d.value, testing::Not(testing::AnyOf(HasSubstr("mean.gradient"), HasSubstr("variance.gradient"))))
        << "the adjoints of scale and bias are all the sums that the image's adjoint needs";
  RunSequence sequence(step.program);
  run_once(sequence, all);
  const Bindings values = values_of(program(normalised), {{"x", x}});
  const Tensor& c = values.at("c");
  const double old_mean[] = {0.5, 0}, old_variance[] = {2, 1};
  for (int64_t channel = 0; channel < 2; ++channel) {
    double mean = 0, square = 0;
    for (int64_t image = 0; image < 4; ++image) {
      for (int64_t k = 0; k < 4; ++k) {
        const double v = c.float_at((image * 2 + channel) * 4 + k);
        mean += v / 16, square += v * v / 16;
      }
    }
    EXPECT_NEAR(sequence.states()[index_of(step.program, "mean")].float_at(channel),
                0.75 * old_mean[channel] + 0.25 * mean, 1e-12);
    EXPECT_NEAR(sequence.states()[index_of(step.program, "variance")].float_at(channel),
                0.75 * old_variance[channel] + 0.25 * (square - mean * mean), 1e-12);
  }
}

TEST(TrainingStep, KeepsFrozenNormalisations) {
  const TrainingRequest wanted = request("sgd", {"w"}, "cross-entropy");
  const TrainingStep step = step_of(normalised, wanted);
  EXPECT_THAT(step.weights, ElementsAre("w"));
  expect_descent(step, given(seeded({4, 2, 2, 2}), Tensor::of<int64_t>(Scalar::i64, {4}, {0, 1, 1, 0}), rate), {"w"});
}

TEST(TrainingStep, SeparatesCopiesOfConstants) {
  Program p = program(
      "input %x : [2]f64\nconstant %w : [2]f64 = {1, 2}\ndefine %v : [2]f64 = Identity(%w)\n"
      "define %u : [2]f64 = Mul(%x, %w)\ndefine %y : [2]f64 = Mul(%u, %v)\noutput %y\n");
  separate_copies(p);
  EXPECT_EQ(p.definitions.size(), 2u);
  ASSERT_TRUE(p.constants.contains("v"));
  EXPECT_EQ(p.constants.at("v"), p.constants.at("w"));
  const auto made = training_step(p, request("sgd", {"w", "v"}));
  ASSERT_TRUE(made.ok()) << made.errors()[0].text();
  RunSequence runs(made->program);
  run_once(runs, given(seeded({2}), seeded({2}), rate));
  EXPECT_EQ(runs.states()[index_of(made->program, "v")], runs.states()[index_of(made->program, "w")])
      << "equal values of a product move equally";
  EXPECT_NE(runs.states()[index_of(made->program, "v")], p.constants.at("v"));
}

TEST(TrainingStep, DropsOtherElementsInEachRun) {
  const TrainingRequest wanted = request("sgd");
  const TrainingStep step = step_of(
      "input %x : [512][4]f64\nconstant %w : [1][4]f64 = {1, 1, 1, 1}\nconstant %ratio : f64 = {0.25}\n"
      "define %m : [512][4]f64 = Mul(%x, %w)\ndefine %y : [512][4]f64 = Dropout(%m, %ratio)\noutput %y\n",
      wanted);
  RunSequence sequence(step.program);
  const Tensor ones = seeded_tensor(Scalar::f64, {512, 4}, 1, 0, 1, 1);
  // Without a step the loss is the mean square of the factors: 1 / 0.75 for a share of 0.75.
  const Tensor zeros(Scalar::f64, {512, 4});
  const double first = run_once(sequence, given(ones, zeros, 0)), second = run_once(sequence, given(ones, zeros, 0));
  EXPECT_NEAR(first, 1 / 0.75, 0.08);
  EXPECT_NEAR(second, 1 / 0.75, 0.08);
  EXPECT_NE(first, second);
  sequence.reset();
  EXPECT_EQ(run_once(sequence, given(ones, zeros, 0)), first);
  expect_descent(step, given(ones, zeros, rate), {"w"});
}

TEST(TrainingStep, BeginsWithSeededWeights) {
  TrainingRequest wanted = request("sgd", {"w", "scale", "bias"}, "cross-entropy");
  wanted.averages = {"mean", "variance"};
  Program one = program(normalised), two = one, other = one;
  for (Program* p : {&one, &two}) ASSERT_TRUE(initialise_weights(*p, wanted, "he").ok());
  wanted.seed = 2;
  ASSERT_TRUE(initialise_weights(other, wanted, "he").ok());
  EXPECT_EQ(one.constants.at("w"), two.constants.at("w"));
  EXPECT_NE(one.constants.at("w"), other.constants.at("w"));
  const auto values = [&](const std::string& name) {
    return std::pair(one.constants.at(name).float_at(0), one.constants.at(name).float_at(1));
  };
  EXPECT_EQ(values("scale"), std::pair(1.0, 1.0));
  EXPECT_EQ(values("bias"), std::pair(0.0, 0.0));
  EXPECT_EQ(values("mean"), std::pair(0.0, 0.0));
  EXPECT_EQ(values("variance"), std::pair(1.0, 1.0));
  // The variance of many weights: 2 / inputs, and 2 / (inputs + outputs).
  for (const auto& [how, variance] : {std::pair("he", 2.0 / 64), {"glorot", 2.0 / (64 + 128)}}) {
    Program p = program("input %x : [1][64]f64\nconstant %w : [64][2]f64 = {" + [] {
      std::string zeros = "0";
      for (int i = 1; i < 128; ++i) zeros += ", 0";
      return zeros;
    }() + "}\ndefine %y : [1][2]f64 = MatMul(%x, %w)\noutput %y\n");
    p.constants["w"] = Tensor(Scalar::f64, {64, 128});
    ASSERT_TRUE(initialise_weights(p, request("sgd"), how).ok());
    double squares = 0;
    for (int64_t i = 0; i < 64 * 128; ++i) squares += std::pow(p.constants["w"].float_at(i), 2);
    EXPECT_NEAR(squares / (64 * 128) / variance, 1, 0.05) << how;
  }
}

TEST(TrainingStep, RefusesWhatItCannotTrain) {
  const auto problem = [](const std::string& text, const TrainingRequest& wanted) {
    const auto made = training_step(program(text), wanted);
    return made.ok() ? std::string("none") : made.errors()[0].text();
  };
  EXPECT_THAT(problem(product, request("sgd", {})), HasSubstr("depends on no weight that may change"));
  EXPECT_THAT(problem(product, request("sgd", {"x"})), HasSubstr("is no constant of the model"));
  EXPECT_THAT(problem("input %x : [2]f32\nconstant %w : [2]f16 = {1, 2}\ndefine %v : [2]f32 = Cast(%w; to = 1)\n"
                      "define %y : [2]f32 = Mul(%x, %v)\noutput %y\n",
                      request("sgd")),
              HasSubstr("weights of f32 or f64 are trained"));
  const auto unknown = [](const std::string& text) { return optimiser_named(text).errors()[0].text(); };
  EXPECT_THAT(unknown("adan"), HasSubstr("did you mean adam"));
  EXPECT_THAT(unknown("adam:beta3=1"), HasSubstr("adam has no hyper-parameter beta3"));
  EXPECT_THAT(unknown("adam:beta1=x"), HasSubstr("is not NAME:PARAMETER=VALUE"));
}

}  // namespace training_step_test
}  // namespace hoist::gradients
