// Convolution of every kind from one definition: image windows as a view, filters against windows, a zip, a map of
// products, a reduce. A transposed convolution is the same over an image with zeros put between its elements.
#include "ir/operators/convolution.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/operators/families.h"
#include "ir/operators/windows.h"

namespace hoist::operators {
namespace {

// view : the windows [out...][C][k...] of an image, filters : [O][C][k...], bias : [O] or null; [O][out...].
Expr convolve_windows(Expr view, Expr filters, Expr bias, const Geometry& g, const Arithmetic& arithmetic) {
  auto plane = [&](Expr filter, Expr added) {
    return map_at(
        static_cast<int>(g.kernel.size()),
        [&](Expr window) {
          Expr a = flatten(window), b = flatten(filter);
          Expr total = arithmetic.sum ? wide_dot(*arithmetic.sum, a, b) : dot(a, b);
          return added == nullptr ? total : operator_add(total, added);
        },
        view);
  };
  if (bias == nullptr) return map([&](Expr filter) { return plane(filter, nullptr); }, filters);
  return map_zip({filters, bias}, [&](const std::vector<Expr>& p) { return plane(p[0], p[1]); });
}

// x : [N][C][spatial...], filters : [O][C/groups][k...].
Expr convolve(Expr x, Expr filters, Expr bias, int64_t groups, Geometry g, const Arithmetic& arithmetic = {}) {
  Expr outside = arithmetic.zero == 0 ? zero(element_of(x)) : literal_integer(element_of(x), arithmetic.zero);
  // The border goes around all images at once, as a term of x alone, so that x may be stored with it (storage.h).
  for (size_t i = 0; i < g.kernel.size(); ++i) {
    x = map_at(
        static_cast<int>(i) + 2, [&](Expr row) { return pad_with(g.begin[i], g.reach[i], outside, row); }, x);
    g.begin[i] = g.reach[i] = 0;
  }
  auto view = [&](Expr channels) { return windows(channels, 1, g, outside); };
  return map(
      [&](Expr image) {
        if (groups == 1) return convolve_windows(view(image), filters, bias, g, arithmetic);
        int64_t channels = extents(image)[0] / groups, outputs = extents(filters)[0] / groups;
        // The windows of all groups are one view of the image, so that they can become an array (im2col.h).
        std::vector<Expr> parts = {map(view, split(channels, image)), split(outputs, filters)};
        if (bias != nullptr) parts.push_back(split(outputs, bias));
        return join(map_zip(parts, [&](const std::vector<Expr>& p) {
          return convolve_windows(p[0], p[1], bias == nullptr ? nullptr : p[2], g, arithmetic);
        }));
      },
      x);
}

struct Operands {
  Expr x, filters, bias;
  Shape spatial, kernel;
  int64_t groups;
};

// What Conv and ConvTranspose share. The filters' second dimension counts channels a group for Conv, outputs a group
// for ConvTranspose.
Result<Operands> convolution_operands(const OperatorContext& c, Expr input, Expr weights, Expr bias, bool transposed) {
  Operands o{input, weights, bias, {}, {}, 1};
  HOIST_TRY(o.spatial, spatial_extents(o.x));
  HOIST_TRY(o.groups, integer_attribute(c, "group", 1));
  Shape x = extents(o.x), w = extents(o.filters);
  if (w.size() != x.size())
    return fault(fmt::format("the weights {} have another rank than the input {}", text(w), text(x)));
  o.kernel = Shape(w.begin() + 2, w.end());
  HOIST_TRY(Shape kernel, integers_attribute(c, "kernel_shape", o.kernel));
  if (kernel != o.kernel)
    return fault(fmt::format("kernel_shape {} disagrees with the weights {}", text(kernel), text(w)));
  if (o.groups < 1 || x[1] % o.groups != 0 || w[0] % o.groups != 0) {
    return fault(fmt::format("{} groups do not divide {} channels and {} filters", o.groups, x[1], w[0]));
  }
  if (product(w) == 0 || x[1] == 0) return fault(fmt::format("the weights {} are empty", text(w)));
  int64_t channels = transposed ? w[0] : w[1] * o.groups;
  if (channels != x[1])
    return fault(fmt::format("the input has {} channels, the weights {} want {}", x[1], text(w), channels));
  int64_t outputs = transposed ? w[1] * o.groups : w[0];
  if (o.bias != nullptr && extents(o.bias) != Shape{outputs}) {
    return fault(fmt::format("the bias is {}, expected [{}]", text(extents(o.bias)), outputs));
  }
  return o;
}

Lowered lower_convolution(const OperatorContext& c) {
  HOIST_TRY_VOID(check_same_element(c));
  HOIST_TRY(Expr result, convolution(c, c.inputs[0], c.inputs[1], input(c, 2)));
  return one(result);
}

// Adds elements before and after along an axis; negative amounts take away.
Expr pad_or_slice(Expr x, int64_t axis, int64_t before, int64_t after) {
  return map_at(
      static_cast<int>(axis),
      [&](Expr row) {
        int64_t n = extents(row)[0];
        int64_t skip = std::max<int64_t>(-before, 0), drop = std::max<int64_t>(-after, 0);
        Expr kept = slice(skip, n - skip - drop, row);
        return pad_with(std::max<int64_t>(before, 0), std::max<int64_t>(after, 0), zero(element_of(x)), kept);
      },
      x);
}

Lowered lower_transposed_convolution(const OperatorContext& c) {
  HOIST_TRY_VOID(check_same_element(c));
  HOIST_TRY(Operands o, convolution_operands(c, c.inputs[0], c.inputs[1], input(c, 2), true));
  size_t dimensions = o.spatial.size();
  HOIST_TRY(Shape strides, integers_attribute(c, "strides", Shape(dimensions, 1)));
  HOIST_TRY(Shape dilations, integers_attribute(c, "dilations", Shape(dimensions, 1)));
  HOIST_TRY(Shape pads, integers_attribute(c, "pads", Shape(2 * dimensions, 0)));
  HOIST_TRY(Shape extra, integers_attribute(c, "output_padding", Shape(dimensions, 0)));
  HOIST_TRY(Shape wanted, integers_attribute(c, "output_shape", {}));
  HOIST_TRY(std::string automatic,
            choice_attribute(c, "auto_pad", "NOTSET", {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER", ""}));
  if (wanted.size() == dimensions + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (strides.size() != dimensions || dilations.size() != dimensions || pads.size() != 2 * dimensions ||
      extra.size() != dimensions || (!wanted.empty() && wanted.size() != dimensions)) {
    return fault(fmt::format("an attribute does not have one value for each of {} spatial dimensions", dimensions));
  }
  Geometry g;
  g.kernel = o.kernel, g.strides = Shape(dimensions, 1), g.dilations = dilations;
  g.begin = g.end = g.reach = Shape(dimensions, 0);
  Expr x = o.x;
  for (size_t i = 0; i < dimensions; ++i) {
    int64_t n = o.spatial[i], stride = strides[i];
    struct Part {
      const char* name;
      int64_t value, least;
    };
    for (const Part& p :
         {Part{"strides", stride, 1}, Part{"dilations", dilations[i], 1}, Part{"output_padding", extra[i], 0},
          Part{"pads", pads[i], INT32_MIN}, Part{"pads", pads[dimensions + i], INT32_MIN},
          Part{"output_shape", wanted.empty() ? 1 : wanted[i], 1}}) {
      if (p.value < p.least || p.value > INT32_MAX)
        return fault(fmt::format("{} holds {}, which is out of range", p.name, p.value));
    }
    if (n < 1) return fault(fmt::format("spatial dimension {} has no elements", i));
    int64_t span = g.span(i), full = (n - 1) * stride + span + extra[i];
    int64_t begin = pads[i], end = pads[dimensions + i];
    bool same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
    if (automatic == "VALID") begin = end = 0;
    if (!wanted.empty() || same) {
      // Padding follows from the output's extent; an output that is wider than the sums reach ends in zeros.
      int64_t out = wanted.empty() ? n * stride : wanted[i];
      int64_t total = std::max<int64_t>(full - out, 0);
      begin = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
      end = full - out - begin;
    }
    int64_t out = full - begin - end;
    HOIST_TRY_VOID(check_extents({out}));
    int64_t axis = static_cast<int64_t>(i) + 2;
    // Zeros between the elements, then the border that the reversed kernel needs.
    if (stride > 1) {
      x = map_at(
          static_cast<int>(axis),
          [&](Expr row) {
            Expr spread =
                join(map([&](Expr one) { return pad_with(0, stride - 1, zero(element_of(x)), one); }, split(1, row)));
            return slice(0, (n - 1) * stride + 1, spread);
          },
          x);
    }
    x = pad_or_slice(x, axis, span - 1 - begin, span - 1 - end + extra[i]);
    g.out.push_back(out);
  }
  // [C][O/g][k...] to [O][C/g][k...], the kernel reversed.
  int64_t per_group = extents(o.x)[1] / o.groups;
  Expr filters = join(map([](Expr group) { return transpose(group); }, split(per_group, o.filters)));
  for (size_t i = 0; i < dimensions; ++i) {
    int64_t k = o.kernel[i];
    filters = map_at(
        static_cast<int>(i) + 2, [&](Expr row) { return slice(k - 1, k, row, -1); }, filters);
  }
  return one(convolve(x, filters, o.bias, o.groups, g));
}

// clang-format off
constexpr auto convolution_rows = std::to_array<OperatorRow>({
  {"", "Conv", 1, 2, 3, Takes::floats, lower_convolution,
   "filters against windows of the image, 1 to 3 spatial dimensions, groups; a function, since windows, groups and bias nest by rank"},
  {"", "ConvTranspose", 1, 2, 3, Takes::floats, lower_transposed_convolution,
   "a convolution over the image spread by zeros, kernel reversed; a function, since windows, groups and bias nest by rank"},
});
// clang-format on

}  // namespace

Result<Expr> convolution(const OperatorContext& c, Expr x, Expr filters, Expr bias, const Arithmetic& arithmetic) {
  HOIST_TRY(Operands o, convolution_operands(c, x, filters, bias, false));
  HOIST_TRY(Geometry g, window_geometry(c, o.spatial, o.kernel));
  return convolve(o.x, o.filters, o.bias, o.groups, g, arithmetic);
}

std::span<const OperatorRow> convolution_operators() { return convolution_rows; }

}  // namespace hoist::operators
