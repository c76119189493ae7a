// How sure a measured number is: intervals of shares, of differences between two models on the same samples, and of
// times; and how well predictions met what was measured. Formulas with their sources, no data formats, no randomness
// (no bootstrap), so that a report says the same every time. Not for deciding whether a budget holds: budget.h does.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hoist {

/// A measured value with its limits at 95 % confidence. Numbers that were not measured are NaN.
struct Interval {
  double value, low, high;
};

/// Wilson's score interval of a share (Wilson 1927), right for shares near 0 and 1 too. Of no samples: NaN in [0, 1].
/// Precondition: 0 <= successes <= total.
Interval wilson(int64_t successes, int64_t total);

/// What became of each labelled sample under two models, a reference and a changed one.
struct PairedCounts {
  int64_t both_right = 0;
  int64_t lost = 0;    ///< right by the reference, wrong by the changed model
  int64_t gained = 0;  ///< the other way
  int64_t both_wrong = 0;

  int64_t samples() const { return both_right + lost + gained + both_wrong; }
  bool operator==(const PairedCounts&) const = default;
};

/// McNemar's test, exact and two-sided: how probable a split of the discordant samples at least this uneven is when
/// losses and gains are equally likely. 1 where there are none. In (0, 1].
double mcnemar_p_value(int64_t lost, int64_t gained);

/// The share of right answers that the change costs, (lost - gained) / samples, in [-1, 1]: the square-and-add interval
/// for paired shares of Newcombe (Statistics in Medicine 17, 2635-2650, 1998, method 10). Of no samples: NaN in
/// [-1, 1].
Interval paired_drop(const PairedCounts& counts);

/// The sample quantile at `share` in [0, 1], linear between neighbours; NaN of no samples. Sorts its copy.
double quantile(std::vector<double> samples, double share);

/// Run times in any unit. Comparisons use the lower quartile: other work on a machine only adds time. The intervals are
/// distribution-free, between two order statistics (from the binomial distribution, for independent samples). With few
/// samples there is no such statistic on one side: the limit is 0 or infinity there (for a lower quartile below 13 and
/// below 3 samples), as suits times, which are positive.
struct TimeSummary {
  int64_t count = 0;
  double minimum = 0;
  Interval lower_quartile{}, median{};
  double upper_quartile = 0;
};
TimeSummary summarise_times(const std::vector<double>& samples);

/// "0.432 us", "64.1 us", "12.3 ms", "2.5 s": three digits.
std::string time_text(double seconds);

}  // namespace hoist
