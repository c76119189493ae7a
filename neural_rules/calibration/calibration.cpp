#include "neural_rules/calibration/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <set>
#include <span>

#include "neural_rules/calibration/patches.h"
#include "neural_rules/formats/formats.h"
#include "neural_rules/formats/rounding.h"
#include "neural_rules/model/flow.h"

namespace hoist {
namespace {

// Integer sums are independent of the order of their terms; 128 bits hold 2^66 terms of 60 bits.
__extension__ using WideSum = __int128;
constexpr int fixed_bits = 60;

// The factors that convert numbers below 2^exponent, and their squares, to 60-bit integers.
struct Units {
  explicit Units(int exponent)
      : plain(std::ldexp(1.0, fixed_bits - exponent)), square(std::ldexp(1.0, fixed_bits - 2 * exponent)) {}
  double plain, square;
};

// Sums of x and of x^2 in these units.
struct Moments {
  WideSum sum = 0, squares = 0;
  int64_t count = 0;

  void add(double x, const Units& units) {
    sum += std::llrint(x * units.plain);
    squares += std::llrint(x * x * units.square);
    ++count;
  }
  double mean(const Units& units) const {
    return static_cast<double>(sum) / static_cast<double>(std::max<int64_t>(count, 1)) / units.plain;
  }
  double mean_square(const Units& units) const {
    return static_cast<double>(squares) / static_cast<double>(std::max<int64_t>(count, 1)) / units.square;
  }
};

struct MinMax {
  double low = INFINITY, high = -INFINITY;

  void add(double x) {
    low = std::min(low, x);
    high = std::max(high, x);
  }
};

// The statistics of one value: per channel, or as a single channel if it has no channel dimension.
struct Collected {
  std::vector<MinMax> min_max;
  std::vector<Moments> moments;
  bool has_channels = false;
  bool varies = false;  // the channel dimension is dynamic, so all elements share one set of statistics
  int64_t count = 0;    // count of elements in the first pass
  int64_t zeros = 0;
  std::vector<uint64_t> histogram = std::vector<uint64_t>(histogram_bins);
  WideSum block_errors = 0;  // squares

  MinMax all_min_max() const {
    MinMax all;
    for (const MinMax& part : min_max) {
      all.low = std::min(all.low, part.low);
      all.high = std::max(all.high, part.high);
    }
    return all;
  }
  Moments all_moments() const {
    Moments all;
    for (const Moments& part : moments) {
      all.sum += part.sum;
      all.squares += part.squares;
      all.count += part.count;
    }
    return all;
  }
};

// The exponent of the smallest power of two that bounds every magnitude.
int exponent_of(const MinMax& min_max) {
  const double largest = std::max(std::abs(min_max.low), std::abs(min_max.high));
  return largest == 0 ? 0 : std::ilogb(largest) + 1;
}

// The number of channels and of consecutive elements per channel; one channel if the dimension is missing.
struct ChannelLayout {
  int64_t channels = 1, inner = 1;
  bool has_channels = false;

  /// Calls f(channel, begin, end) for each run of elements of one channel.
  template <class F>
  void for_each_run(int64_t size, F f) const {
    for (int64_t begin = 0, channel = 0; begin < size; begin += inner) {
      f(static_cast<size_t>(channel), begin, begin + inner);
      if (++channel == channels) channel = 0;
    }
  }
};

ChannelLayout layout_of(const Tensor& tensor, int64_t axis) {
  const auto rank = static_cast<int64_t>(tensor.shape().size());
  if (rank < 2) return {1, tensor.size(), false};
  const int64_t at = axis < 0 ? rank - 1 : axis;
  ChannelLayout layout{tensor.shape()[static_cast<size_t>(at)], 1, true};
  for (int64_t i = at + 1; i < rank; ++i) layout.inner *= tensor.shape()[static_cast<size_t>(i)];
  return layout;
}

// The elements of a float tensor, with a fast path for f32.
class Elements {
 public:
  explicit Elements(const Tensor& tensor) : tensor_(tensor) {
    if (tensor.scalar() == Scalar::f32) floats_ = tensor.floats();
  }
  double operator[](int64_t i) const { return floats_.empty() ? tensor_.float_at(i) : floats_[static_cast<size_t>(i)]; }

