#include "neural_rules/formats/range.h"

#include <algorithm>
#include <cmath>

namespace hoist {
namespace {

// The number of candidates of `squared_error` for each end of the range.
constexpr int candidates = 128;

// Count, sum and sum of squares of the numbers below each bin boundary; numbers count as the centre of their bin.
class Histogram {
 public:
  explicit Histogram(const ValueStatistics& s)
      : low_(s.low), width_((s.high - s.low) / static_cast<double>(std::max<size_t>(s.histogram.size(), 1))) {
    below_.push_back({});
    for (size_t i = 0; i < s.histogram.size(); ++i) {
      const auto n = static_cast<double>(s.histogram[i]);
      const double x = low_ + (static_cast<double>(i) + 0.5) * width_;
      const Sums& last = below_.back();
      below_.push_back({last.count + n, last.sum + n * x, last.squares + n * x * x});
    }
  }

  struct Sums {
    double count = 0, sum = 0, squares = 0;
  };
  const Sums& all() const { return below_.back(); }

  /// The sums over the numbers below x; the bin that contains x counts in proportion.
  Sums below(double x) const {
    if (width_ <= 0) return x > low_ ? all() : Sums{};
    const double at = std::clamp((x - low_) / width_, 0.0, static_cast<double>(below_.size() - 1));
    const auto bin = std::min(static_cast<size_t>(at), below_.size() - 2);
    const double part = at - static_cast<double>(bin);
    const Sums &a = below_[bin], &b = below_[bin + 1];
    return {a.count + part * (b.count - a.count), a.sum + part * (b.sum - a.sum),
            a.squares + part * (b.squares - a.squares)};
  }

  /// The lowest upper end of a bin with at least `count` numbers below it.
  double quantile(double count) const {
    auto found = std::find_if(below_.begin(), below_.end(), [&](const Sums& s) { return s.count >= count; });
    return low_ + static_cast<double>(std::min(found, below_.end() - 1) - below_.begin()) * width_;
  }

  /// The sum of squared errors of clipping to the range and of rounding inside it with this step. Zeros are exact.
  double error(const Range& range, double step, double zeros) const {
    const Sums low = below(range.low), high_below = below(range.high);
    const Sums high{all().count - high_below.count, all().sum - high_below.sum, all().squares - high_below.squares};
    const double inside = all().count - low.count - high.count - zeros;
    const double clipped = low.squares - 2 * range.low * low.sum + range.low * range.low * low.count + high.squares -
                           2 * range.high * high.sum + range.high * range.high * high.count;
    return std::max(clipped, 0.0) + std::max(inside, 0.0) * step * step / 12;
  }

 private:
  double low_, width_;
  std::vector<Sums> below_;
};

Range with_zero(double low, double high, bool symmetric) {
  if (symmetric) {
    const double largest = std::max(std::abs(low), std::abs(high));
    return {-largest, largest};
  }
  return {std::min(low, 0.0), std::max(high, 0.0)};
}

// The smallest symmetric range with at most `outside` numbers outside.
Range symmetric_percentile(const Histogram& histogram, const Range& all, double outside) {
  Range range = all;
  for (int i = histogram_bins; i > 0; --i) {
    const double end = all.high * i / histogram_bins;
    const double left = histogram.below(-end).count + histogram.all().count - histogram.below(end).count;
    if (left > outside) break;
    range = {-end, end};
  }
  return range;
}

Range percentile(const Histogram& histogram, const Range& all, bool symmetric) {
  const double outside = (1 - kept_share) * histogram.all().count;
  if (symmetric) return symmetric_percentile(histogram, all, outside);
  Range range = with_zero(histogram.quantile(outside), histogram.quantile(histogram.all().count - outside), false);
  return {std::max(range.low, all.low), std::min(range.high, all.high)};
}

Range least_squared_error(const Histogram& histogram, const Range& all, bool symmetric, double zeros, int64_t steps) {
  Range best = all;
  auto try_range = [&](const Range& range, double& least) {
    const double error = histogram.error(range, (range.high - range.low) / static_cast<double>(steps), zeros);
    if (error < least) {
      least = error;
      best = range;
    }
  };
  double least = INFINITY;
  for (int i = candidates; i > 0; --i) {
    const double high = all.high * i / candidates;
    if (symmetric) {
      try_range({-high, high}, least);
      continue;
    }
    for (int j = candidates; j > 0; --j) {
      try_range({all.low * j / candidates, high}, least);
      if (all.low == 0) break;
    }
    if (all.high == 0) break;
  }
  return best;
}

}  // namespace

Range choose_range(const ValueStatistics& statistics, RangeChoice choice, bool symmetric, int64_t steps) {
  const Range all = with_zero(statistics.low, statistics.high, symmetric);
  if (choice == RangeChoice::min_max || all.low == all.high) return all;
  const Histogram histogram(statistics);
  if (choice == RangeChoice::percentile) return percentile(histogram, all, symmetric);
  return least_squared_error(histogram, all, symmetric, static_cast<double>(statistics.zeros), steps);
}

double clipped_share(const ValueStatistics& statistics, const Range& range) {
  if (statistics.low >= range.low && statistics.high <= range.high) return 0;
  const Histogram histogram(statistics);
  const double outside = histogram.below(range.low).count + histogram.all().count - histogram.below(range.high).count;
  return outside / std::max(histogram.all().count, 1.0);
}

double squared_error(const ValueStatistics& statistics, const Range& range, int64_t steps) {
  const Histogram histogram(statistics);
  const double step = (range.high - range.low) / static_cast<double>(steps);
  return histogram.error(range, step, static_cast<double>(statistics.zeros)) / std::max(histogram.all().count, 1.0);
}

}  // namespace hoist
