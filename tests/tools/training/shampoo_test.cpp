// Shampoo: inverse roots against a coupled Newton iteration, a step's weights against the formulas in double, and
// blocks.
#include <gmock/gmock.h>

#include <Eigen/Dense>
#include <cmath>

#include "ir/base/seeded.h"
#include "ir/gradient/training/training_step.h"
#include "ir/program/states.h"
#include "ir/text/program_text.h"
#include "tools/training/inverse_roots.h"

namespace hoist::shampoo_test {

using Matrix = Eigen::MatrixXd;

Matrix random_matrix(int64_t rows, int64_t columns, uint64_t seed) {
  const Tensor t = seeded_tensor(Scalar::f64, {rows, columns}, seed, 0, -1, 1);
  Matrix out(rows, columns);
  for (int64_t i = 0; i < t.size(); ++i) out(i / columns, i % columns) = t.float_at(i);
  return out;
}

Tensor tensor_of(const Matrix& m, std::vector<int64_t> shape) {
  Tensor out(Scalar::f64, std::move(shape));
  for (int64_t i = 0; i < m.size(); ++i) out.set_float(i, m(i / m.cols(), i % m.cols()));
  return out;
}

Matrix matrix_of(const Tensor& t, int64_t rows) {
  Matrix out(rows, t.size() / rows);
  for (int64_t i = 0; i < t.size(); ++i) out(i / out.cols(), i % out.cols()) = t.float_at(i);
  return out;
}

// The coupled Newton iteration for a^(-1/p), which has nothing in common with eigenvalues.
Matrix newton_root(const Matrix& a, int p) {
  const Matrix unit = Matrix::Identity(a.rows(), a.rows());
  const double z = (1 + p) / (2 * a.norm());
  Matrix m = z * a, x = std::pow(z, 1.0 / p) * unit;
  for (int i = 0; i < 200 && (m - unit).cwiseAbs().maxCoeff() > 1e-13; ++i) {
    const Matrix t = ((p + 1) * unit - m) / p;
    x = x * t;
    for (int k = 0; k < p; ++k) m = t * m;
  }
  return x;
}

TEST(Shampoo, FindsInverseRoots) {
  for (const int64_t dimensions : {1, 2}) {
    Tensor blocks(Scalar::f64, {2, 5, 5});
    std::vector<Matrix> given;
    for (const int block : {0, 1}) {
      const Matrix v =
          Eigen::HouseholderQR<Matrix>(random_matrix(5, 5, 3 + static_cast<uint64_t>(block))).householderQ();
      Eigen::VectorXd values(5);
      values << 1e4, 300, 20, 5, 1;  // a condition of 1e4
      given.push_back(v * values.asDiagonal() * v.transpose() * (block == 0 ? 1 : 1e-6));
      for (int64_t i = 0; i < 25; ++i) blocks.set_float(25 * block + i, given.back()(i / 5, i % 5));
    }
    const Tensor roots = inverse_roots(blocks, dimensions, 0);
    for (const int block : {0, 1}) {
      const Matrix expected = newton_root(given[static_cast<size_t>(block)], static_cast<int>(2 * dimensions));
      for (int64_t i = 0; i < 25; ++i)
        EXPECT_NEAR(roots.float_at(25 * block + i) / expected.norm(), expected(i / 5, i % 5) / expected.norm(), 1e-6);
    }
  }
  const Tensor of_zeros = inverse_roots(Tensor(Scalar::f64, {1, 2, 2}), 2, 1e-6);
  EXPECT_EQ(of_zeros, Tensor::of<double>(Scalar::f64, {1, 2, 2}, {1, 0, 0, 1}));
}

constexpr char product[] =
    "program %p version 21\ninput %x : [4][3]f64\nconstant %w : [3][2]f64 = {0.5, -1, 2, 0.25, 1, -0.5}\nconstant %b : "
    "[2]f64 = {0.5, -1}\n"
    "define %m : [4][2]f64 = MatMul(%x, %w)\ndefine %y : [4][2]f64 = Add(%m, %b)\noutput %y\n";

class Step {
 public:
  explicit Step(const std::string& optimiser) {
    TrainingRequest request;
    request.value = "y", request.loss = "mse", request.weights = {"w", "b"};
    request.optimiser = *optimiser_named(optimiser);
    auto made = training_step(*parse_program(product), request);
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.errors()[0].text());
    step = std::move(*made);
    sequence.emplace(step.program);
  }

  Tensor state(const std::string& name) const {
    for (size_t i = 0; i < step.program.states.size(); ++i) {
      if (step.program.states[i].name == name) return sequence->states()[i];
    }
    ADD_FAILURE() << name;
    return {};
  }

  void run(const Matrix& x, const Matrix& target, double rate) {
    Tensor of_rate(Scalar::f32, {});
    of_rate.set_float(0, rate);
    std::vector<Tensor> inputs = {tensor_of(x, {4, 3}), tensor_of(target, {4, 2}), of_rate};
    for (const KroneckerFactor& factor : step.factors)
      inputs.push_back(inverse_roots(state(factor.statistics), factor.dimensions, 0));
    const auto outputs = sequence->run(inputs);
    EXPECT_TRUE(outputs.ok()) << (outputs.ok() ? "" : outputs.errors()[0].text());
  }

  TrainingStep step;
  std::optional<RunSequence> sequence;
};

