#include "tools/training/inverse_roots.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

namespace hoist {

Tensor inverse_roots(const Tensor& statistics, int64_t dimensions, double ridge) {
  using Matrix = Eigen::MatrixXd;
  const int64_t n = statistics.shape().back(), count = statistics.shape().front();
  Tensor out(statistics.scalar(), statistics.shape());
  for (int64_t block = 0; block < count; ++block) {
    const int64_t first = block * n * n;
    Matrix m(n, n);
    for (int64_t i = 0; i < n * n; ++i) m(i / n, i % n) = statistics.float_at(first + i);
    Matrix root = Matrix::Identity(n, n);
    // A step whose loss is not finite has such statistics too; the trainer names it.
    if (m.allFinite()) {
      const Eigen::SelfAdjointEigenSolver<Matrix> found((m + m.transpose()) / 2);
      const double largest = found.eigenvalues().maxCoeff();
      if (largest > 0) {
        const Eigen::VectorXd powers = (found.eigenvalues().array().max(0) + std::max(ridge, 1e-12) * largest)
                                           .pow(-0.5 / static_cast<double>(dimensions));
        root = found.eigenvectors() * powers.asDiagonal() * found.eigenvectors().transpose();
      }
    }
    for (int64_t i = 0; i < n * n; ++i) out.set_float(first + i, root(i / n, i % n));
  }
  return out;
}

Result<std::vector<Tensor>> KroneckerRoots::statistics(BundleRunner& step) const {
  std::vector<Tensor> out;
  for (const KroneckerFactor& factor : factors_) {
    const auto at = std::find_if(step.states().begin(), step.states().end(),
                                 [&](const ArrayInfo& state) { return state.name == factor.statistics; });
    HOIST_CHECK(at != step.states().end(), factor.statistics + " is no state of the step");
    HOIST_TRY(Tensor value, step.state(static_cast<size_t>(at - step.states().begin())));
    out.push_back(std::move(value));
  }
  return out;
}

Result<Nothing> KroneckerRoots::set(BundleRunner& step, const std::vector<Tensor>& roots) const {
  for (size_t i = 0; i < roots.size(); ++i) HOIST_TRY_VOID(step.set_input(factors_[i].root, roots[i]));
  return Nothing{};
}

Result<Nothing> KroneckerRoots::refresh(BundleRunner& step) {
  if (factors_.empty()) return Nothing{};
  coming_ = {};
  runs_ = 0;
  HOIST_TRY(const std::vector<Tensor> now, statistics(step));
  return set(step, roots_of(now));
}

Result<Nothing> KroneckerRoots::after_run(BundleRunner& step) {
  if (factors_.empty() || ++runs_ % every_ != 0) return Nothing{};
  if (coming_.valid()) HOIST_TRY_VOID(set(step, coming_.get()));
  HOIST_TRY(std::vector<Tensor> now, statistics(step));
  // A copy of what it needs, because a session may move meanwhile.
  coming_ = std::async(std::launch::async, [now = std::move(now), factors = factors_, ridge = ridge_] {
    return KroneckerRoots(factors, ridge, 1).roots_of(now);
  });
  return Nothing{};
}

std::vector<Tensor> KroneckerRoots::roots_of(const std::vector<Tensor>& statistics) const {
  std::vector<Tensor> out;
  for (size_t i = 0; i < statistics.size(); ++i)
    out.push_back(inverse_roots(statistics[i], factors_[i].dimensions, ridge_));
  return out;
}

}  // namespace hoist