 private:
  const Tensor& tensor_;
  std::span<const float> floats_;
};

// Squared errors of elements in blocks of channels, each with its own power of two.
WideSum block_errors(const Elements& numbers, int64_t size, const ChannelLayout& layout, const Units& units) {
  WideSum sum = 0;
  std::vector<double> steps(static_cast<size_t>(layout.inner));
  for (int64_t outer = 0; outer < size; outer += layout.channels * layout.inner) {
    for (int64_t first = 0; first < layout.channels; first += block_channels) {
      const int64_t begin = outer + first * layout.inner;
      const int64_t end = outer + std::min(first + block_channels, layout.channels) * layout.inner;
      std::fill(steps.begin(), steps.end(), 0);
      for (int64_t i = begin; i < end; i += layout.inner) {
        for (size_t k = 0; k < steps.size(); ++k)
          steps[k] = std::max(steps[k], std::abs(numbers[i + static_cast<int64_t>(k)]));
      }
      for (double& step : steps) step = block_step(step);
      for (int64_t i = begin; i < end; i += layout.inner) {
        for (size_t k = 0; k < steps.size(); ++k) {
          const double x = numbers[i + static_cast<int64_t>(k)], error = rounded_in_block(steps[k], x) - x;
          sum += std::llrint(error * error * units.square);
        }
      }
    }
  }
  return sum;
}

bool is_counted(const Tensor& tensor) { return is_float(tensor.scalar()) && tensor.size() > 0; }

}  // namespace

struct Calibrator::State {
  std::map<std::string, Collected> values;
  std::set<std::string> inputs;                                        // inputs of the model
  std::set<std::string> last_channel;                                  // values from matrix_inputs()
  std::map<std::string, std::map<std::string, PatchMoments>> patches;  // moments by value and layer
  std::mutex mutex;                                                    // of `values`, not of its elements

  Collected& collected(const std::string& value) {
    const std::lock_guard lock(mutex);
    return values[value];
  }

