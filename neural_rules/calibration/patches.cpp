#include "neural_rules/calibration/patches.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "neural_rules/model/flow.h"

namespace hoist {
namespace {

// The product of two such numbers fits into 31 bits, and the sum of 2^33 products into 64 bits.
constexpr int number_bits = 15;

std::vector<int64_t> list_attribute(const Definition& layer, const std::string& name, size_t size, int64_t otherwise) {
  const Attributes& attributes = layer.expression->operation->attributes;
  auto found = attributes.find(name);
  const auto* value = found == attributes.end() ? nullptr : std::get_if<std::vector<int64_t>>(&found->second);
  return value != nullptr && value->size() == size ? *value : std::vector<int64_t>(size, otherwise);
}

std::string padding_of(const Definition& layer) {
  const Attributes& attributes = layer.expression->operation->attributes;
  auto found = attributes.find("auto_pad");
  const auto* value = found == attributes.end() ? nullptr : std::get_if<std::string>(&found->second);
  return value == nullptr ? "NOTSET" : *value;
}

// The index of output position `at`, outermost axis first.
std::vector<int64_t> unravelled(int64_t at, const std::vector<int64_t>& extents) {
  std::vector<int64_t> index(extents.size());
  for (size_t i = extents.size(); i-- > 0;) {
    index[i] = at % extents[i];
    at /= extents[i];
  }
  return index;
}

}  // namespace

std::optional<std::string> why_no_patches(const Program& program, const Definition& layer, int64_t most_terms) {
  const auto product = product_of(program, layer);
  if (!product) return "the layer has no constant weights of type f32";
  if (!product->whole_sums) return "windows of a transposed convolution are not collected";
  if (!product->images && !product->reads_rows) return "the input is transposed";
  if (product->stacked) return "the weights are a stack of matrices";
  if (product->terms() > most_terms)
    return fmt::format("the sums have {} terms, at most {} can be treated together", product->terms(), most_terms);
  return std::nullopt;
}

PatchMoments::PatchMoments(Product product, Definition layer, int64_t most_windows)
    : product_(std::move(product)), layer_(std::move(layer)), terms_(product_.terms()), most_windows_(most_windows) {
  sums_.resize(static_cast<size_t>(product_.groups * terms_ * terms_));
  plain_sums_.resize(static_cast<size_t>(product_.groups * terms_));
}

Result<Nothing> PatchMoments::add(const Tensor& tensor, int exponent) {
  const std::vector<int64_t>& shape = tensor.shape();
  const bool image = product_.images;
  const bool fits = image ? shape.size() == product_.shape.size() && shape[1] == product_.shape[1] * product_.groups
                          : !shape.empty() && shape.back() == terms_;
  if (!fits) return Diagnostic{layer_name(layer_), "the input of the layer does not fit the shape of its weights", ""};
  std::vector<int32_t> numbers(static_cast<size_t>(tensor.size()));
  for (size_t i = 0; i < numbers.size(); ++i) {
    const double x = tensor.float_at(static_cast<int64_t>(i));
    numbers[i] = static_cast<int32_t>(std::lrint(std::ldexp(x, number_bits - exponent)));
  }
  if (image)
    add_windows(numbers, shape);
  else
    add_rows(numbers, shape);
  return Nothing{};
}

void PatchMoments::add_rows(const std::vector<int32_t>& numbers, const std::vector<int64_t>& shape) {
  const auto rows = static_cast<int64_t>(numbers.size()) / std::max<int64_t>(terms_, 1);
  const int64_t rows_a_sample = shape.size() < 3 ? 1 : rows / std::max<int64_t>(shape[0], 1);
  const int64_t every = (rows_a_sample + most_windows_ - 1) / most_windows_;
  for (int64_t r = 0; r < rows; ++r) {
    if (r % rows_a_sample % every != 0) continue;
    add_patch(numbers.data() + r * terms_, 0);
    ++count_;
  }
}

std::vector<PatchMoments::Axis> PatchMoments::axes_of(const std::vector<int64_t>& shape) const {
  const size_t rank = shape.size() - 2;
  const std::vector<int64_t> strides = list_attribute(layer_, "strides", rank, 1);
  const std::vector<int64_t> dilations = list_attribute(layer_, "dilations", rank, 1);
  const std::vector<int64_t> pads = list_attribute(layer_, "pads", 2 * rank, 0);
  const std::string padding = padding_of(layer_);
  std::vector<Axis> axes;
  for (size_t i = 0; i < rank; ++i) {
    Axis axis{shape[i + 2], product_.shape[i + 2], strides[i], dilations[i], pads[i], 0};
    const int64_t window = (axis.kernel - 1) * axis.dilation + 1;
    int64_t total = pads[i] + pads[rank + i];
    if (padding.starts_with("SAME")) {
      axis.outputs = (axis.extent + axis.stride - 1) / axis.stride;
      total = std::max<int64_t>((axis.outputs - 1) * axis.stride + window - axis.extent, 0);
      axis.before = padding == "SAME_UPPER" ? total / 2 : total - total / 2;
    } else if (padding == "VALID") {
      total = axis.before = 0;
    }
    axis.outputs = std::max<int64_t>((axis.extent + total - window) / axis.stride + 1, 0);
    axes.push_back(axis);
  }
  return axes;
}

void PatchMoments::add_windows(const std::vector<int32_t>& numbers, const std::vector<int64_t>& shape) {
  const std::vector<Axis> axes = axes_of(shape);
  std::vector<int64_t> outputs, kernel;
  int64_t plane = 1;
  for (const Axis& axis : axes) {
    outputs.push_back(axis.outputs);
    kernel.push_back(axis.kernel);
    plane *= axis.extent;
  }
  const int64_t windows = element_count(outputs), taps = element_count(kernel);
  const int64_t every = std::max<int64_t>((windows + most_windows_ - 1) / most_windows_, 1);
  const int64_t channels = product_.shape[1];
  std::vector<int32_t> patch(static_cast<size_t>(terms_));
  for (int64_t sample = 0; sample < shape[0]; ++sample) {
    for (int64_t w = 0; w < windows; w += every) {
      const std::vector<int64_t> at = unravelled(w, outputs);
      for (int64_t group = 0; group < product_.groups; ++group) {
        const int64_t first = sample * shape[1] + group * channels;
        for (int64_t tap = 0; tap < taps; ++tap) {
          const std::vector<int64_t> k = unravelled(tap, kernel);
          int64_t offset = 0;
          bool inside = true;
          for (size_t i = 0; i < axes.size(); ++i) {
            const int64_t x = at[i] * axes[i].stride - axes[i].before + k[i] * axes[i].dilation;
            inside = inside && x >= 0 && x < axes[i].extent;
            offset = offset * axes[i].extent + x;
          }
          for (int64_t c = 0; c < channels; ++c) {
            patch[static_cast<size_t>(c * taps + tap)] =
                inside ? numbers[static_cast<size_t>((first + c) * plane + offset)] : 0;
          }
        }
        add_patch(patch.data(), group);
      }
      ++count_;
    }
  }
}

void PatchMoments::add_patch(const int32_t* patch, int64_t group) {
  for (int64_t i = 0; i < terms_; ++i) {
    const int64_t x = patch[i];
    if (x == 0) continue;
    plain_sums_[static_cast<size_t>(group * terms_ + i)] += x;
    int64_t* line = sums_.data() + (group * terms_ + i) * terms_;
    for (int64_t j = i; j < terms_; ++j) line[j] += x * patch[j];
  }
}

SecondMoments PatchMoments::finish(int exponent) const {
  SecondMoments moments;
  moments.terms = terms_;
  moments.count = count_;
  moments.products.resize(sums_.size());
  moments.means.resize(plain_sums_.size());
  const double unit = std::ldexp(1.0, 2 * (exponent - number_bits)) / static_cast<double>(std::max<int64_t>(count_, 1));
  const double plain_unit = std::ldexp(1.0, exponent - number_bits) / static_cast<double>(std::max<int64_t>(count_, 1));
  for (size_t i = 0; i < plain_sums_.size(); ++i) moments.means[i] = static_cast<double>(plain_sums_[i]) * plain_unit;
  for (int64_t group = 0; group < product_.groups; ++group) {
    for (int64_t i = 0; i < terms_; ++i) {
      for (int64_t j = i; j < terms_; ++j) {
        const int64_t base = group * terms_;
        const double mean = static_cast<double>(sums_[static_cast<size_t>((base + i) * terms_ + j)]) * unit;
        moments.products[static_cast<size_t>((base + i) * terms_ + j)] = mean;
        moments.products[static_cast<size_t>((base + j) * terms_ + i)] = mean;
      }
    }
  }
  return moments;
}

}  // namespace hoist
