// Storage formats of values between layers, without arithmetic: the representable numbers for a given range, and the
// error of rounding to them. There is one scale per tensor, which calibration determines, or one per block of channels,
// which each run determines; weights.h has the formats of weights.
//
// Blocks of values (`bfp8`) store 32 channels as 8 bits each with a common power of two that each run computes: ONNX
// allows computed scales. The power of two is computed by two multiplications and a subtraction (exact for all normal
// numbers and available in every engine), since operators that read a float's exponent need opset 26. Blocks do not
// move through MaxPool or Concat, which read f32 again. The format costs one kernel for the scales and one for the
// elements: ResNet-8 with all values in blocks has 924 right answers of 1,000 (925 in f32) and takes twice as long, so
// a budget considers it only if no smaller format is as accurate on calibration data.
#pragma once

#include "neural_rules/formats/range.h"

namespace hoist {

struct ValueFormat {
  Scalar scalar = Scalar::u8;
  RangeChoice choice = RangeChoice::min_max;
  bool symmetric = false;  ///< integers without a zero point
  int64_t block = 0;       ///< channels that share a power of two, which each run computes; 0: one scale for the tensor
};

/// The representable numbers of a format: scale * (n - zero_point) for the numbers n of the scalar type, saturated.
/// Scaled formats are converted by QuantizeLinear, the others by Cast.
struct Grid {
  Scalar scalar = Scalar::u8;
  bool scaled = true;
  float scale = 1;
  int64_t zero_point = 0;
};

/// The grid of a format without blocks for calibrated statistics. A value that is zero everywhere gets scale 1.
Grid grid_of(const ValueFormat& format, const ValueStatistics& statistics);
double rounded(const Grid& grid, double x);
/// The range of numbers that are not clipped, including the half steps that round to its ends.
Range range_of(const Grid& grid);
/// The numbers of the grid to which calibrated values round, ascending; a subset if the grid is finer than the
/// histogram.
std::vector<double> levels_of(const Grid& grid, const ValueStatistics& statistics);
/// The mean squared error of rounding to the grid, from the histogram.
double predicted_noise(const Grid& grid, const ValueStatistics& statistics);
/// The same for a format on its own grid; for formats with blocks the error measured by calibration.
double predicted_noise(const ValueFormat& format, const ValueStatistics& statistics);

/// Channels that share a power of two: Rouhani et al. 2023, arXiv 2310.10537.
inline constexpr int64_t block_channels = 32;
/// Blocks whose largest magnitude is smaller get the step of this magnitude.
inline constexpr double least_block_magnitude = 0x1p-100;
/// 1/64 of the largest power of two that does not exceed the block's largest magnitude.
double block_step(double largest);
/// x rounded in a block with this step: an integer multiple of the step, from -128 to 127.
double rounded_in_block(double step, double x);

/// Rounds half to even without a call, unlike nearbyint: beyond 2^52 a double has no fractional digits.
inline double to_even(double x) {
  constexpr double digits = 0x1.8p52;  // for either sign
  return (x + digits) - digits;
}

/// The largest finite number of a float format.
double largest_of(Scalar scalar);
/// The range of an integer type of at most 32 bits.
Range integers_of(Scalar scalar);

}  // namespace hoist
