#include "neural_rules/choice/solver/interval.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/base/result.h"
#include "ir/base/special_values.h"

namespace hoist {
namespace {

constexpr double z95 = 1.959963984540054;  // 97.5 % quantile of the standard normal distribution

// The logarithm of the binomial probability of k successes out of n; 0 < share < 1.
double log_binomial(int64_t n, int64_t k, double share) {
  const auto count = static_cast<double>(n), successes = static_cast<double>(k);
  return std::lgamma(count + 1) - std::lgamma(successes + 1) - std::lgamma(count - successes + 1) +
         successes * std::log(share) + (count - successes) * std::log1p(-share);
}

double quantile_of_sorted(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return nan_value;
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  if (sorted[below] == sorted[above]) return sorted[below];  // also for infinities
  return sorted[below] + (sorted[above] - sorted[below]) * (place - static_cast<double>(below));
}

// The number of samples below the true quantile is binomially distributed: the l-th smallest sample is above the
// quantile with probability P(B < l), the u-th smallest below it with probability P(B >= u); each probability may be
// 2.5 %.
Interval interval_of_sorted(const std::vector<double>& sorted, double share) {
  const auto n = static_cast<int64_t>(sorted.size());
  Interval out{quantile_of_sorted(sorted, share), 0, std::numeric_limits<double>::infinity()};
  if (share <= 0 || share >= 1) return out;
  double below = 0;
  for (int64_t l = 1; l <= n; ++l) {
    below += std::exp(log_binomial(n, l - 1, share));
    if (below > 0.025) break;
    out.low = sorted[static_cast<size_t>(l - 1)];
  }
  double above = 0;
  for (int64_t u = n; u >= 1; --u) {
    above += std::exp(log_binomial(n, u, share));
    if (above > 0.025) break;
    out.high = sorted[static_cast<size_t>(u - 1)];
  }
  return out;
}

}  // namespace

Interval wilson(int64_t successes, int64_t total) {
  HOIST_CHECK(successes >= 0 && successes <= total, "more successes than samples");
  if (total == 0) return {nan_value, 0, 1};
  const auto n = static_cast<double>(total);
  const double share = static_cast<double>(successes) / n;
  const double middle = share + z95 * z95 / (2 * n);
  const double half = z95 * std::sqrt(share * (1 - share) / n + z95 * z95 / (4 * n * n));
  const double scale = 1 + z95 * z95 / n;
  // At 0 and 1 the limit is the share itself; rounding must not move it past the share.
  return {share, successes == 0 ? 0 : (middle - half) / scale, successes == total ? 1 : (middle + half) / scale};
}

double mcnemar_p_value(int64_t lost, int64_t gained) {
  HOIST_CHECK(lost >= 0 && gained >= 0, "negative counts");
  const int64_t n = lost + gained;
  double tail = 0;
  for (int64_t k = 0; k <= std::min(lost, gained); ++k) tail += std::exp(log_binomial(n, k, 0.5));
  return std::min(1.0, 2 * tail);
}

Interval paired_drop(const PairedCounts& counts) {
  const int64_t total = counts.samples();
  if (total == 0) return {nan_value, -1, 1};
  const auto n = static_cast<double>(total);
  const auto both = static_cast<double>(counts.both_right), lost = static_cast<double>(counts.lost);
  const auto gained = static_cast<double>(counts.gained), neither = static_cast<double>(counts.both_wrong);
  const Interval reference = wilson(counts.both_right + counts.lost, total);
  const Interval changed = wilson(counts.both_right + counts.gained, total);
  const double margins = (both + lost) * (gained + neither) * (both + gained) * (lost + neither);
  const double determinant = both * neither - lost * gained;
  const double corrected = determinant > 0 ? std::max(determinant - n / 2, 0.0) : determinant;
  const double phi = margins > 0 ? corrected / std::sqrt(margins) : 0;
  const auto reach = [phi](double a, double b) { return std::sqrt(std::max(0.0, a * a - 2 * phi * a * b + b * b)); };
  const double drop = (lost - gained) / n;
  return {drop, drop - reach(reference.value - reference.low, changed.high - changed.value),
          drop + reach(reference.high - reference.value, changed.value - changed.low)};
}

double quantile(std::vector<double> samples, double share) {
  HOIST_CHECK(share >= 0 && share <= 1, "a quantile's share is from 0 to 1");
  std::sort(samples.begin(), samples.end());
  return quantile_of_sorted(samples, share);
}

TimeSummary summarise_times(const std::vector<double>& samples) {
  std::vector<double> sorted = samples;
  std::sort(sorted.begin(), sorted.end());
  TimeSummary out;
  out.count = static_cast<int64_t>(sorted.size());
  out.minimum = sorted.empty() ? nan_value : sorted.front();
  out.lower_quartile = interval_of_sorted(sorted, 0.25);
  out.median = interval_of_sorted(sorted, 0.5);
  out.upper_quartile = quantile_of_sorted(sorted, 0.75);
  return out;
}

std::string time_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} s", seconds);
}

}  // namespace hoist
