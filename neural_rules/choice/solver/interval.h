// Confidence intervals of measurements: of shares, of differences between two models on the same samples, and of times.
// Formulas with their sources, without randomness (no bootstrap), so that reports are reproducible. budget.h decides if
// a budget holds.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hoist {

/// A measured value with its limits at 95 % confidence. Missing measurements are NaN.
struct Interval {
  double value, low, high;
};

/// Wilson's score interval of a share (Wilson 1927), also accurate for shares near 0 and 1. Without samples: NaN in [0,
/// 1]. Precondition: 0 <= successes <= total.
Interval wilson(int64_t successes, int64_t total);

/// The outcomes of labelled samples under two models, a reference and a changed one.
struct PairedCounts {
  int64_t both_right = 0;
  int64_t lost = 0;    ///< right in the reference, wrong in the changed model
  int64_t gained = 0;  ///< wrong in the reference, right in the changed model
  int64_t both_wrong = 0;

  int64_t samples() const { return both_right + lost + gained + both_wrong; }
  bool operator==(const PairedCounts&) const = default;
};

/// McNemar's test, exact and two-sided: the probability of a split of the discordant samples that is at least this
/// uneven if losses and gains are equally likely. 1 without discordant samples. In (0, 1].
double mcnemar_p_value(int64_t lost, int64_t gained);

/// The share of right answers that the change loses, (lost - gained) / samples, in [-1, 1]: the square-and-add interval
/// for paired shares of Newcombe (Statistics in Medicine 17, 2635-2650, 1998, method 10). Without samples: NaN in [-1,
/// 1].
Interval paired_drop(const PairedCounts& counts);

/// The sample quantile at `share` in [0, 1], interpolated linearly; NaN without samples. Sorts its copy.
double quantile(std::vector<double> samples, double share);

/// A summary of run times in any unit. Comparisons use the lower quartile, since other work on a machine only adds
/// time. The intervals are distribution-free, between two order statistics (from the binomial distribution, for
/// independent samples). With few samples one of the order statistics does not exist: the limit is then 0 or infinity
/// (for a lower quartile below 13 and below 3 samples), which holds for times, since they are positive.
struct TimeSummary {
  int64_t count = 0;
  double minimum = 0;
  Interval lower_quartile{}, median{};
  double upper_quartile = 0;
};
TimeSummary summarise_times(const std::vector<double>& samples);

/// "0.432 us", "64.1 us", "12.3 ms", "2.5 s": three significant digits.
std::string time_text(double seconds);

}  // namespace hoist
