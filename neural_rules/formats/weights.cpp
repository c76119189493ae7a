#include "neural_rules/formats/weights.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "neural_rules/formats/formats.h"

namespace hoist {
namespace {

// Shares of the full range that the search for the smallest squared error tries.
constexpr std::array<double, 9> shares = {1, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6};

bool is_scaled(Scalar scalar) { return !is_float(scalar) || row(scalar).bits == 8; }

struct Step {
  float scale = 1;
  int64_t zero_point = 0;
};

Step step_for(const WeightFormat& format, const Range& range) {
  Step step;
  double scale = 0;
  if (format.symmetric) {
    const double largest = is_float(format.scalar) ? largest_of(format.scalar) : integers_of(format.scalar).high;
    scale = std::max(-range.low, range.high) / largest;
  } else {
    scale = (range.high - range.low) / integers_of(format.scalar).high;
  }
  if (format.power_of_two && scale > 0) scale = std::exp2(std::ceil(std::log2(scale)));
  step.scale = static_cast<float>(scale);
  if (!std::isnormal(step.scale)) step.scale = 1;
  if (!format.symmetric)
    step.zero_point = std::lrint(std::clamp(-range.low / step.scale, 0.0, integers_of(format.scalar).high));
  return step;
}

// Rounds half to even without a call, unlike nearbyint: beyond 2^52 a double has no fractional digits.
double to_even(double x) {
  constexpr double digits = 0x1.8p52;  // for either sign
  return (x + digits) - digits;
}

// The representable numbers of a format, as doubles.
class Numbers {
 public:
  explicit Numbers(const WeightFormat& format) : scalar_(format.scalar), is_float_(is_float(format.scalar)) {
    if (is_float_) return;
    const Range range = numbers_of(format);
    low_ = range.low;
    high_ = range.high;
  }

  double nearest(const Step& step, double w) const {
    const double x = w / step.scale;
    if (is_float_) return float_from_bits(scalar_, bits_from_float(scalar_, x));
    const auto zero = static_cast<double>(step.zero_point);
    return to_even(std::clamp(x, low_ - zero, high_ - zero)) + zero;
  }

