// Samples of arrays at data-dependent positions: between elements, and under kernels whose taps move. The operators are
// C++ functions, because weights and adjacent elements follow from arithmetic on extents and data. No position leads
// outside an array.
#include <fmt/format.h>

#include <array>

#include "ir/operators/definitions/support.h"
#include "ir/operators/families.h"

namespace hoist::operators {
namespace {

Number rounded(Number x) { return apply(Function::round, x); }
Number as(Scalar scalar, const Number& x) { return x.e == nullptr ? x : Number(convert(scalar, x.e)); }

// ---- One place -----------------------------------------------------------------------------------------------------

enum class Outside : uint8_t { zeros, border, reflection };
enum class Between : uint8_t { nearest, linear, cubic };

// The sampling of arrays with this number of spatial extents.
struct Sampler {
  Shape extents;
  Outside outside = Outside::zeros;
  Between between = Between::linear;
  bool corners = true;  // positions -1 and 1 are the centres of the outermost elements, not their edges
  Scalar place = Scalar::f32, value = Scalar::f32;

  double low() const { return corners ? 0.0 : -0.5; }
  double high(size_t axis) const { return static_cast<double>(extents[axis]) - (corners ? 1.0 : 0.5); }

  // Reflects a position between the borders.
  Number reflected(const Number& x, size_t axis) const {
    const double range = high(axis) - low();
    if (range == 0) return x * 0.0;
    const Number distance = abs(x - low()), times = floor(distance / range), rest = distance - times * range;
    const Number half = times / 2.0;
    return choose(half == floor(half), rest + low(), Number(high(axis)) - rest);
  }

  // A position clamped near the array, so that its conversion to an integer stays small.
  Number bounded(const Number& x, size_t axis) const {
    const double far = 4;  // beyond the reach of any weight
    if (outside == Outside::zeros) return min(max(x, -far), static_cast<double>(extents[axis]) + far);
    const Number inside =
        outside == Outside::border ? min(max(x, 0.0), static_cast<double>(extents[axis] - 1)) : reflected(x, axis);
    return choose((x < low()) | (x > high(axis)), inside, x);
  }

  // The element at an integer position, which may be out of range.
  Expr element(Expr plane, const std::vector<Number>& at) const {
    Number inside = literal_integer(Scalar::boolean, 1);
    for (size_t axis = 0; axis < at.size(); ++axis) {
      Number i = at[axis];
      if (outside == Outside::reflection) i = apply(Function::truncate, reflected(i, axis));
      if (outside == Outside::zeros) inside = inside & (i >= 0.0) & (i <= static_cast<double>(extents[axis] - 1));
      const Number near = min(max(i, 0.0), static_cast<double>(extents[axis] - 1));
      plane = index(clamped_position(convert(Scalar::i32, near.e), extents[axis]), plane);
    }
    return outside == Outside::zeros ? choose(inside, plane, zero(element_of(plane))).e : plane;
  }

