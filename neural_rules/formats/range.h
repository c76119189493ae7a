// The range of numbers that a format of few bits should cover: all observed numbers, all but the outermost, or the
// range with the smallest mean squared error. Uses statistics only, so the choice depends neither on the order of
// samples nor on batches.
#pragma once

#include "neural_rules/calibration/calibration.h"

namespace hoist {

enum class RangeChoice : uint8_t { min_max, percentile, squared_error };

/// The interval to which numbers are clipped; it contains zero.
struct Range {
  double low = 0, high = 0;
};

/// The share of numbers below the upper end, and of numbers above the lower end, for `percentile`.
inline constexpr double kept_share = 0.9999;

/// `steps`: the number of intervals between the format's smallest and largest number (255 for u8, 254 for symmetric
/// i8). A symmetric range has low = -high. A value that is zero everywhere gets [0, 0].
Range choose_range(const ValueStatistics& statistics, RangeChoice choice, bool symmetric, int64_t steps);

/// The share of elements outside the range, from the histogram: exact up to the width of a bin.
double clipped_share(const ValueStatistics& statistics, const Range& range);

/// The mean squared error of clipping to the range and of rounding uniformly distributed numbers to `steps` intervals.
double squared_error(const ValueStatistics& statistics, const Range& range, int64_t steps);

}  // namespace hoist
