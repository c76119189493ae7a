#include "neural_rules/rounding.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "neural_rules/formats.h"
#include "neural_rules/patches.h"

namespace hoist {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;

// Share of the mean diagonal that is added to it: sums of few samples have no inverse otherwise.
constexpr double damping = 0.01;
constexpr int most_sweeps = 20;

// Second moments with correlations drawn towards none, the more so the fewer vectors they were collected from: what few
// samples say of many terms does not hold for others.
Matrix matrix_of(const SecondMoments& moments, int64_t group) {
  const int64_t n = moments.terms;
  const Matrix seen = Eigen::Map<const Matrix>(moments.products.data() + group * n * n, n, n);
  const Vector means = Eigen::Map<const Vector>(moments.means.data() + group * n, n);
  const Matrix of_means = means * means.transpose();
  Matrix covariance = seen - of_means;
  const Vector diagonal = covariance.diagonal();
  covariance *= static_cast<double>(moments.count) / static_cast<double>(moments.count + n);
  covariance.diagonal() = diagonal;
  return covariance + of_means;
}

// The weights of one output channel, and the numbers that they may become.
class Channel {
 public:
  Channel(const Product& product, const Tensor& weights, PackedWeights& packed, int64_t channel)
      : product_(product), packed_(packed), channel_(channel), exact(product.terms()), numbers(product.terms()) {
    const Range range = integers_of(packed.format.scalar);
    low_ = packed.format.symmetric ? -range.high : range.low;
    high_ = range.high;
    for (int64_t k = 0; k < product.terms(); ++k) {
      exact[k] = weights.float_at(position(k));
      numbers[k] = packed.numbers.float_at(position(k));
    }
  }

  int64_t position(int64_t k) const { return position_of(product_, channel_, k); }
  double step(int64_t k) const { return packed_.scales[static_cast<size_t>(packed_.layout.index(position(k)))]; }
  double value(int64_t k, double number) const { return packed_.value_of(position(k), number); }
  double nearest(int64_t k, double w) const {
    const double zero =
        packed_.zero_points.empty()
            ? 0
            : static_cast<double>(packed_.zero_points[static_cast<size_t>(packed_.layout.index(position(k)))]);
    return std::clamp(std::nearbyint(w / step(k) + zero), low_, high_);
  }
  Vector differences(const Vector& from) const {
    Vector d(from.size());
    for (int64_t k = 0; k < from.size(); ++k) d[k] = value(k, from[k]) - exact[k];
    return d;
  }
  void keep(const Vector& chosen) {
    for (int64_t k = 0; k < chosen.size(); ++k) {
      packed_.numbers.set_float(position(k), chosen[k]);
      packed_.values.set_float(position(k), value(k, chosen[k]));
    }
  }

 private:
  const Product& product_;
  PackedWeights& packed_;
  int64_t channel_;
  double low_ = 0, high_ = 0;

 public:
  Vector exact, numbers;
};

// Column by column, each one's error is made up for by the columns after it. `upper` is the upper Cholesky factor of
// the inverse of the second moment.
Vector with_feedback(const Channel& channel, const Matrix& upper) {
  Vector wanted = channel.exact, numbers(wanted.size());
  for (int64_t k = 0; k < wanted.size(); ++k) {
    numbers[k] = channel.nearest(k, wanted[k]);
    const double error = (wanted[k] - channel.value(k, numbers[k])) / upper(k, k);
    for (int64_t j = k + 1; j < wanted.size(); ++j) wanted[j] -= error * upper(k, j);
  }
  return numbers;
}

// One number at a time goes to where the quadratic form is least, until none moves.
void descend(const Channel& channel, const Matrix& second, Vector& numbers) {
  Vector difference = channel.differences(numbers);
  Vector gradient = second * difference;
  for (int sweep = 0; sweep < most_sweeps; ++sweep) {
    bool moved = false;
    for (int64_t k = 0; k < numbers.size(); ++k) {
      if (second(k, k) <= 0) continue;
      const double best = channel.value(k, numbers[k]) - gradient[k] / second(k, k);
      const double number = channel.nearest(k, best);
      const double change = channel.value(k, number) - channel.value(k, numbers[k]);
      const double gain = change * (2 * gradient[k] + change * second(k, k));
      if (number == numbers[k] || gain >= 0) continue;
      numbers[k] = number;
      gradient += change * second.row(k).transpose();
      moved = true;
    }
    if (!moved) return;
  }
}

double form(const Matrix& second, const Vector& difference) { return difference.dot(second * difference); }

Matrix inverse_factor(const Matrix& second) {
  Matrix damped = second;
  const double mean = second.diagonal().mean();
  damped.diagonal().array() += mean > 0 ? damping * mean : 1;
  const auto n = second.rows();
  const Matrix inverse = damped.llt().solve(Matrix::Identity(n, n));
  return inverse.llt().matrixU();
}

}  // namespace

std::optional<std::string> why_not_adaptive(const Graph& graph, const Layer& layer) {
  return why_no_patches(graph, layer, adaptive_terms);
}

void round_adaptively(const Product& product, const Tensor& weights, const SecondMoments& moments,
                      PackedWeights& packed) {
  HOIST_CHECK(moments.terms == product.terms() && !packed.scales.empty() && is_integer(packed.format.scalar),
              "second moments of " + std::to_string(moments.terms) + " terms");
  const int64_t channels = product.channels() / product.groups;
  for (int64_t group = 0; group < product.groups; ++group) {
    const Matrix second = matrix_of(moments, group);
    const Matrix upper = inverse_factor(second);
    for (int64_t c = group * channels; c < (group + 1) * channels; ++c) {
      Channel channel(product, weights, packed, c);
      Vector fed = with_feedback(channel, upper), near = channel.numbers;
      descend(channel, second, fed);
      descend(channel, second, near);
      const bool better = form(second, channel.differences(fed)) < form(second, channel.differences(near));
      channel.keep(better ? fed : near);
    }
  }
}

double layer_error(const Product& product, const Tensor& weights, const PackedWeights& packed,
                   const SecondMoments& moments) {
  const int64_t channels = product.channels() / product.groups;
  double sum = 0;
  for (int64_t group = 0; group < product.groups; ++group) {
    const Matrix second = matrix_of(moments, group);
    for (int64_t c = group * channels; c < (group + 1) * channels; ++c) {
      Vector difference(product.terms());
      for (int64_t k = 0; k < difference.size(); ++k) {
        const int64_t at = position_of(product, c, k);
        difference[k] = packed.values.float_at(at) - weights.float_at(at);
      }
      sum += form(second, difference);
    }
  }
  return sum / static_cast<double>(product.channels());
}

}  // namespace hoist
