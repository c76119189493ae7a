#include "neural_rules/functions/minimax.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <numbers>

namespace hoist {
namespace {

using Real = long double;
using LongVector = Eigen::Matrix<Real, Eigen::Dynamic, 1>;
using LongMatrix = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic>;

constexpr int grid_points = 2000;
constexpr int most_exchanges = 60;
constexpr int most_levelings = 40;
constexpr int square_rounds = 4;
constexpr int grid_step = 8;

// The function on the grid. Points are denser at both ends, like the extrema of the error; t is scaled to about 1, so
// that its powers have similar magnitudes.
struct GridSamples {
  std::vector<Real> x, t, value, weight;
  Real scale = 1;
};

GridSamples sample(const std::function<double(double)>& function, double low, double high, const MinimaxShape& shape) {
  GridSamples s;
  s.scale = shape.odd ? Real(high) * high : std::max(std::fabs(Real(low)), std::fabs(Real(high)));
  for (int i = 0; i <= grid_points; ++i) {
    Real place = (1 - std::cos(std::numbers::pi_v<Real> * i / grid_points)) / 2;
    Real x = low + (Real(high) - low) * place;
    if (shape.odd && x == 0) continue;  // the error is 0 there for all coefficients
    s.x.push_back(x);
    s.t.push_back((shape.odd ? x * x : x) / s.scale);
    s.value.push_back(function(static_cast<double>(x)));
    s.weight.push_back(shape.relative ? std::fabs(s.value.back()) : 1);
  }
  return s;
}

Real polynomial(const LongVector& c, Eigen::Index first, Eigen::Index count, Real t) {
  Real sum = 0;
  for (Eigen::Index i = count; i-- > 0;) sum = sum * t + c(first + i);
  return sum;
}

class Exchange {
 public:
  Exchange(const GridSamples& samples, const MinimaxShape& shape)
      : s_(samples), shape_(shape), above_(shape.numerator + 1), below_(shape.denominator) {}

  std::optional<Minimax> run() {
    Real largest = 0;
    fit_squares();
    if (!exchange(largest)) return std::nullopt;
    for (int round = 0; round < most_exchanges; ++round) {
      level();
      const Real reached = std::fabs(level_);
      if (!exchange(largest)) return std::nullopt;
      if (largest <= reached * Real(1.0001)) return result(largest);
    }
    return std::nullopt;
  }

 private:
  size_t wanted() const { return static_cast<size_t>(above_ + below_ + 1); }

  // The initial solution: least squares of value * denominator - numerator, divided by the denominator of the previous
  // round. Its error alternates at about the positions of the optimum, which leveling a rational function requires.
  void fit_squares() {
    const auto rows = static_cast<Eigen::Index>(s_.x.size()) / grid_step;
    coefficients_ = LongVector::Zero(above_ + below_ + 1);
    for (int round = 0; round < (below_ == 0 ? 1 : square_rounds); ++round) {
      LongMatrix equations(rows, above_ + below_);
      LongVector right(rows);
      for (Eigen::Index i = 0; i < rows; ++i) {
        const auto k = static_cast<size_t>(i * grid_step);
        const Real divisor = s_.weight[k] * std::max(std::fabs(denominator(k)), Real(1e-3));
        Real power = (shape_.odd ? s_.x[k] : 1) / divisor;
        for (Eigen::Index j = 0; j < above_; ++j, power *= s_.t[k]) equations(i, j) = power;
        power = -s_.value[k] * s_.t[k] / divisor;
        for (Eigen::Index j = 0; j < below_; ++j, power *= s_.t[k]) equations(i, above_ + j) = power;
        right(i) = s_.value[k] / divisor;
      }
      coefficients_.head(above_ + below_) = equations.colPivHouseholderQr().solve(right);
    }
  }

