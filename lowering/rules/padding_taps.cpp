#include "lowering/rules/padding_taps.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "lowering/graph/program.h"

namespace hoist {
namespace {

// One spatial dimension of a convolution.
struct ConvolvedDimension {
  int64_t inputs, outputs, taps, stride, dilation, begin;  // `begin`: the padding before
};

// The taps that read elements, from the first to the last one, if they are fewer than all.
struct ReadingTaps {
  int64_t first, end;
};

std::optional<ReadingTaps> reading_taps(const ConvolvedDimension& d) {
  ReadingTaps out{d.taps, 0};
  for (int64_t tap = 0; tap < d.taps; ++tap) {
    // Positions low, low + stride, ..., of which the first inside is at `inside`.
    const int64_t low = tap * d.dilation - d.begin;
    const int64_t inside = low >= 0 ? low : low + (-low + d.stride - 1) / d.stride * d.stride;
    if (inside >= d.inputs || inside > low + (d.outputs - 1) * d.stride) continue;
    out.first = std::min(out.first, tap);
    out.end = tap + 1;
  }
  if (out.first >= out.end || out.end - out.first == d.taps) return std::nullopt;
  return out;
}

std::optional<std::vector<int64_t>> attribute_of(const Attributes& attributes, const std::string& name,
                                                 const std::vector<int64_t>& otherwise) {
  const auto found = attributes.find(name);
  if (found == attributes.end()) return otherwise;
  const auto* value = std::get_if<std::vector<int64_t>>(&found->second);
  if (value == nullptr || value->size() != otherwise.size()) return std::nullopt;
  return *value;
}

bool has_finite_numbers(const Tensor& numbers) {
  if (!is_float(numbers.scalar())) return true;
  for (int64_t i = 0; i < numbers.size(); ++i) {
    if (!std::isfinite(numbers.float_at(i))) return false;
  }
  return true;
}

// The dimensions of the convolution at a match; nothing if its attributes are incomplete.
std::optional<std::vector<ConvolvedDimension>> convolved_dimensions(ProgramMatch& match) {
  const Tensor* w = match.known("w");
  const Definition* self = find_definition(*match.program, match.value);
  if (w == nullptr || self == nullptr || w->shape().size() < 3) return std::nullopt;
  const std::vector<int64_t> x = shape_of(match.values.at("x")->type), y = shape_of(self->expression->type);
  const size_t rank = w->shape().size() - 2;
  if (x.size() != rank + 2 || y.size() != rank + 2) return std::nullopt;
  const Attributes& given = match.rests["A"];
  const auto strides = attribute_of(given, "strides", std::vector<int64_t>(rank, 1)),
             dilations = attribute_of(given, "dilations", std::vector<int64_t>(rank, 1)),
             pads = attribute_of(given, "pads", std::vector<int64_t>(2 * rank, 0));
  if (!strides || !dilations || !pads) return std::nullopt;
  const auto automatic = given.find("auto_pad");
  const auto* mode = automatic == given.end() ? nullptr : std::get_if<std::string>(&automatic->second);
  std::vector<ConvolvedDimension> out;
  for (size_t i = 0; i < rank; ++i) {
    ConvolvedDimension d{x[2 + i], y[2 + i], w->shape()[2 + i], (*strides)[i], (*dilations)[i], (*pads)[i]};
    if (d.inputs == 0 || d.outputs == 0) return std::nullopt;
    const int64_t all = std::max<int64_t>(0, (d.outputs - 1) * d.stride + (d.taps - 1) * d.dilation + 1 - d.inputs);
    if (mode != nullptr && *mode == "SAME_UPPER") d.begin = all / 2;
    if (mode != nullptr && *mode == "SAME_LOWER") d.begin = all - all / 2;
    if (mode != nullptr && *mode == "VALID") d.begin = 0;
    out.push_back(d);
  }
  return out;
}

}  // namespace

bool has_taps_of_padding(ProgramMatch& match) {
  const auto dimensions = convolved_dimensions(match);
  if (!dimensions) return false;
  const size_t rank = dimensions->size();
  std::vector<int64_t> spatial, first_tap, end_tap, first_read, end_read, borders(2 * rank, 0);
  bool any = false;
  for (size_t i = 0; i < rank; ++i) {
    const ConvolvedDimension& d = (*dimensions)[i];
    const auto fewer = reading_taps(d);
    any |= fewer.has_value();
    const ReadingTaps taps = fewer.value_or(ReadingTaps{0, d.taps});
    // Windows of the remaining taps begin at `begin` and end at `end`; beyond the input is padding.
    const int64_t begin = taps.first * d.dilation - d.begin;
    const int64_t end = begin + (d.outputs - 1) * d.stride + (taps.end - taps.first - 1) * d.dilation + 1;
    spatial.push_back(static_cast<int64_t>(2 + i));
    first_tap.push_back(taps.first);
    end_tap.push_back(taps.end);
    first_read.push_back(std::max<int64_t>(begin, 0));
    end_read.push_back(std::min(end, d.inputs));
    borders[i] = std::max<int64_t>(-begin, 0);
    borders[rank + i] = std::max<int64_t>(end - d.inputs, 0);
  }
  if (!any || !has_finite_numbers(*match.known("w"))) return false;
  for (const char* replaced : {"pads", "auto_pad", "kernel_shape"}) match.rests["A"].erase(replaced);
  match.attributes.insert({{"spatial", spatial},
                           {"first_tap", first_tap},
                           {"end_tap", end_tap},
                           {"first_read", first_read},
                           {"end_read", end_read},
                           {"borders", borders}});
  return true;
}

}  // namespace hoist
