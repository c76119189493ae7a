#include <algorithm>
#include <cmath>
#include <optional>

#include "ir/rules/program_index.h"
#include "lowering/graph/program.h"
#include "lowering/rules/call_conditions.h"

namespace hoist {
namespace {

// One spatial dimension of a convolution.
struct ConvolvedDimension {
  int64_t inputs, outputs, taps, stride, dilation, begin;  // `begin`: the padding before
};

// Taps or outputs along a dimension; none if end <= first.
struct Range {
  int64_t first, end;
};

// The outputs for which the tap reads an element.
Range served_outputs(const ConvolvedDimension& d, int64_t tap) {
  const int64_t low = tap * d.dilation - d.begin;  // the position that the first output reads
  const auto steps = [&](int64_t distance) { return distance <= 0 ? 0 : (distance + d.stride - 1) / d.stride; };
  return {steps(-low), std::min(d.outputs, steps(d.inputs - low))};
}

// The taps from the first to the last one that reads an element, if they are fewer than all.
std::optional<Range> reading_taps(const ConvolvedDimension& d) {
  Range out{d.taps, 0};
  for (int64_t tap = 0; tap < d.taps; ++tap) {
    const Range served = served_outputs(d, tap);
    if (served.first >= served.end) continue;
    out.first = std::min(out.first, tap);
    out.end = tap + 1;
  }
  if (out.first >= out.end || out.end - out.first == d.taps) return std::nullopt;
  return out;
}

// Products of a contraction in the time of the padded load and the addition that a split adds to an output: 10 and 11
// measured for 196 x 64 and 196 x 256 outputs on one core with AVX2, and a share for the launch.
constexpr int64_t products_of_addition = 16;

std::optional<std::vector<int64_t>> attribute_of(const Attributes& attributes, const std::string& name,
                                                 const std::vector<int64_t>& otherwise) {
  const auto found = attributes.find(name);
  if (found == attributes.end()) return otherwise;
  const auto* value = std::get_if<std::vector<int64_t>>(&found->second);
  if (value == nullptr || value->size() != otherwise.size()) return std::nullopt;
  return *value;
}

bool are_finite(const Tensor* numbers) {
  if (numbers == nullptr) return false;
  if (!is_float(numbers->scalar())) return true;
  for (int64_t i = 0; i < numbers->size(); ++i) {
    if (!std::isfinite(numbers->float_at(i))) return false;
  }
  return true;
}

// The dimensions of the convolution at a match; nothing if its attributes are incomplete.
std::optional<std::vector<ConvolvedDimension>> convolved_dimensions(ProgramMatch& match) {
  const Definition* self = match.index->find(match.value);
  const std::vector<int64_t> w = shape_of(match.values.at("w")->type);
  if (self == nullptr || w.size() < 3) return std::nullopt;
  const std::vector<int64_t> x = shape_of(match.values.at("x")->type), y = shape_of(self->expression->type);
  const size_t rank = w.size() - 2;
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
    ConvolvedDimension d{x[2 + i], y[2 + i], w[2 + i], (*strides)[i], (*dilations)[i], (*pads)[i]};
    if (d.inputs == 0 || d.outputs == 0) return std::nullopt;
    const int64_t all = std::max<int64_t>(0, (d.outputs - 1) * d.stride + (d.taps - 1) * d.dilation + 1 - d.inputs);
    if (mode != nullptr && *mode == "SAME_UPPER") d.begin = all / 2;
    if (mode != nullptr && *mode == "SAME_LOWER") d.begin = all - all / 2;
    if (mode != nullptr && *mode == "VALID") d.begin = 0;
    out.push_back(d);
  }
  return out;
}

// A part of the convolution: some taps and some outputs along each dimension.
struct ConvolutionPart {
  std::vector<Range> taps, outputs;
};

ConvolutionPart whole_convolution(const std::vector<ConvolvedDimension>& dimensions) {
  ConvolutionPart out;
  for (const ConvolvedDimension& d : dimensions) {
    out.taps.push_back({0, d.taps});
    out.outputs.push_back({0, d.outputs});
  }
  return out;
}

// Adds the attributes of the part's convolution, under names with this prefix.
void add_part(const std::vector<ConvolvedDimension>& dimensions, const ConvolutionPart& part, const std::string& prefix,
              ProgramMatch& match) {
  const size_t rank = dimensions.size();
  std::vector<int64_t> first_tap, end_tap, first_read, end_read, borders(2 * rank, 0);
  for (size_t i = 0; i < rank; ++i) {
    const ConvolvedDimension& d = dimensions[i];
    const Range taps = part.taps[i], outputs = part.outputs[i];
    // Windows of the remaining taps begin at `begin` and end at `end`; beyond the input is padding.
    const int64_t begin = outputs.first * d.stride + taps.first * d.dilation - d.begin;
    const int64_t end =
        begin + (outputs.end - outputs.first - 1) * d.stride + (taps.end - taps.first - 1) * d.dilation + 1;
    first_tap.push_back(taps.first);
    end_tap.push_back(taps.end);
    first_read.push_back(std::max<int64_t>(begin, 0));
    end_read.push_back(std::min(end, d.inputs));
    borders[i] = std::max<int64_t>(-begin, 0);
    borders[rank + i] = std::max<int64_t>(end - d.inputs, 0);
  }
  match.attributes.insert({{prefix + "first_tap", first_tap},
                           {prefix + "end_tap", end_tap},
                           {prefix + "first_read", first_read},
                           {prefix + "end_read", end_read},
                           {prefix + "borders", borders}});
}

void replace_attributes(size_t rank, ProgramMatch& match) {
  for (const char* replaced : {"pads", "auto_pad", "kernel_shape"}) match.rests["A"].erase(replaced);
  std::vector<int64_t> spatial;
  for (size_t i = 0; i < rank; ++i) spatial.push_back(static_cast<int64_t>(2 + i));
  match.attributes.insert({"spatial", spatial});
}

}  // namespace

