#include "neural_rules/formats/weights.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ir/base/cancellation.h"
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

// The representable numbers of a format, as doubles.
class Numbers {
 public:
  explicit Numbers(const WeightFormat& format) : scalar_(format.scalar), is_float_(is_float(format.scalar)) {
    const double most = is_float_ ? largest_of(scalar_) : 0;
    const Range range = is_float_ ? Range{-most, most} : numbers_of(format);
    low_ = range.low;
    high_ = range.high;
  }

  /// The nearest numbers, less the zero point: weight i has steps[i * stride].
  void nearest(std::span<const float> weights, const Step* steps, int64_t stride, double* out) const {
    if (is_float_) {
      for (size_t i = 0; i < weights.size(); ++i, steps += stride) {
        const double quotient = std::clamp(weights[i] / static_cast<double>(steps->scale), low_, high_);
        out[i] = float_from_bits(scalar_, bits_from_float(scalar_, quotient));
      }
      return;
    }
    for (size_t i = 0, end = 0; i < weights.size(); steps += stride) {  // the inner loop has a constant step
      const double scale = steps->scale, zero = static_cast<double>(steps->zero_point);
      const double low = low_ - zero, high = high_ - zero;
      for (end = stride == 0 ? weights.size() : i + 1; i < end; ++i)
        out[i] = to_even(std::clamp(weights[i] / scale, low, high));
    }
  }
  uint64_t bits_of(double number) const {
    return is_float_ ? bits_from_float(scalar_, number) : static_cast<uint64_t>(static_cast<int64_t>(number));
  }

 private:
  Scalar scalar_;
  bool is_float_;
  double low_ = 0, high_ = 0;
};

// Calls f(first weight, numbers, index, step of the index) with the nearest numbers of runs of weights, as
// ScaleLayout::for_each_run does.
template <class F>
void for_each_rounded(const ScaleLayout& layout, const Numbers& numbers, std::span<const float> weights,
                      const std::vector<Step>& steps, F f) {
  constexpr int64_t most = 256;  // numbers that stay in the first-level cache
  std::array<double, most> rounded;
  layout.for_each_run(static_cast<int64_t>(weights.size()), [&](int64_t weight, int64_t run, int64_t at, int64_t step) {
    for (int64_t done = 0; done < run; done += most) {
      const auto count = static_cast<size_t>(std::min(most, run - done));
      const int64_t first = weight + done, index = at + done * step;
      numbers.nearest(weights.subspan(static_cast<size_t>(first), count), &steps[static_cast<size_t>(index)], step,
                      rounded.data());
      f(first, std::span<const double>(rounded.data(), count), index, step);
    }
  });
}

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
    cancellation_point();
    const std::vector<Step> steps = steps_for(format, ranges, share);
    std::vector<double> error(steps.size());
    for_each_rounded(layout, numbers, weights, steps,
                     [&](int64_t first, std::span<const double> rounded, int64_t index, int64_t step) {
                       for (size_t i = 0; i < rounded.size(); ++i, index += step) {
                         const auto at = static_cast<size_t>(index);
                         const double difference =
                             rounded[i] * steps[at].scale - weights[static_cast<size_t>(first) + i];
                         error[at] += difference * difference;
                       }
                     });
    for (size_t at = 0; at < steps.size(); ++at) {
      if (error[at] >= least[at]) continue;
      least[at] = error[at];
      best[at] = steps[at];
    }
  }
  return best;
}

// Sets the numbers and values.
void round_with(const std::vector<Step>& steps, std::span<const float> exact, PackedWeights& packed) {
  const Numbers numbers(packed.format);
  const int bits = row(packed.format.scalar).bits;
  std::byte* stored = packed.numbers.data();
  std::vector<float> values(exact.size());
  for_each_rounded(packed.layout, numbers, exact, steps,
                   [&](int64_t first, std::span<const double> rounded, int64_t index, int64_t step) {
                     for (size_t i = 0; i < rounded.size(); ++i, index += step) {
                       const Step& of = steps[static_cast<size_t>(index)];
                       const auto weight = static_cast<size_t>(first) + i;
                       store_element(stored, bits, static_cast<int64_t>(weight),
                                     numbers.bits_of(rounded[i] + static_cast<double>(of.zero_point)));
                       values[weight] = static_cast<float>(rounded[i] * of.scale);
                     }
                   });
  packed.values = Tensor::of_floats(packed.layout.shape, values);
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
  round_with(steps, exact, packed);
  packed.values = packed.values.reshaped(weights.shape());
  return packed;
}

void round_quotients(const Tensor& quotients, PackedWeights& packed) {
  std::vector<Step> steps(static_cast<size_t>(packed.layout.count));
  for (size_t i = 0; i < packed.zero_points.size(); ++i) steps[i].zero_point = packed.zero_points[i];
  const std::vector<int64_t> shape = packed.values.shape();
  round_with(steps, quotients.floats(), packed);
  if (!packed.scales.empty()) {
    packed.layout.for_each(packed.numbers.size(), [&](int64_t i, int64_t at) {
      packed.values.set_float(i, packed.values.float_at(i) * packed.scales[static_cast<size_t>(at)]);
    });
  }
  packed.values = packed.values.reshaped(shape);
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