  std::vector<Number> weights(const Number& f) const {
    if (between == Between::linear) return {1.0 - f, f};
    constexpr double a = -0.75;
    const auto outer = [&](const Number& d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
    const auto inner = [&](const Number& d) { return ((a + 2) * d - (a + 3)) * d * d + 1.0; };
    return {outer(f + 1.0), inner(f), inner(1.0 - f), outer(2.0 - f)};
  }

  // The value at a position with one coordinate per axis, first axis first.
  Expr at(Expr plane, const std::vector<Number>& place_of) const {
    if (between == Between::nearest) {
      std::vector<Number> whole;
      for (size_t axis = 0; axis < place_of.size(); ++axis) whole.push_back(bounded(rounded(place_of[axis]), axis));
      return element(plane, whole);
    }
    return along(plane, place_of, {});
  }

 private:
  // The sum over the elements around the position along the remaining axes.
  Expr along(Expr plane, const std::vector<Number>& place_of, const std::vector<Number>& found) const {
    const size_t axis = found.size();
    if (axis == place_of.size()) return convert(value, element(plane, found));
    return let(bounded(place_of[axis], axis).e, [&](Expr x) {
      const Number first = floor(x);
      const std::vector<Number> factors = weights(Number(x) - first);
      Number total = 0.0;
      for (size_t i = 0; i < factors.size(); ++i) {
        std::vector<Number> next = found;
        next.push_back(first + (static_cast<double>(i) - (between == Between::cubic ? 1.0 : 0.0)));
        const Number part = as(value, factors[i]) * along(plane, place_of, next);
        total = i == 0 ? part : total + part;
      }
      return total.e;
    });
  }
};

Scalar wider_of(Scalar a, Scalar b) { return row(a).bits < row(b).bits ? b : a; }

// ---- GridSample ----------------------------------------------------------------------------------------------------

Lowered lower_grid_sample(const OperatorContext& c) {
  Expr x = c.inputs[0], grid = c.inputs[1];
  const Shape shape = extents(x), places = extents(grid);
  if (shape.size() < 3 || places.size() != shape.size())
    return fault(
        fmt::format("the input {} and the grid {} have to be of the same rank, at least 3", text(shape), text(places)));
  const size_t dimensions = shape.size() - 2;
  if (places[0] != shape[0] || places.back() != static_cast<int64_t>(dimensions))
    return fault(fmt::format("the grid is {}, expected [{}], extents of the result and [{}]", text(places), shape[0],
                             dimensions));
  if (dimensions > 3) return fault(fmt::format("{} spatial dimensions, at most 3 are supported", dimensions));
  if (!is_float(element_of(grid))) return fault("the grid has to be of floats");
  HOIST_TRY(std::string mode, choice_attribute(c, "mode", "linear", {"linear", "nearest", "cubic"}));
  HOIST_TRY(std::string padding, choice_attribute(c, "padding_mode", "zeros", {"zeros", "border", "reflection"}));
  HOIST_TRY(int64_t corners, integer_attribute(c, "align_corners", 0));
  Sampler sampler;
  sampler.extents.assign(shape.begin() + 2, shape.end());
  for (int64_t n : sampler.extents) {
    if (n == 0 && product(places) > 0) return fault(fmt::format("the input {} has no elements to sample", text(shape)));
  }
  sampler.between = mode == "nearest" ? Between::nearest : mode == "linear" ? Between::linear : Between::cubic;
  sampler.outside = padding == "zeros" ? Outside::zeros : padding == "border" ? Outside::border : Outside::reflection;
  sampler.corners = corners != 0;
  const Scalar scalar = element_of(x);
  if (sampler.between != Between::nearest && !is_float(scalar))
    return fault(fmt::format("the input is {}, and only floats can be interpolated", row(scalar).name));
  sampler.place = wide_float(element_of(grid));
  sampler.value = is_float(scalar) ? wider_of(wide_float(scalar), sampler.place) : scalar;
  // The last coordinate of a position belongs to the first axis.
  const auto sampled = [&](Expr plane, Expr point) {
    std::vector<Number> at;
    for (size_t axis = 0; axis < dimensions; ++axis) {
      const auto n = static_cast<double>(sampler.extents[axis]);
      const Number p = convert(sampler.place, at_position(static_cast<int64_t>(dimensions - 1 - axis), point));
      at.push_back(sampler.corners ? (p + 1.0) / 2.0 * (n - 1.0) : ((p + 1.0) * n - 1.0) / 2.0);
    }
    return convert(scalar, sampler.at(plane, at));
  };
  return one(map_zip({x, grid}, [&](const std::vector<Expr>& p) {
    return map(
        [&](Expr plane) {
          return map_at(
              static_cast<int>(dimensions), [&](Expr point) { return sampled(plane, point); }, p[1]);
        },
        p[0]);
  }));
}

// ---- DeformConv ----------------------------------------------------------------------------------------------------

// A checked call: convolutions in groups of channels, whose elements of the kernel are moved in groups of channels too.
struct Deformation {
  Shape image, filters, kernel;
  int64_t group = 1, offset_group = 1;
  Shape strides, dilations, pads;
  Shape out;  // the two spatial extents of the result

