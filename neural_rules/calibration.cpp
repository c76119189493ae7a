#include "neural_rules/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "neural_rules/patches.h"
#include "neural_rules/rounding.h"

namespace hoist {
namespace {

// Sums of integers do not depend on the order of their terms; 128 bits hold 2^66 terms of 60 bits.
__extension__ using WideSum = __int128;
constexpr int fixed_bits = 60;

// Sums of x and of x^2 as multiples of 2^-60 of a power of two that bounds them.
struct Moments {
  WideSum sum = 0, squares = 0;
  int64_t count = 0;

  void add(double x, int exponent) {
    sum += static_cast<WideSum>(std::nearbyint(std::ldexp(x, fixed_bits - exponent)));
    squares += static_cast<WideSum>(std::nearbyint(std::ldexp(x * x, fixed_bits - 2 * exponent)));
    ++count;
  }
  double mean(int exponent) const {
    return std::ldexp(static_cast<double>(sum) / static_cast<double>(std::max<int64_t>(count, 1)),
                      exponent - fixed_bits);
  }
  double mean_square(int exponent) const {
    return std::ldexp(static_cast<double>(squares) / static_cast<double>(std::max<int64_t>(count, 1)),
                      2 * exponent - fixed_bits);
  }
};

struct Extremes {
  double low = INFINITY, high = -INFINITY;

  void add(double x) {
    low = std::min(low, x);
    high = std::max(high, x);
  }
};

struct Collected {
  Extremes extremes;
  std::vector<Extremes> channel_extremes;
  int64_t count = 0;  // of the first pass
  int64_t zeros = 0;
  Moments moments;
  std::vector<Moments> channel_moments;
  std::vector<uint64_t> histogram = std::vector<uint64_t>(histogram_bins);

  // 2^exponent bounds every magnitude.
  int exponent() const {
    const double largest = std::max(std::abs(extremes.low), std::abs(extremes.high));
    return largest == 0 ? 0 : std::ilogb(largest) + 1;
  }
};

// How often the channel changes along a tensor, and how many there are; one channel where the dimension is missing.
struct ChannelLayout {
  int64_t channels = 0, inner = 1;
};

ChannelLayout layout_of(const Tensor& tensor, int64_t axis) {
  const auto rank = static_cast<int64_t>(tensor.shape().size());
  if (rank < 2) return {};
  ChannelLayout layout;
  const int64_t at = axis < 0 ? rank - 1 : axis;
  layout.channels = tensor.shape()[static_cast<size_t>(at)];
  for (int64_t i = at + 1; i < rank; ++i) layout.inner *= tensor.shape()[static_cast<size_t>(i)];
  return layout;
}

bool is_counted(const Tensor& tensor) { return is_float(tensor.scalar()) && tensor.size() > 0; }

}  // namespace

struct Calibrator::State {
  std::map<std::string, Collected> values;
  std::set<std::string> inputs;                                        // of the model
  std::set<std::string> last_channel;                                  // values that matrix products read
  std::map<std::string, std::map<std::string, PatchMoments>> patches;  // by value, by layer

  int64_t axis(const std::string& value) const { return last_channel.count(value) != 0 ? -1 : 1; }
};

Calibrator::Calibrator(const Graph& graph) : state_(std::make_unique<State>()) {
  for (const ValueInfo& input : graph.inputs) state_->inputs.insert(input.name);
  for (const Layer& layer : graph.layers) {
    if (layer.operation == "MatMul" || layer.operation == "Gemm") state_->last_channel.insert(layer.inputs[0]);
  }
}
Calibrator::~Calibrator() = default;
Calibrator::Calibrator(Calibrator&&) noexcept = default;
Calibrator& Calibrator::operator=(Calibrator&&) noexcept = default;

bool Calibrator::collect_second_moments(const Graph& graph, const std::string& name) {
  const Layer* layer = find_layer(graph, name);
  if (layer == nullptr || why_not_adaptive(graph, *layer)) return false;
  Product product = *product_of(graph, *layer);
  const std::string input = product.input;
  state_->patches[input].try_emplace(name, std::move(product), *layer);
  return true;
}

Result<Nothing> Calibrator::observe_extremes(const std::string& value, const Tensor& tensor) {
  if (!is_counted(tensor)) return Nothing{};
  Collected& collected = state_->values[value];
  const ChannelLayout layout = layout_of(tensor, state_->axis(value));
  const auto channels = static_cast<size_t>(layout.channels);
  if (collected.count == 0) collected.channel_extremes.resize(channels);
  if (collected.channel_extremes.size() != channels) {
    return Diagnostic{value,
                      fmt::format("has {} channels here and {} in other calibration data", channels,
                                  collected.channel_extremes.size()),
                      "all samples need the same shape"};
  }
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double x = tensor.float_at(i);
    if (!std::isfinite(x)) {
      const bool input = state_->inputs.count(value) != 0;
      return Diagnostic{value, fmt::format("element {} of the calibration data is {}", i, x),
                        input ? "remove the sample" : "the model overflows on this sample; remove it"};
    }
    collected.extremes.add(x);
    if (channels > 0) collected.channel_extremes[static_cast<size_t>(i / layout.inner % layout.channels)].add(x);
  }
  collected.count += tensor.size();
  return Nothing{};
}