 private:
  Scalar scalar_;
  bool is_float_;
  double low_ = 0, high_ = 0;
};

std::vector<Range> ranges_of(std::span<const float> weights, const ScaleLayout& layout) {
  std::vector<Range> ranges(static_cast<size_t>(layout.count));
  layout.for_each(static_cast<int64_t>(weights.size()), [&](int64_t i, int64_t at) {
    Range& range = ranges[static_cast<size_t>(at)];
    const double w = weights[static_cast<size_t>(i)];
    range.low = std::min(range.low, w);
    range.high = std::max(range.high, w);
  });
  return ranges;
}

std::vector<Step> steps_for(const WeightFormat& format, const std::vector<Range>& ranges, double share) {
  std::vector<Step> steps;
  steps.reserve(ranges.size());
  for (const Range& range : ranges) steps.push_back(step_for(format, {range.low * share, range.high * share}));
  return steps;
}

std::vector<Step> choose_steps(const WeightFormat& format, std::span<const float> weights, const ScaleLayout& layout) {
  const std::vector<Range> ranges = ranges_of(weights, layout);
  std::vector<Step> best = steps_for(format, ranges, 1);
  if (!format.search_clipping) return best;
  const Numbers numbers(format);
  std::vector<double> least(best.size(), INFINITY);
  for (double share : shares) {
    const std::vector<Step> steps = steps_for(format, ranges, share);
    std::vector<double> error(steps.size());
    layout.for_each(static_cast<int64_t>(weights.size()), [&](int64_t i, int64_t index) {
      const auto at = static_cast<size_t>(index);
      const double w = weights[static_cast<size_t>(i)];
      const double n = numbers.nearest(steps[at], w) - static_cast<double>(steps[at].zero_point);
      const double difference = n * steps[at].scale - w;
      error[at] += difference * difference;
    });
    for (size_t at = 0; at < steps.size(); ++at) {
      if (error[at] >= least[at]) continue;
      least[at] = error[at];
      best[at] = steps[at];
    }
  }
  return best;
}

}  // namespace

Range numbers_of(const WeightFormat& format) {
  Range range = integers_of(format.scalar);
  if (format.symmetric) range.low = -range.high;
  return range;
}

int64_t ScaleLayout::index(int64_t weight) const {
  if (block == 0) return weight / inner % extent;
  const int64_t blocks = (extent + block - 1) / block;
  return (weight / (inner * extent) * blocks + weight / inner % extent / block) * inner + weight % inner;
}

std::vector<int64_t> ScaleLayout::scale_shape() const {
  if (block == 0) return {count};
  std::vector<int64_t> out = shape;
  out[static_cast<size_t>(axis)] = (extent + block - 1) / block;
  return out;
}

ScaleLayout layout_of(const Product& product, const WeightFormat& format) {
  ScaleLayout layout;
  layout.shape = product.shape;
  layout.block = format.block;
  layout.axis = static_cast<int64_t>(format.block == 0 ? product.channel_axis : product.sum_axis);
  if (format.block != 0 && product.sum_axes > 1) layout.shape = {product.channels(), product.terms()};
  const auto axis = static_cast<size_t>(layout.axis);
  layout.extent = layout.shape[axis];
  for (size_t i = axis + 1; i < layout.shape.size(); ++i) layout.inner *= layout.shape[i];
  layout.count = layout.extent;
  if (layout.block != 0) layout.count = element_count(layout.scale_shape());
  return layout;
}

double PackedWeights::value_at(int64_t scale, double n) const {
  const auto at = static_cast<size_t>(scale);
  const double zero = zero_points.empty() ? 0 : static_cast<double>(zero_points[at]);
  return static_cast<float>((n - zero) * scales[at]);
}

PackedWeights pack_weights(const Product& product, const Tensor& weights, const WeightFormat& format) {
  const std::span<const float> exact = weights.floats();
  PackedWeights packed;
  packed.format = format;
  packed.layout = layout_of(product, format);
  packed.numbers = Tensor(format.scalar, packed.layout.shape);
  std::vector<Step> steps(static_cast<size_t>(packed.layout.count));
  if (is_scaled(format.scalar)) {
    steps = choose_steps(format, exact, packed.layout);
    for (const Step& step : steps) packed.scales.push_back(step.scale);
    for (const Step& step : steps) {
      if (!format.symmetric) packed.zero_points.push_back(step.zero_point);
    }
  }
  const Numbers numbers(format);
  std::vector<float> values(exact.size());
  packed.layout.for_each(weights.size(), [&](int64_t i, int64_t at) {
    const double n = numbers.nearest(steps[static_cast<size_t>(at)], exact[static_cast<size_t>(i)]);
    packed.numbers.set_float(i, n);
    values[static_cast<size_t>(i)] = static_cast<float>(packed.scales.empty() ? n : packed.value_at(at, n));
  });
  packed.values = Tensor::of_floats(weights.shape(), values);
  return packed;
}

double largest_sum(const Product& product, const PackedWeights& packed) {
  const bool has_zero_points = !packed.zero_points.empty();
  std::vector<float> magnitudes(static_cast<size_t>(packed.numbers.size()));
  packed.layout.for_each(packed.numbers.size(), [&](int64_t i, int64_t at) {
    const double zero = has_zero_points ? static_cast<double>(packed.zero_points[static_cast<size_t>(at)]) : 0;
    magnitudes[static_cast<size_t>(i)] = static_cast<float>(std::abs(packed.numbers.float_at(i) - zero));
  });
  std::vector<double> sums(static_cast<size_t>(product.channels()));
  layout_of(product, {}).for_each(packed.numbers.size(), [&](int64_t i, int64_t channel) {
    sums[static_cast<size_t>(channel)] += magnitudes[static_cast<size_t>(i)];
  });
  return *std::max_element(sums.begin(), sums.end());
}

int64_t byte_size(const PackedWeights& packed) {
  const auto scales = static_cast<int64_t>(packed.scales.size());
  const int64_t zero_points = packed.zero_points.empty() ? 0 : byte_size(packed.format.scalar, {scales});
  return static_cast<int64_t>(packed.numbers.bytes().size()) + 4 * scales + zero_points;
}

}  // namespace hoist