// One weight by the formulas, with roots of the statistics before the step.
struct Reference {
  Matrix w;
  std::string step_of = "";  // the end of the optimiser's name
  double memory = 0.5;
  std::vector<Matrix> statistics = {};
  Matrix squares = Matrix::Zero(w.rows(), w.cols()), velocity = squares;

  void step(const Matrix& g, double rate, double t) {
    const bool is_vector = w.cols() == 1;
    if (statistics.empty()) {
      statistics.push_back(Matrix::Zero(w.rows(), w.rows()));
      if (!is_vector) statistics.push_back(Matrix::Zero(w.cols(), w.cols()));
    }
    const auto root = [&](const Matrix& m) -> Matrix {
      if (m.norm() == 0) return Matrix::Identity(m.rows(), m.rows());
      // The iteration is not for singular matrices, which early statistics are: the solver adds the same ridge.
      const Matrix ridged = m + 1e-12 * Eigen::SelfAdjointEigenSolver<Matrix>(m).eigenvalues().maxCoeff() *
                                    Matrix::Identity(m.rows(), m.rows());
      const Eigen::SelfAdjointEigenSolver<Matrix> found(ridged);
      return found.eigenvectors() * found.eigenvalues().array().pow(is_vector ? -0.5 : -0.25).matrix().asDiagonal() *
             found.eigenvectors().transpose();
    };
    Matrix p = root(statistics[0]) * g;
    if (!is_vector) p = p * root(statistics[1]);
    statistics[0] = memory * statistics[0] + g * g.transpose();
    if (!is_vector) statistics[1] = memory * statistics[1] + g.transpose() * g;
    squares = memory * squares + g.cwiseProduct(g);
    double length = (g.array() / squares.array().sqrt()).matrix().norm();
    if (step_of.empty()) length *= std::sqrt((1 - std::pow(memory, t)) / (1 - memory));
    if (step_of == "-sgd") length = g.norm();
    velocity = 0.9 * velocity + (step_of == "-sgd" ? 1 : 0.1) * p * (length / p.norm());
    w -= rate * velocity;
  }
};

TEST(Shampoo, MovesWeightsByTheFormulas) {
  for (const auto& [step_of, memory] : {std::pair("", 0.5), {"-adagrad", 1.0}, {"-sgd", 0.5}}) {
    Step step(std::string("shampoo") + step_of + ":ridge=0" + (memory == 1 ? "" : ",memory=0.5"));
    ASSERT_EQ(step.step.factors.size(), 3);
    Reference w{matrix_of(step.state("w"), 3), step_of, memory}, b{matrix_of(step.state("b"), 2), step_of, memory};
    for (uint64_t t = 0; t < 5; ++t) {
      const Matrix x = random_matrix(4, 3, 10 + t), target = random_matrix(4, 2, 20 + t);
      const Matrix difference = ((x * w.w).rowwise() + b.w.col(0).transpose() - target) / 4;  // 2 / 8 elements
      step.run(x, target, 0.125);
      w.step(x.transpose() * difference, 0.125, static_cast<double>(t + 1));
      b.step(difference.colwise().sum().transpose(), 0.125, static_cast<double>(t + 1));
      EXPECT_LT((matrix_of(step.state("w"), 3) - w.w).norm(), 1e-6) << step_of << t;
      EXPECT_LT((matrix_of(step.state("b"), 2) - b.w).norm(), 1e-6) << step_of << t;
    }
  }
}

TEST(Shampoo, SplitsLargeDimensions) {
  // A block that is larger than the weight is the whole weight; blocks of one element have their own length each.
  Step whole("shampoo:block=3"), larger("shampoo:block=100"), split("shampoo:block=2");
  EXPECT_THAT(whole.state("w.statistics0").shape(), testing::ElementsAre(1, 3, 3));
  EXPECT_THAT(split.state("w.statistics0").shape(), testing::ElementsAre(2, 2, 2));
  EXPECT_THAT(split.state("w.statistics1").shape(), testing::ElementsAre(2, 2, 2));
  for (uint64_t t = 0; t < 3; ++t) {
    const Matrix x = random_matrix(4, 3, 10 + t), target = random_matrix(4, 2, 20 + t);
    for (Step* each : {&whole, &larger, &split}) each->run(x, target, 0.125);
  }
  EXPECT_EQ(whole.state("w"), larger.state("w"));
  EXPECT_NE(whole.state("w"), split.state("w"));
  // The diagonal of the factors of blocks is that of the whole factor for the rows.
  const KroneckerBlocks blocks({5, 3, 2}, 4);
  EXPECT_THAT(blocks.factor_shape(0), testing::ElementsAre(4, 3, 3));
  const Tensor values = seeded_tensor(Scalar::f64, {5, 3, 2}, 1, 0, -1, 1);
  const Expr given = parameter("x", type_of(values));
  const auto back = evaluate(blocks.from_blocks(blocks.in_blocks(given)), {{"x", values}});
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, values);
}

TEST(Shampoo, RefusesUnusableBlocks) {
  TrainingRequest request;
  request.value = "y", request.loss = "mse", request.weights = {"w"};
  request.optimiser = *optimiser_named("shampoo:block=0");
  const auto made = training_step(*parse_program(product), request);
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.errors()[0].text(), testing::HasSubstr("block is 0, and has to be an integer from 1"));
}

}  // namespace hoist::shampoo_test