Result<Nothing> Calibrator::observe(const std::string& value, const Tensor& tensor) {
  if (!is_counted(tensor)) return Nothing{};
  Collected& collected = state_->values[value];
  const ChannelLayout layout = layout_of(tensor, state_->axis(value));
  if (collected.channel_extremes.size() != static_cast<size_t>(layout.channels))
    return Diagnostic{value, "the second pass over the calibration data has other shapes", ""};
  const auto [low, high] = collected.extremes;
  const int exponent = collected.exponent();
  for (auto& [layer, patches] : state_->patches[value]) HOIST_TRY_VOID(patches.add(tensor, exponent));
  const double bins_a_unit = high > low ? histogram_bins / (high - low) : 0;
  collected.channel_moments.resize(static_cast<size_t>(layout.channels));
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double x = tensor.float_at(i);
    if (!(x >= low && x <= high)) {
      return Diagnostic{
          value, fmt::format("is {} in the second pass over the calibration data, outside [{}, {}]", x, low, high),
          "both passes need the same data"};
    }
    if (x == 0) ++collected.zeros;
    collected.moments.add(x, exponent);
    ++collected.histogram[std::min<size_t>(static_cast<size_t>((x - low) * bins_a_unit), histogram_bins - 1)];
    if (layout.channels > 0)
      collected.channel_moments[static_cast<size_t>(i / layout.inner % layout.channels)].add(x, exponent);
  }
  return Nothing{};
}

Result<Statistics> Calibrator::finish() const {
  Statistics statistics;
  Diagnostics problems;
  if (state_->values.empty()) return Diagnostic{"calibration data", "there are no numbers in it", ""};
  for (const auto& [name, collected] : state_->values) {
    if (collected.moments.count != collected.count) {
      problems.push_back({name,
                          fmt::format("the second pass over the calibration data has {} elements, the first one {}",
                                      collected.moments.count, collected.count),
                          "both passes need the same data"});
    }
    if (state_->inputs.count(name) != 0 && collected.extremes.low == 0 && collected.extremes.high == 0)
      problems.push_back({name, "the calibration data are zero everywhere", "give samples such as the model will see"});
    ValueStatistics& s = statistics[name];
    const int exponent = collected.exponent();
    s.count = collected.count;
    s.zeros = collected.zeros;
    s.low = collected.extremes.low;
    s.high = collected.extremes.high;
    s.mean = collected.moments.mean(exponent);
    s.mean_square = collected.moments.mean_square(exponent);
    s.histogram = collected.histogram;
    s.channel_axis = state_->axis(name);
    if (auto patches = state_->patches.find(name); patches != state_->patches.end()) {
      for (const auto& [layer, moments] : patches->second)
        s.second_moments[layer] = std::make_shared<const SecondMoments>(moments.finish(exponent));
    }
    for (size_t c = 0; c < collected.channel_moments.size(); ++c) {
      const Moments& moments = collected.channel_moments[c];
      s.channels.push_back({collected.channel_extremes[c].low, collected.channel_extremes[c].high,
                            moments.mean(exponent), moments.mean_square(exponent)});
    }
  }
  if (!problems.empty()) return problems;
  return statistics;
}

}  // namespace hoist