bool has_taps_of_padding(ProgramMatch& match) {
  const auto dimensions = convolved_dimensions(match);
  if (!dimensions) return false;
  ConvolutionPart part = whole_convolution(*dimensions);
  bool any = false;
  for (size_t i = 0; i < dimensions->size(); ++i) {
    const auto fewer = reading_taps((*dimensions)[i]);
    if (fewer) part.taps[i] = *fewer;
    any |= fewer.has_value();
  }
  if (!any || !are_finite(match.known("w"))) return false;
  add_part(*dimensions, part, "", match);
  replace_attributes(dimensions->size(), match);
  return true;
}

bool has_tap_of_mostly_padding(ProgramMatch& match) {
  const auto dimensions = convolved_dimensions(match);
  if (!dimensions) return false;
  const Type filters = match.values.at("w")->type;
  // Partial sums are rounded to the type of the result.
  const Scalar scalar = leaf_of(filters)->scalar;
  if (scalar != Scalar::f32 && scalar != Scalar::f64) return false;
  const std::vector<int64_t> shape = shape_of(filters);
  const int64_t products = element_count(shape) / std::max<int64_t>(shape[0], 1);
  const size_t rank = dimensions->size();
  for (size_t i = 0; i < rank; ++i) {
    const ConvolvedDimension& d = (*dimensions)[i];
    if (d.taps == 1) continue;
    for (const bool is_first : {true, false}) {
      // All such taps together, so that a window of many taps becomes few convolutions. Their own may be split again.
      Range served{d.outputs, 0};
      int64_t count = 0;
      while (count + 1 < d.taps) {
        const Range more = served_outputs(d, is_first ? count : d.taps - 1 - count);
        const Range together =
            more.first < more.end ? Range{std::min(served.first, more.first), std::max(served.end, more.end)} : served;
        if (2 * (together.end - together.first) >= d.outputs) break;
        served = together;
        ++count;
      }
      const int64_t unserved = d.outputs - (served.end - served.first);
      if (served.first >= served.end) continue;
      // An output that the taps do not serve saves their products, and every output takes an addition.
      if (products / d.taps * count * unserved < products_of_addition * d.outputs) continue;
      if (!are_finite(match.known("w"))) return false;
      ConvolutionPart rest = whole_convolution(*dimensions), own = rest;
      rest.taps[i] = is_first ? Range{count, d.taps} : Range{0, d.taps - count};
      own.taps[i] = is_first ? Range{0, count} : Range{d.taps - count, d.taps};
      own.outputs[i] = served;
      add_part(*dimensions, rest, "", match);
      add_part(*dimensions, own, "own_", match);
      std::vector<int64_t> around(2 * (rank + 2), 0);
      around[2 + i] = served.first;
      around[rank + 4 + i] = d.outputs - served.end;
      match.attributes.insert({"around", around});
      replace_attributes(rank, match);
      return true;
    }
  }
  return false;
}

}  // namespace hoist
