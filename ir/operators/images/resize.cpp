// Resize. Everything about positions is known at compile time: along each axis an output element is a
// weighted sum of a few elements of the input, with tables of positions and weights; the nearest element alone is a
// view. Axes are independent, so they are resized one after the other.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "ir/operators/definitions/precision.h"
#include "ir/operators/definitions/support.h"
#include "ir/operators/families.h"

namespace hoist::operators {
namespace {

enum class Interpolation : uint8_t { nearest, linear, cubic };

struct Settings {
  Interpolation interpolation = Interpolation::nearest;
  std::string coordinates = "half_pixel", rounding = "round_prefer_floor";
  double cubic_coefficient = -0.75, extrapolation = 0;
  bool exclude_outside = false, antialias = false;
};

/// One axis: n elements become `out`, `scale` times as many before rounding; the crop is [low, high] of the axis.
struct Axis {
  int64_t axis = 0, n = 0, out = 0;
  double scale = 1, low = 0, high = 1;
};

/// The position of output element i among the input's elements.
double raw_position(const Settings& s, const Axis& a, int64_t i) {
  auto x = static_cast<double>(i), n = static_cast<double>(a.n);
  double width = a.scale * n;
  if (s.coordinates == "align_corners") return width == 1 ? 0 : x * (n - 1) / (width - 1);
  if (s.coordinates == "asymmetric") return x / a.scale;
  if (s.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / a.scale;
  if (s.coordinates == "tf_crop_and_resize") {
    double span = (a.high - a.low) * (n - 1);
    return a.low * (n - 1) + (width == 1 ? span / 2 : x * span / (width - 1));
  }
  double half_pixel = (x + 0.5) / a.scale - 0.5;
  if (s.coordinates == "pytorch_half_pixel") return width == 1 ? -0.5 : half_pixel;
  // n / 2 * (1 - out / width) + half_pixel, in a form that is exact for integer positions.
  if (s.coordinates == "half_pixel_symmetric")
    return (n - 1) / 2 + (x + 0.5 - static_cast<double>(a.out) / 2) / a.scale;
  return half_pixel;
}

// The same, clamped to the range of integers: crops come from models and may have any value.
double source_position(const Settings& s, const Axis& a, int64_t i) {
  constexpr double far = 1e15;
  double x = raw_position(s, a, i);
  return std::isnan(x) ? far : std::clamp(x, -far, far);
}

bool outside(const Settings& s, const Axis& a, double x) {
  return s.coordinates == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(a.n - 1));
}

int64_t nearest_position(const Settings& s, const Axis& a, double x) {
  double p = s.rounding == "floor"               ? std::floor(x)
             : s.rounding == "ceil"              ? std::ceil(x)
             : s.rounding == "round_prefer_ceil" ? std::floor(x + 0.5)
                                                 : std::ceil(x - 0.5);
  return static_cast<int64_t>(std::clamp(p, 0.0, static_cast<double>(a.n - 1)));
}

/// The weight of an element at a distance from the sampled position.
double kernel_weight(const Settings& s, double distance) {
  double d = std::abs(distance), c = s.cubic_coefficient;
  if (s.interpolation == Interpolation::linear) return std::max(1 - d, 0.0);
  if (d <= 1) return ((c + 2) * d - (c + 3)) * d * d + 1;
  return d < 2 ? ((c * d - 5 * c) * d + 8 * c) * d - 4 * c : 0;
}

struct Taps {
  int64_t count = 0;  ///< for each output element
  std::vector<int64_t> positions;
  std::vector<double> weights;
};

Taps taps_of(const Settings& s, const Axis& a) {
  double shrink = s.antialias ? std::min(a.scale, 1.0) : 1.0;  // a wider kernel if the axis shrinks
  auto reach = static_cast<int64_t>(std::ceil((s.interpolation == Interpolation::linear ? 1 : 2) / shrink));
  Taps taps;
  taps.count = 2 * reach;
  for (int64_t i = 0; i < a.out; ++i) {
    double x = source_position(s, a, i), total = 0;
    auto first = static_cast<int64_t>(std::floor(x)) - reach + 1;
    size_t begin = taps.weights.size();
    for (int64_t k = first; k < first + taps.count; ++k) {
      double weight = kernel_weight(s, (static_cast<double>(k) - x) * shrink);
      if (s.exclude_outside && (k < 0 || k >= a.n)) weight = 0;
      total += weight;
      taps.positions.push_back(std::clamp<int64_t>(k, 0, a.n - 1));
      taps.weights.push_back(weight);
    }
    bool normalise = (s.exclude_outside || s.antialias) && total != 0;
    for (size_t k = begin; normalise && k < taps.weights.size(); ++k) taps.weights[k] /= total;
  }
  return taps;
}

// A row of nearest elements: repeated elements, a strided slice, or a look-up by a table.
Expr nearest_row(const Settings& s, const Axis& a, Expr row) {
  Shape places;
  for (int64_t i = 0; i < a.out; ++i) places.push_back(nearest_position(s, a, source_position(s, a, i)));
  auto all = [&](auto matches) {
    for (int64_t i = 0; i < a.out; ++i) {
      if (places[static_cast<size_t>(i)] != matches(i)) return false;
    }
    return true;
  };
  int64_t times = a.out / a.n;
  if (times > 1 && times * a.n == a.out && all([&](int64_t i) { return i / times; })) {
    return join(map([&](Expr element) { return repeat(times, element); }, row));
  }
  int64_t step = a.out > 1 ? places[1] - places[0] : 1;
  if (step >= 1 && all([&](int64_t i) { return places[0] + i * step; })) return slice(places[0], a.out, row, step);
  return map([&](Expr i) { return index(i, row); }, constant(Tensor::of(Scalar::i32, {a.out}, places)));
}

// A row by weighted sums; its elements may have any rank, and all other dimensions are outside.
Expr weighted_row(const Settings& s, const Axis& a, Expr row) {
  const Scalar within = element_of(row);
  Taps taps = taps_of(s, a);
  Expr places = constant(Tensor::of(Scalar::i32, {a.out, taps.count}, taps.positions));
  Expr weights = constant(Tensor::of(within, {a.out, taps.count}, taps.weights));
  return map_zip({places, weights}, [&](const std::vector<Expr>& p) {
    return sum(map([&](Expr t) { return operator_multiply(index(get(0, t), row), get(1, t)); }, zip({p[0], p[1]})));
  });
}

Expr resized(const Settings& s, const Axis& a, Expr x) {
  if (a.n == a.out && a.scale == 1 && s.coordinates != "tf_crop_and_resize") return x;
  if (a.out == 0)
    return map_at(
        static_cast<int>(a.axis), [](Expr row) { return slice(0, 0, row); }, x);
  if (s.interpolation == Interpolation::nearest) {
    x = map_at(
        static_cast<int>(a.axis), [&](Expr row) { return nearest_row(s, a, row); }, x);
  } else {
    x = map_rows(x, a.axis, [&](Expr row) { return weighted_row(s, a, row); });
  }
  std::vector<int64_t> lost;
  for (int64_t i = 0; i < a.out; ++i) lost.push_back(outside(s, a, source_position(s, a, i)));
  if (std::count(lost.begin(), lost.end(), 1) == 0) return x;
  Expr beyond = constant(Tensor::of(Scalar::boolean, {a.out}, lost)), value = literal(element_of(x), s.extrapolation);
  return map_rows(x, a.axis, [&](Expr row) {
    return map_zip({row, beyond}, [&](const std::vector<Expr>& p) { return select(p[1], value, p[0]); });
  });
}

// Truncates to an integer, after a small increase in magnitude: rounded weights may leave a value just below an
// integer.
Expr truncated(Scalar scalar, Expr value) {
  const double slack = truncation_slack(value->type->scalar);
  const Number v = value;
  return cast(scalar, choose(v < 0.0, v - slack, v + slack).e);
}

Expr each_element(Expr x, const std::function<Expr(Expr)>& f) { return map_at(static_cast<int>(rank_of(x)), f, x); }

Lowered resize_all(const Settings& s, Expr x, const std::vector<Axis>& axes) {
  Shape shape = extents(x);
  for (const Axis& a : axes) {
    if (!(a.scale > 0) || !std::isfinite(a.scale))
      return fault(fmt::format("the scale of axis {} is {}", a.axis, a.scale));
    if (a.n == 0 && a.out > 0) return fault(fmt::format("axis {} has no elements to resize", a.axis));
    shape[static_cast<size_t>(a.axis)] = a.out;
  }
  HOIST_TRY_VOID(check_extents(shape));
  double widest = 0;
  for (const Axis& a : axes)
    widest = std::max(widest, static_cast<double>(a.out) * (s.antialias ? 4 / std::min(a.scale, 1.0) : 4));
  if (widest > static_cast<double>(most_table_entries)) {
    return fault(
        fmt::format("an axis needs a table of {:.0f} positions, at most {} are supported", widest, most_table_entries));
  }
  const Scalar scalar = element_of(x),
               within = s.interpolation == Interpolation::nearest ? scalar : interpolation_scalar(scalar);
  if (within != scalar) x = each_element(x, [&](Expr v) { return convert(within, v); });
  for (const Axis& a : axes) x = resized(s, a, x);
  if (within == scalar) return one(x);
  return one(each_element(x, [&](Expr v) { return is_float(scalar) ? convert(scalar, v) : truncated(scalar, v); }));
}

Result<Interpolation> interpolation_of(const OperatorContext& c) {
  HOIST_TRY(std::string mode, choice_attribute(c, "mode", "nearest", {"nearest", "linear", "cubic"}));
  return mode == "nearest" ? Interpolation::nearest : mode == "cubic" ? Interpolation::cubic : Interpolation::linear;
}

// floor(n * scale), unless that is beyond any array.
int64_t scaled(int64_t n, double scale) {
  double out = std::floor(static_cast<double>(n) * scale);
  return out >= 0 && out <= static_cast<double>(most_elements) ? static_cast<int64_t>(out) : -1;
}

Result<std::vector<Axis>> axes_by_scales(Expr x, const Shape& axes, const std::vector<double>& scales) {
  if (scales.size() != axes.size()) return fault(fmt::format("{} scales for {} axes", scales.size(), axes.size()));
  Shape shape = extents(x);
  std::vector<Axis> out;
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t n = shape[static_cast<size_t>(axes[i])];
    out.push_back({axes[i], n, scaled(n, scales[i]), scales[i], 0, 1});
  }
  return out;
}

Result<std::vector<Axis>> axes_by_sizes(const OperatorContext& c, const Shape& axes) {
  HOIST_TRY(Shape sizes, constant_integers(c, 3, "sizes"));
  HOIST_TRY(std::string policy,
            choice_attribute(c, "keep_aspect_ratio_policy", "stretch", {"stretch", "not_larger", "not_smaller"}));
  Shape shape = extents(c.inputs[0]);
  if (sizes.size() != axes.size()) return fault(fmt::format("{} sizes for {} axes", sizes.size(), axes.size()));
  std::vector<Axis> out;
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t n = shape[static_cast<size_t>(axes[i])];
    if (n == 0) return fault(fmt::format("axis {} has no elements to resize", axes[i]));
    out.push_back({axes[i], n, sizes[i], static_cast<double>(sizes[i]) / static_cast<double>(n), 0, 1});
  }
  if (policy == "stretch" || out.empty()) return out;
  double scale = out[0].scale;
  for (const Axis& a : out) scale = policy == "not_larger" ? std::min(scale, a.scale) : std::max(scale, a.scale);
  for (Axis& a : out) {
    a.scale = scale;
    a.out = scaled(1, static_cast<double>(a.n) * scale + 0.5);
  }
  return out;
}

