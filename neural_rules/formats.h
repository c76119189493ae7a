// Formats in which a value between layers is stored, arithmetic apart: which numbers they hold for a given range, and
// what rounding to them costs. Per tensor, since ONNX wants static scales; formats of weights are in weights.h.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "neural_rules/range.h"

namespace hoist {

struct ValueFormat {
  std::string_view name;  ///< of the rule
  Scalar scalar = Scalar::u8;
  RangeChoice choice = RangeChoice::extremes;
  bool symmetric = false;  ///< integers without a zero point
};
std::span<const ValueFormat> value_formats();
const ValueFormat* find_value_format(std::string_view name);  ///< null when there is none

/// Which numbers a format holds: scale * (n - zero_point) for the numbers n of the scalar type, saturated. Scaled
/// formats go through QuantizeLinear, the others through Cast.
struct Grid {
  Scalar scalar = Scalar::u8;
  bool scaled = true;
  float scale = 1;
  int64_t zero_point = 0;
};

/// The grid for what calibration saw. A value that is zero everywhere gets scale 1.
Grid grid_of(const ValueFormat& format, const ValueStatistics& statistics);
/// What x becomes.
double rounded(const Grid& grid, double x);
/// The numbers that are not clipped, beyond half a step.
Range range_of(const Grid& grid);
/// The mean squared difference between the numbers and what they become, from the histogram.
double predicted_noise(const Grid& grid, const ValueStatistics& statistics);

/// The largest finite number of a float format.
double largest_of(Scalar scalar);
/// Smallest and largest number of an integer type of at most 32 bits.
Range integers_of(Scalar scalar);

}  // namespace hoist
