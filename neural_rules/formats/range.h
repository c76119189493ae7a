// Which part of the numbers a format of few bits should cover: all that were seen, all but the outermost, or the part
// that makes the mean squared error smallest. Works on statistics, so that the choice depends on neither order nor
// batches.
#pragma once

#include "neural_rules/calibration/calibration.h"

namespace hoist {

enum class RangeChoice : uint8_t { extremes, percentile, squared_error };

/// What numbers are clipped to; zero always lies inside.
struct Range {
  double low = 0, high = 0;
};

/// Share of the numbers that `percentile` keeps below the range's end, and above its beginning.
inline constexpr double kept_share = 0.9999;

/// `steps`: the number of intervals between the format's smallest and largest number (255 for u8, 254 for symmetric
/// i8). A symmetric range has low = -high. A value that is zero everywhere gets [0, 0].
Range choose_range(const ValueStatistics& statistics, RangeChoice choice, bool symmetric, int64_t steps);

/// The part of the elements outside the range, from the histogram: exact to the width of a bin.
double clipped_share(const ValueStatistics& statistics, const Range& range);

/// The mean squared error of clipping to the range and of rounding evenly spread numbers to `steps` intervals of it.
double squared_error(const ValueStatistics& statistics, const Range& range, int64_t steps);

}  // namespace hoist
