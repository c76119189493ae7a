#include "neural_rules/formats/formats.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace hoist {
namespace {

// Positions per histogram bin at which the error is sampled: a golden-ratio sequence aligns with no regular grid.
constexpr int places_a_bin = 8;
constexpr double golden_ratio = 0.6180339887498949;

// Symmetric formats exclude the most negative value, whose negative is not representable.
int64_t steps_of(const ValueFormat& format) {
  const Range numbers = integers_of(format.scalar);
  return static_cast<int64_t>(format.symmetric ? 2 * numbers.high : numbers.high - numbers.low);
}

float positive(double scale) {
  const auto rounded = static_cast<float>(scale);
  return std::isnormal(rounded) ? rounded : 1.0F;
}

}  // namespace

double largest_of(Scalar scalar) {
  switch (scalar) {
    case Scalar::f16:
      return 65504;
    case Scalar::f8e4m3fn:
      return 448;
    case Scalar::f8e5m2:
      return 57344;
    case Scalar::bf16:
      return 0x1.fep127;
    default:
      return INFINITY;
  }
}

Range integers_of(Scalar scalar) {
  const ScalarRow& type = row(scalar);
  if (!type.is_signed) return {0, std::ldexp(1.0, type.bits) - 1};
  return {-std::ldexp(1.0, type.bits - 1), std::ldexp(1.0, type.bits - 1) - 1};
}

Grid grid_of(const ValueFormat& format, const ValueStatistics& statistics) {
  Grid grid;
  grid.scalar = format.scalar;
  if (is_float(format.scalar)) {
    grid.scaled = row(format.scalar).bits == 8;
    const Range range = choose_range(statistics, RangeChoice::min_max, true, 1);
    if (grid.scaled) grid.scale = positive(range.high / largest_of(format.scalar));
    return grid;
  }
  const int64_t steps = steps_of(format);
  const Range range = choose_range(statistics, format.choice, format.symmetric, steps);
  const Range numbers = integers_of(format.scalar);
  grid.scale = positive((range.high - range.low) / static_cast<double>(steps));
  if (!format.symmetric)
    grid.zero_point = std::lrint(std::clamp(numbers.low - range.low / grid.scale, numbers.low, numbers.high));
  return grid;
}

double rounded(const Grid& grid, double x) {
  if (is_float(grid.scalar))
    return float_from_bits(grid.scalar, bits_from_float(grid.scalar, x / grid.scale)) * grid.scale;
  const Range numbers = integers_of(grid.scalar);
  const auto zero = static_cast<double>(grid.zero_point);
  return (std::clamp(std::nearbyint(x / grid.scale) + zero, numbers.low, numbers.high) - zero) * grid.scale;
}

Range range_of(const Grid& grid) {
  if (is_float(grid.scalar)) {
    const double largest = largest_of(grid.scalar) * grid.scale;
    return {-largest, largest};
  }
  const Range numbers = integers_of(grid.scalar);
  const auto zero = static_cast<double>(grid.zero_point);
  return {(numbers.low - zero - 0.5) * grid.scale, (numbers.high - zero + 0.5) * grid.scale};
}

std::vector<double> levels_of(const Grid& grid, const ValueStatistics& statistics) {
  std::vector<double> out;
  const auto bins = static_cast<double>(statistics.histogram.size());
  for (size_t edge = 0; bins > 0 && edge <= statistics.histogram.size(); ++edge) {
    const double x = statistics.low + static_cast<double>(edge) / bins * (statistics.high - statistics.low);
    const double level = rounded(grid, x);
    if (out.empty() || level > out.back()) out.push_back(level);
  }
  return out;
}

double predicted_noise(const Grid& grid, const ValueStatistics& statistics) {
  if (statistics.count == 0 || statistics.histogram.empty()) return 0;
  const auto bins = static_cast<double>(statistics.histogram.size());
  const double width = (statistics.high - statistics.low) / bins;
  double sum = 0, place = 0;
  for (size_t i = 0; i < statistics.histogram.size(); ++i) {
    const double low = statistics.low + static_cast<double>(i) * width;
    auto numbers = static_cast<double>(statistics.histogram[i]);
    // Every format represents zero exactly.
    const bool last = i + 1 == statistics.histogram.size();
    if (low <= 0 && (low + width > 0 || (last && low + width >= 0))) numbers -= static_cast<double>(statistics.zeros);
    if (numbers <= 0) continue;
    double error = 0;
    for (int k = 0; k < places_a_bin; ++k) {
      place = std::fmod(place + golden_ratio, 1.0);
      const double x = low + place * width;
      error += (rounded(grid, x) - x) * (rounded(grid, x) - x);
    }
    sum += numbers * error / places_a_bin;
  }
  return sum / static_cast<double>(statistics.count);
}

double predicted_noise(const ValueFormat& format, const ValueStatistics& statistics) {
  return format.block != 0 ? statistics.block_noise : predicted_noise(grid_of(format, statistics), statistics);
}

double block_step(double largest) {
  constexpr uint64_t exponent_bits = 0x7FF0000000000000;
  return std::bit_cast<double>(std::bit_cast<uint64_t>(std::max(largest, least_block_magnitude)) & exponent_bits) / 64;
}

double rounded_in_block(double step, double x) {
  static const Range numbers = integers_of(Scalar::i8);
  return std::clamp(to_even(x / step), numbers.low, numbers.high) * step;
}

}  // namespace hoist
