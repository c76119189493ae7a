// Formats in which a value between layers is stored, arithmetic apart: which numbers they hold for a given range, and
// what rounding to them costs. One scale a tensor, which calibration finds, or one a block of channels, which each run
// finds; formats of weights are in weights.h.
//
// Blocks of values (`bfp8`) keep 32 channels as 8 bits and a power of two that each run finds: ONNX's scales may be
// computed. The power of two comes from two multiplications and a subtraction (exact for all normal numbers; every
// engine has them), since operators that read a float's exponent are of opset 26. Blocks do not move with MaxPool or
// Concat, which read f32 again. That is a kernel for the scales and one for the numbers: ResNet-8 with all values in
// blocks has 924 right answers of 1,000 (925 in f32) and takes twice as long, so a budget looks at it only where no
// smaller format is as close on calibration data.
#pragma once

#include "neural_rules/formats/range.h"

namespace hoist {

struct ValueFormat {
  Scalar scalar = Scalar::u8;
  RangeChoice choice = RangeChoice::extremes;
  bool symmetric = false;  ///< integers without a zero point
  int64_t block = 0;       ///< of channels that share a power of two, found in each run; 0: one scale for the tensor
};

/// Which numbers a format holds: scale * (n - zero_point) for the numbers n of the scalar type, saturated. Scaled
/// formats go through QuantizeLinear, the others through Cast.
struct Grid {
  Scalar scalar = Scalar::u8;
  bool scaled = true;
  float scale = 1;
  int64_t zero_point = 0;
};

/// The grid of a format without blocks, for what calibration saw. A value that is zero everywhere gets scale 1.
Grid grid_of(const ValueFormat& format, const ValueStatistics& statistics);
/// What x becomes.
double rounded(const Grid& grid, double x);
/// The numbers that are not clipped, beyond half a step.
Range range_of(const Grid& grid);
/// The numbers of the grid that calibrated values become, ascending; of numbers that lie closer together than the
/// histogram's bins, some.
std::vector<double> levels_of(const Grid& grid, const ValueStatistics& statistics);
/// The mean squared difference between the numbers and what they become, from the histogram.
double predicted_noise(const Grid& grid, const ValueStatistics& statistics);
/// The same for a format on its own grid; of formats with blocks it is what calibration measured.
double predicted_noise(const ValueFormat& format, const ValueStatistics& statistics);

/// Of the numbers that share a power of two: Rouhani et al. 2023, arXiv 2310.10537.
inline constexpr int64_t block_channels = 32;
/// The least magnitude for which a block's step is made smaller.
inline constexpr double least_block_magnitude = 0x1p-100;
/// A 64th of the power of two at or below the block's largest magnitude.
double block_step(double largest);
/// What x becomes in a block with this step: a whole number of steps, from -128 to 127.
double rounded_in_block(double step, double x);

/// The largest finite number of a float format.
double largest_of(Scalar scalar);
/// Smallest and largest number of an integer type of at most 32 bits.
Range integers_of(Scalar scalar);

}  // namespace hoist
