#include "neural_rules/formats/rounding.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "neural_rules/calibration/patches.h"
#include "neural_rules/formats/formats.h"

namespace hoist {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;

// The share of the mean diagonal that is added to the diagonal: otherwise moments of few samples are singular.
constexpr double damping = 0.01;
constexpr int most_sweeps = 20;

// Second moments with correlations shrunk towards zero, more so for fewer vectors: correlations of many terms that are
// estimated from few samples do not generalise.
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

// The weights of one output channel with their candidate values.
class Channel {
 public:
  Channel(const Product& product, const Tensor& weights, PackedWeights& packed, int64_t channel)
      : packed_(packed), exact(product.terms()), numbers(product.terms()) {
    range_ = numbers_of(packed.format);
    for (int64_t k = 0; k < product.terms(); ++k) {
      const int64_t at = position_of(product, channel, k);
      const int64_t scale = packed.layout.index(at);
      const double zero =
          packed.zero_points.empty() ? 0 : static_cast<double>(packed.zero_points[static_cast<size_t>(scale)]);
      terms_.push_back({at, scale, packed.scales[static_cast<size_t>(scale)], zero});
      exact[k] = weights.float_at(at);
      numbers[k] = packed.numbers.float_at(at);
    }
  }

  double value(int64_t k, double number) const { return packed_.value_at(term(k).scale, number); }
  double nearest(int64_t k, double w) const {
    return std::clamp(std::nearbyint(w / term(k).step + term(k).zero_point), range_.low, range_.high);
  }
  Vector differences(const Vector& from) const {
    Vector d(from.size());
    for (int64_t k = 0; k < from.size(); ++k) d[k] = value(k, from[k]) - exact[k];
    return d;
  }
  void keep(const Vector& chosen) {
    for (int64_t k = 0; k < chosen.size(); ++k) {
      packed_.numbers.set_float(term(k).position, chosen[k]);
      packed_.values.set_float(term(k).position, value(k, chosen[k]));
    }
  }

 private:
  struct Term {
    int64_t position, scale;  ///< index of the weight; index of its scale
    double step, zero_point;
  };
  const Term& term(int64_t k) const { return terms_[static_cast<size_t>(k)]; }

  PackedWeights& packed_;
  Range range_;
  std::vector<Term> terms_;

 public:
  Vector exact, numbers;
};

// Rounds column by column; later columns compensate the error of each column. `upper` is the upper Cholesky factor of
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

// Coordinate descent: moves one number at a time to the minimum of the quadratic form until none moves.
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

std::optional<std::string> why_not_adaptive(const Program& program, const Definition& layer) {
  return why_no_patches(program, layer, adaptive_terms);
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
    Matrix differences(channels, product.terms());
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t k = 0; k < differences.cols(); ++k) {
        const int64_t at = position_of(product, group * channels + c, k);
        differences(c, k) = packed.values.float_at(at) - weights.float_at(at);
      }
    }
    sum += (differences * second).cwiseProduct(differences).sum();
  }
  return sum / static_cast<double>(product.channels());
}

}  // namespace hoist