  int64_t axis(const std::string& value) const { return last_channel.count(value) != 0 ? -1 : 1; }
};

Calibrator::Calibrator(const Program& program) : state_(std::make_unique<State>()) {
  for (const auto& [name, type] : program.inputs) state_->inputs.insert(name);
  state_->last_channel = matrix_inputs(definitions_of(program));
}
Calibrator::~Calibrator() = default;
Calibrator::Calibrator(Calibrator&&) noexcept = default;
Calibrator& Calibrator::operator=(Calibrator&&) noexcept = default;

bool Calibrator::collect_second_moments(const Program& program, const std::string& name, int64_t most_windows) {
  const Definition* layer = find_layer(program, name);
  if (layer == nullptr || why_not_adaptive(program, *layer)) return false;
  Product product = *product_of(program, *layer);
  const std::string input = product.input;
  state_->patches[input].try_emplace(name, std::move(product), *layer, most_windows);
  return true;
}

Result<Nothing> Calibrator::observe_min_max(const std::string& value, const Tensor& tensor) {
  if (!is_counted(tensor)) return Nothing{};
  Collected& collected = state_->collected(value);
  ChannelLayout layout = layout_of(tensor, state_->axis(value));
  if (collected.count == 0) collected.min_max.resize(static_cast<size_t>(layout.channels));
  if (collected.min_max.size() != static_cast<size_t>(layout.channels)) collected.varies = true;
  if (collected.varies) {
    layout = {1, tensor.size(), false};
    collected.min_max = {collected.all_min_max()};
  }
  int64_t bad = -1;
  const Elements numbers(tensor);
  layout.for_each_run(tensor.size(), [&](size_t channel, int64_t begin, int64_t end) {
    MinMax& min_max = collected.min_max[channel];
    for (int64_t i = begin; i < end; ++i) {
      const double x = numbers[i];
      if (!std::isfinite(x) && bad < 0) bad = i;
      min_max.add(x);
    }
  });
  if (bad >= 0) {
    const bool input = state_->inputs.count(value) != 0;
    return Diagnostic{value, fmt::format("element {} of the calibration data is {}", bad, tensor.float_at(bad)),
                      input ? "remove the sample" : "the model overflows on this sample; remove it"};
  }
  collected.has_channels = layout.has_channels;
  collected.count += tensor.size();
  return Nothing{};
}

Result<Nothing> Calibrator::observe(const std::string& value, const Tensor& tensor) {
  if (!is_counted(tensor)) return Nothing{};
  Collected& collected = state_->collected(value);
  const ChannelLayout layout =
      collected.varies ? ChannelLayout{1, tensor.size(), false} : layout_of(tensor, state_->axis(value));
  if (collected.min_max.size() != static_cast<size_t>(layout.channels))
    return Diagnostic{value, "the second pass over the calibration data has other shapes", ""};
  const MinMax all = collected.all_min_max();
  const double low = all.low, high = all.high;
  const int exponent = exponent_of(all);
  const Units units(exponent);
  const double bins_a_unit = high > low ? histogram_bins / (high - low) : 0;
  collected.moments.resize(collected.min_max.size());
  int64_t outside = -1;
  const Elements numbers(tensor);
  layout.for_each_run(tensor.size(), [&](size_t channel, int64_t begin, int64_t end) {
    Moments moments = collected.moments[channel];
    for (int64_t i = begin; i < end; ++i) {
      const double x = numbers[i];
      if (!(x >= low && x <= high)) {
        outside = i;
        continue;
      }
      if (x == 0) ++collected.zeros;
      moments.add(x, units);
      ++collected.histogram[std::min<size_t>(static_cast<size_t>((x - low) * bins_a_unit), histogram_bins - 1)];
    }
    collected.moments[channel] = moments;
  });
  if (outside >= 0) {
    return Diagnostic{value,
                      fmt::format("is {} in the second pass over the calibration data, outside [{}, {}]",
                                  tensor.float_at(outside), low, high),
                      "both passes need the same data"};
  }
  if (layout.has_channels) collected.block_errors += block_errors(numbers, tensor.size(), layout, units);
  if (const auto found = state_->patches.find(value); found != state_->patches.end()) {
    for (auto& [layer, patches] : found->second) HOIST_TRY_VOID(patches.add(tensor, exponent));
  }
  return Nothing{};
}

Result<Statistics> Calibrator::finish() const {
  Statistics statistics;
  Diagnostics problems;
  if (state_->values.empty()) return Diagnostic{"calibration data", "holds no elements", ""};
  for (const auto& [name, collected] : state_->values) {
    const Moments moments = collected.all_moments();
    const MinMax min_max = collected.all_min_max();
    if (moments.count != collected.count) {
      problems.push_back({name,
                          fmt::format("the second pass over the calibration data has {} elements, the first one {}",
                                      moments.count, collected.count),
                          "both passes need the same data"});
    }
    if (state_->inputs.count(name) != 0 && min_max.low == 0 && min_max.high == 0)
      problems.push_back({name, "the calibration data is zero everywhere", "give samples that resemble later inputs"});
    const int exponent = exponent_of(min_max);
    const Units units(exponent);
    ValueStatistics& s = statistics[name];
    s.count = collected.count;
    s.zeros = collected.zeros;
    s.low = min_max.low;
    s.high = min_max.high;
    s.mean = moments.mean(units);
    s.mean_square = moments.mean_square(units);
    s.histogram = collected.histogram;
    s.channel_axis = state_->axis(name);
    s.block_noise = static_cast<double>(collected.block_errors) / static_cast<double>(collected.count) / units.square;
    for (size_t c = 0; collected.has_channels && c < collected.moments.size(); ++c) {
      const auto& [least, most] = collected.min_max[c];
      s.channels.push_back({least, most, collected.moments[c].mean(units), collected.moments[c].mean_square(units)});
    }
    auto patches = state_->patches.find(name);
    if (patches == state_->patches.end()) continue;
    for (const auto& [layer, collector] : patches->second)
      s.second_moments[layer] = std::make_shared<const SecondMoments>(collector.finish(exponent));
  }
  if (!problems.empty()) return problems;
  return statistics;
}

}  // namespace hoist