  // Coefficients whose error has the same magnitude and alternating sign at all reference points. The magnitude
  // multiplies the denominator, so the equations are linear only for a fixed magnitude; the magnitude that reproduces
  // itself is found by the secant method, starting from the current error.
  void level() {
    Real now = level_, before = now, gap_before = 0;
    for (int round = 0; round < most_levelings; ++round) {
      level_ = leveled(now);
      const Real gap = level_ - now;
      if (below_ == 0 || !(std::fabs(gap) > std::fabs(now) * Real(1e-9))) return;
      const Real slope = round == 0 ? -1 : (gap - gap_before) / (now - before);
      before = now;
      gap_before = gap;
      now -= gap / slope;
    }
  }

  Real leveled(Real inserted) {
    const auto n = static_cast<Eigen::Index>(wanted());
    LongMatrix equations(n, n);
    LongVector right(n);
    for (Eigen::Index i = 0; i < n; ++i) {
      const size_t k = reference_[static_cast<size_t>(i)];
      const Real side = (i % 2 == 0 ? 1 : -1) * s_.weight[k];
      Real power = shape_.odd ? s_.x[k] : 1;
      for (Eigen::Index j = 0; j < above_; ++j, power *= s_.t[k]) equations(i, j) = power;
      power = s_.t[k];
      for (Eigen::Index j = 0; j < below_; ++j, power *= s_.t[k])
        equations(i, above_ + j) = -(s_.value[k] + side * inserted) * power;
      equations(i, n - 1) = -side;
      right(i) = s_.value[k];
    }
    coefficients_ = equations.fullPivLu().solve(right);
    return coefficients_(n - 1);
  }

  Real denominator(size_t k) const { return 1 + s_.t[k] * polynomial(coefficients_, above_, below_, s_.t[k]); }

  Real error(size_t k) const {
    Real above = polynomial(coefficients_, 0, above_, s_.t[k]) * (shape_.odd ? s_.x[k] : 1);
    return (above / denominator(k) - s_.value[k]) / s_.weight[k];
  }

  // The new reference: the largest error of each interval of constant sign, as many consecutive points as there are
  // unknowns, including the overall maximum.
  bool exchange(Real& largest) {
    std::vector<size_t> peaks;
    std::vector<Real> errors;
    for (size_t k = 0; k < s_.x.size(); ++k) {
      if (!(denominator(k) > 0)) return false;
      Real e = error(k);
      if (!peaks.empty() && (e > 0) == (errors.back() > 0)) {
        if (std::fabs(e) > std::fabs(errors.back())) peaks.back() = k, errors.back() = e;
      } else {
        peaks.push_back(k);
        errors.push_back(e);
      }
    }
    largest = 0;
    for (Real e : errors) largest = std::max(largest, std::fabs(e));
    while (peaks.size() > wanted()) {
      const bool drop_first = std::fabs(errors.front()) < std::fabs(errors.back());
      peaks.erase(drop_first ? peaks.begin() : peaks.end() - 1);
      errors.erase(drop_first ? errors.begin() : errors.end() - 1);
    }
    if (peaks.size() < wanted()) return false;
    reference_ = peaks;
    level_ = 0;
    for (size_t i = 0; i < errors.size(); ++i)
      level_ += (i % 2 == 0 ? errors[i] : -errors[i]) / static_cast<Real>(errors.size());
    return true;
  }

  Minimax result(Real largest) const {
    Minimax out;
    out.error = static_cast<double>(largest);
    Real unit = 1;
    for (Eigen::Index j = 0; j < above_; ++j, unit *= s_.scale)
      out.numerator.push_back(static_cast<double>(coefficients_(j) / unit));
    out.denominator.push_back(1);
    unit = s_.scale;
    for (Eigen::Index j = 0; j < below_; ++j, unit *= s_.scale)
      out.denominator.push_back(static_cast<double>(coefficients_(above_ + j) / unit));
    return out;
  }

  const GridSamples& s_;
  const MinimaxShape& shape_;
  const Eigen::Index above_, below_;  // numbers of unknown coefficients
  std::vector<size_t> reference_;
  LongVector coefficients_;
  Real level_ = 0;
};

}  // namespace

std::optional<Minimax> minimax(const std::function<double(double)>& function, double low, double high,
                               const MinimaxShape& shape) {
  const GridSamples samples = sample(function, shape.odd ? 0 : low, high, shape);
  return Exchange(samples, shape).run();
}

}  // namespace hoist