  int64_t taps() const { return product(kernel); }
};

Result<Nothing> read_windows(const OperatorContext& c, Deformation& d) {
  HOIST_TRY(d.strides, integers_attribute(c, "strides", {1, 1}));
  HOIST_TRY(d.dilations, integers_attribute(c, "dilations", {1, 1}));
  HOIST_TRY(d.pads, integers_attribute(c, "pads", {0, 0, 0, 0}));
  d.kernel.assign(d.filters.begin() + 2, d.filters.end());
  HOIST_TRY(Shape named, integers_attribute(c, "kernel_shape", d.kernel));
  if (named != d.kernel)
    return fault(fmt::format("kernel_shape {} disagrees with the weights {}", text(named), text(d.filters)));
  if (d.strides.size() != 2 || d.dilations.size() != 2 || d.pads.size() != 4)
    return fault("strides, dilations and pads have to be for two spatial dimensions");
  for (const Shape* list : {&d.strides, &d.dilations, &d.pads}) {
    for (int64_t v : *list) {
      if (v < (list == &d.pads ? 0 : 1) || v > INT32_MAX) return fault(fmt::format("{} holds {}", text(*list), v));
    }
  }
  return Nothing{};
}

Result<Deformation> read_deformation(const OperatorContext& c) {
  HOIST_TRY_VOID(check_same_element(c));
  const Expr bias = input(c, 3), mask = input(c, 4);
  Deformation d;
  d.image = extents(c.inputs[0]), d.filters = extents(c.inputs[1]);
  const Shape moved = extents(c.inputs[2]);
  if (d.image.size() != 4 || d.filters.size() != 4 || moved.size() != 4)
    return fault(fmt::format("the input {}, the weights {} and the offsets {} have to be of two spatial dimensions",
                             text(d.image), text(d.filters), text(moved)));
  HOIST_TRY(d.group, integer_attribute(c, "group", 1));
  HOIST_TRY(d.offset_group, integer_attribute(c, "offset_group", 1));
  HOIST_TRY_VOID(read_windows(c, d));
  const int64_t n = d.image[0], channels = d.image[1], outputs = d.filters[0];
  if (d.group < 1 || d.offset_group < 1 || channels % d.group != 0 || outputs % d.group != 0 ||
      channels % d.offset_group != 0 || d.filters[1] * d.group != channels || product(d.filters) == 0 ||
      product(d.image) == 0)
    return fault(fmt::format("{} groups and {} of offsets do not divide the input {} and the weights {}", d.group,
                             d.offset_group, text(d.image), text(d.filters)));
  for (size_t i = 0; i < 2; ++i) {
    const int64_t room = d.image[i + 2] + d.pads[i] + d.pads[i + 2] - (d.kernel[i] - 1) * d.dilations[i] - 1;
    if (room < 0)
      return fault(fmt::format("the kernel {} does not fit into the input {}", text(d.kernel), text(d.image)));
    d.out.push_back(room / d.strides[i] + 1);
  }
  const Shape offsets = {n, d.offset_group * d.taps() * 2, d.out[0], d.out[1]};
  const Shape masks = {n, d.offset_group * d.taps(), d.out[0], d.out[1]};
  if (moved != offsets) return fault(fmt::format("the offsets are {}, expected {}", text(moved), text(offsets)));
  if (bias != nullptr && extents(bias) != Shape{outputs})
    return fault(fmt::format("the bias is {}, expected [{}]", text(extents(bias)), outputs));
  if (mask != nullptr && extents(mask) != masks)
    return fault(fmt::format("the mask is {}, expected {}", text(extents(mask)), text(masks)));
  return d;
}

// The position of each element of the kernel without its offset, before the window moves: [taps][2].
Expr places_at_rest(const Deformation& d, Scalar wide) {
  Tensor steps(wide, {d.taps(), 2});
  for (int64_t k = 0; k < d.taps(); ++k) {
    const int64_t line = k / d.kernel[1], column = k % d.kernel[1];
    steps.set_float(2 * k, static_cast<double>(line * d.dilations[0] - d.pads[0]));
    steps.set_float(2 * k + 1, static_cast<double>(column * d.dilations[1] - d.pads[1]));
  }
  return constant(steps);
}

// Each sample is computed once and read by all filters: [batch][line][column][channels][taps].
Expr moved_samples(const Deformation& d, Expr x, Expr offset, Expr mask) {
  const int64_t n = d.image[0], channels = d.image[1], taps = d.taps();
  const Scalar scalar = element_of(x), wide = wide_float(scalar);
  Sampler sampler;
  sampler.extents = {d.image[2], d.image[3]};
  sampler.place = sampler.value = wide;
  const Expr at_rest = places_at_rest(d, wide);
  // [batch][line][column][group of offsets][element of the kernel][axis]
  offset = permute({0, 4, 5, 1, 2, 3}, reshape(offset, {n, d.offset_group, taps, 2, d.out[0], d.out[1]}));
  if (mask == nullptr) mask = constant_like(scalar, {n, d.offset_group * taps, d.out[0], d.out[1]}, 1);
  mask = permute({0, 3, 4, 1, 2}, reshape(mask, {n, d.offset_group, taps, d.out[0], d.out[1]}));
  const auto start = [&](Expr place, size_t axis) {
    return Number(convert(wide, place)) * static_cast<double>(d.strides[axis]);
  };
  // [channels][taps] at one place of the result.
  const auto window = [&](Expr image, Expr offsets, Expr masks, Expr line, Expr column) {
    Expr planes = split(channels / d.offset_group, image);
    return join(map_zip({planes, offsets, masks}, [&](const std::vector<Expr>& g) {
      return map(
          [&](Expr plane) {
            return map_zip({g[1], g[2], at_rest}, [&](const std::vector<Expr>& k) {
              const auto place = [&](int64_t axis) {
                return (axis == 0 ? start(line, 0) : start(column, 1)) + at_position(axis, k[2]) +
                       convert(wide, at_position(axis, k[0]));
              };
              return (Number(sampler.at(plane, {place(0), place(1)})) * convert(wide, k[1])).e;
            });
          },
          g[0]);
    }));
  };
  return map_zip({x, offset, mask}, [&](const std::vector<Expr>& b) {
    return map_zip({b[1], b[2], iota(d.out[0], Scalar::i32)}, [&](const std::vector<Expr>& l) {
      return map_zip({l[0], l[1], iota(d.out[1], Scalar::i32)},
                     [&](const std::vector<Expr>& p) { return window(b[0], p[0], p[1], l[2], p[2]); });
    });
  });
}

Lowered lower_deform_conv(const OperatorContext& c) {
  HOIST_TRY(const Deformation d, read_deformation(c));
  const Expr x = c.inputs[0], w = c.inputs[1], bias = input(c, 3);
  const Scalar scalar = element_of(x), wide = wide_float(scalar);
  const int64_t n = d.image[0], outputs = d.filters[0];
  const int64_t places = product(d.out), summed = d.image[1] / d.group * d.taps();
  // [batch][group][its channels and taps][places]
  const Expr samples = moved_samples(d, x, c.inputs[2], input(c, 4));
  const Expr rows = reshape(in_memory(permute({0, 3, 4, 1, 2}, samples)), {n, d.group, summed, places});
  const Expr grouped = reshape(w, {d.group, outputs / d.group, summed});
  const auto dot = [&](Expr part, Expr filter) {
    return sum(
        map_zip({part, filter}, [&](const std::vector<Expr>& p) { return (Number(p[0]) * convert(wide, p[1])).e; }));
  };
  Expr result = map(
      [&](Expr groups) {
        return map_zip({groups, grouped}, [&](const std::vector<Expr>& g) {
          return map(
              [&](Expr filter) { return map([&](Expr column) { return dot(column, filter); }, transpose(g[0])); },
              g[1]);
        });
      },
      rows);
  result = reshape(result, {n, outputs, d.out[0], d.out[1]});
  const auto rounded_once = [&](const Number& total) { return convert(scalar, total.e); };
  if (bias == nullptr)
    return one(map_at(
        4, [&](Expr v) { return rounded_once(v); }, result));
  return one(map(
      [&](Expr planes) {
        return map_zip({planes, bias}, [&](const std::vector<Expr>& p) {
          return map_at(
              2, [&](Expr v) { return rounded_once(Number(v) + convert(wide, p[1])); }, p[0]);
        });
      },
      result));
}

// ---- AffineGrid ----------------------------------------------------------------------------------------------------

// Each position is an affine function of the element's place along the axes, last axis first: between -1 and 1, the
// centres of the outermost elements (align_corners) or their outer edges.
Lowered lower_affine_grid(const OperatorContext& c) {
  const Expr theta = c.inputs[0];
  const Shape t = extents(theta);
  HOIST_TRY(const auto size, integers_of(c, "size", 1));
  if (!size || (size->size() != 4 && size->size() != 5))
    return fault("size has to be the four or five extents of an image");
  const auto axes = static_cast<int64_t>(size->size()) - 2;
  if (t != Shape{size->front(), axes, axes + 1})
    return fault(fmt::format("theta is {}, expected {} for the size {}", text(t),
                             text(Shape{size->front(), axes, axes + 1}), text(*size)));
  const Shape image(size->begin() + 2, size->end());
  if (*std::min_element(size->begin(), size->end()) < 0) return fault(fmt::format("size is {}", text(*size)));
  Shape grid = image;
  grid.insert(grid.begin(), t[0]);
  grid.push_back(axes);
  HOIST_TRY_VOID(check_extents(grid));
  HOIST_TRY(const int64_t aligned, integer_attribute(c, "align_corners", 0));
  const Scalar scalar = element_of(theta), wide = wide_float(scalar);
  const auto coordinate = [&](int64_t axis, Expr i) {
    const int64_t n = image[static_cast<size_t>(axis)];
    // A single element in depth is at -1.
    const bool single = aligned != 0 && axes == 3 && axis == 0 && n == 1;
    const Number steps = literal(wide, static_cast<double>(aligned != 0 ? n - 1 : n));
    const Number step = single ? Number(literal(wide, 0)) : Number(literal(wide, 2)) / steps;
    const Number start = aligned != 0 ? Number(literal(wide, -1)) : Number(literal(wide, -1)) + step / 2.0;
    return start + Number(convert(wide, i)) * step;
  };
  const std::function<Expr(Expr, std::vector<Number>)> places = [&](Expr rows, std::vector<Number> at) -> Expr {
    const auto axis = static_cast<int64_t>(at.size());
    if (axis < axes) {
      return map(
          [&](Expr i) {
            std::vector<Number> next = at;
            next.insert(next.begin(), coordinate(axis, i));
            return places(rows, next);
          },
          iota(image[static_cast<size_t>(axis)], Scalar::i32));
    }
    return map(
        [&](Expr row) {
          const auto factor = [&](int64_t i) { return Number(convert(wide, at_position(i, row))); };
          Number sum = factor(0) * at[0];
          for (int64_t i = 1; i < axes; ++i) sum = sum + factor(i) * at[static_cast<size_t>(i)];
          return convert(scalar, (sum + factor(axes)).e);
        },
        rows);
  };
  return one(map([&](Expr rows) { return places(rows, {}); }, theta));
}

// clang-format off
constexpr auto sampling_rows = std::to_array<OperatorRow>({
  {"", "AffineGrid", 20, 2, 2, Takes::floats, lower_affine_grid,
   "the positions of an image's elements by an affine function of their indices; in C++, since the size decides the number of axes",
   -1, 1, "1 size"},
  {"", "GridSample", 20, 2, 2, Takes::anything, lower_grid_sample,
   "the values at positions between the elements; in C++, since positions come from data and their arithmetic from the extents", -1, 1},
  {"", "DeformConv", 19, 3, 5, Takes::floats, lower_deform_conv,
   "a convolution whose windows are samples at positions moved by data; in C++, since positions come from data"},
});
// clang-format on

}  // namespace

std::span<const OperatorRow> sampling_operators() { return sampling_rows; }

}  // namespace hoist::operators