Lowered lower_resize(const OperatorContext& c) {
  Expr x = c.inputs[0];
  Settings s;
  HOIST_TRY(s.interpolation, interpolation_of(c));
  HOIST_TRY(s.coordinates,
            choice_attribute(c, "coordinate_transformation_mode", "half_pixel",
                             {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
                              "tf_crop_and_resize", "tf_half_pixel_for_nn"}));
  HOIST_TRY(s.rounding, choice_attribute(c, "nearest_mode", "round_prefer_floor",
                                         {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}));
  HOIST_TRY(s.cubic_coefficient, float_attribute(c, "cubic_coeff_a", -0.75));
  HOIST_TRY(s.extrapolation, float_attribute(c, "extrapolation_value", 0));
  HOIST_TRY(int64_t exclude, integer_attribute(c, "exclude_outside", 0));
  HOIST_TRY(int64_t antialias, integer_attribute(c, "antialias", 0));
  s.exclude_outside = exclude != 0, s.antialias = antialias != 0;
  Shape axes;
  for (int64_t i = 0; i < rank_of(x); ++i) axes.push_back(i);
  HOIST_TRY(axes, integers_attribute(c, "axes", axes));
  HOIST_TRY_VOID(normalise_axes(axes, rank_of(x)));
  for (int64_t& a : axes) a = a < 0 ? a + rank_of(x) : a;
  std::vector<Axis> along;
  bool by_sizes = false;  // an empty list means an absent one
  if (is_given(c, 3, "sizes")) {
    HOIST_TRY(const Tensor sizes, constant_input(c, 3, "sizes"));
    by_sizes = sizes.size() > 0;
  }
  if (by_sizes) {
    HOIST_TRY(along, axes_by_sizes(c, axes));
  } else {
    HOIST_TRY(auto scales, constant_floats(c, 2, "scales"));
    HOIST_TRY(along, axes_by_scales(x, axes, scales));
  }
  if (s.coordinates == "tf_crop_and_resize") {
    HOIST_TRY(auto crop, constant_floats(c, 1, "roi"));
    if (crop.size() != 2 * axes.size())
      return fault(fmt::format("roi has {} values for {} axes", crop.size(), axes.size()));
    for (size_t i = 0; i < along.size(); ++i) along[i].low = crop[i], along[i].high = crop[axes.size() + i];
  }
  return resize_all(s, x, along);
}

// clang-format off
constexpr auto resize_rows = std::to_array<OperatorRow>({
  {"", "Resize", 11, 1, 4, Takes::numbers, lower_resize,
   "nearest elements, or sums weighted linearly or cubically; in C++, since positions and weights come from tables", -2, 2, "1 roi, 2 scales, 3 sizes"},
});
// clang-format on

}  // namespace

std::span<const OperatorRow> resize_operators() { return resize_rows; }

}  // namespace hoist::operators
