// Windows over the spatial dimensions of an array, for convolution and pooling: their positions by ONNX's attributes,
// the views that collect them, and the forms for them in texts.
#include "ir/operators/definitions/windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace hoist::operators {
namespace {

// One entry for each spatial dimension.
struct Geometry {
  Shape kernel, strides, dilations;
  Shape begin, end;  // padding that the model states
  Shape reach;       // padding at the end that the last window needs; with ceil_mode it may exceed `end`
  Shape out;         // number of windows

  int64_t span(size_t i) const { return (kernel[i] - 1) * dilations[i] + 1; }
};

// The spatial extents of [N][C][spatial...].
Result<Shape> spatial_extents(Expr x) {
  const Sizes sizes = sizes_of(x->type);
  if (sizes.size() < 3 || sizes.size() > 5) {
    return fault(fmt::format("the input has to be [N][C] and 1 to 3 spatial dimensions, found {}", text(sizes)));
  }
  Shape spatial;
  for (size_t i = 2; i < sizes.size(); ++i) spatial.push_back(sizes[i].value());
  return spatial;
}

// From auto_pad, dilations, pads, strides and, if requested, ceil_mode.
Result<Geometry> window_geometry(const OperatorContext& c, const Shape& spatial, const Shape& kernel) {
  Geometry g;
  size_t dimensions = spatial.size();
  g.kernel = kernel;
  HOIST_TRY(g.strides, integers_attribute(c, "strides", Shape(dimensions, 1)));
  HOIST_TRY(g.dilations, integers_attribute(c, "dilations", Shape(dimensions, 1)));
  HOIST_TRY(Shape pads, integers_attribute(c, "pads", Shape(2 * dimensions, 0)));
  HOIST_TRY(std::string automatic,
            choice_attribute(c, "auto_pad", "NOTSET", {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER", ""}));
  HOIST_TRY(int64_t ceiling, integer_attribute(c, "ceil_mode", 0));
  struct Part {
    const char* name;
    const Shape* values;
    size_t count;
    int64_t least;
  };
  for (const Part& p : {Part{"kernel_shape", &g.kernel, dimensions, 1}, Part{"strides", &g.strides, dimensions, 1},
                        Part{"dilations", &g.dilations, dimensions, 1}, Part{"pads", &pads, 2 * dimensions, 0}}) {
    if (p.values->size() != p.count) {
      return fault(fmt::format("{} has {} values for {} spatial dimensions", p.name, p.values->size(), dimensions));
    }
    for (int64_t v : *p.values) {
      if (v < p.least || v > INT32_MAX)
        return fault(fmt::format("{} holds {}, expected at least {}", p.name, v, p.least));
    }
  }
  for (size_t i = 0; i < dimensions; ++i) {
    int64_t n = spatial[i], stride = g.strides[i], span = g.span(i), begin = 0, end = 0;
    if (automatic == "NOTSET" || automatic.empty()) {
      begin = pads[i], end = pads[dimensions + i];
    } else if (automatic != "VALID") {
      int64_t total = std::max<int64_t>(((n + stride - 1) / stride - 1) * stride + span - n, 0);
      begin = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
      end = total - begin;
    }
    int64_t room = n + begin + end - span;
    // With ceil_mode the last window, even if it is the only one, may extend beyond the input.
    if (room < 0 && (ceiling == 0 || room <= -stride)) {
      return fault(fmt::format("a window of {} elements does not fit into {} in spatial dimension {}", span,
                               n + begin + end, i));
    }
    int64_t out = (ceiling != 0 ? (room + stride - 1) / stride : room / stride) + 1;
    // A window that would start in the padding after the input is left out.
    if (ceiling != 0 && (out - 1) * stride >= n + begin) --out;
    if (out < 1) return fault(fmt::format("no window starts within {} elements of spatial dimension {}", n + begin, i));
    g.begin.push_back(begin);
    g.end.push_back(end);
    g.out.push_back(out);
    g.reach.push_back(std::max<int64_t>((out - 1) * stride + span - n - begin, 0));
  }
  HOIST_TRY_VOID(check_extents(g.out));
  return g;
}

// Adds the border around the spatial dimensions, which begin at `axis`. Elements after the last window are not padded:
// slide leaves them out.
Expr bordered(Expr x, int64_t axis, const Geometry& g, Expr border) {
  for (size_t i = 0; i < g.kernel.size(); ++i) {
    x = map_at(
        static_cast<int>(axis + static_cast<int64_t>(i)),
        [&](Expr row) { return pad_with(g.begin[i], g.reach[i], border, row); }, x);
  }
  return x;
}

// [lead...][spatial...] to [out...][lead...][kernel...]: slides and one transpose, no data moved.
Expr slides(Expr x, int64_t lead, const Shape& kernel, const Shape& strides, const Shape& dilations) {
  const size_t dimensions = kernel.size();
  for (size_t i = 0; i < dimensions; ++i) {
    int64_t axis = lead + 2 * static_cast<int64_t>(i);
    x = map_at(
        static_cast<int>(axis), [&](Expr row) { return slide(kernel[i], strides[i], dilations[i], row); }, x);
  }
  // [lead...][out0][k0][out1][k1]...
  Shape permutation;
  for (size_t i = 0; i < dimensions; ++i) permutation.push_back(lead + 2 * static_cast<int64_t>(i));
  for (int64_t i = 0; i < lead; ++i) permutation.push_back(i);
  for (size_t i = 0; i < dimensions; ++i) permutation.push_back(lead + 2 * static_cast<int64_t>(i) + 1);
  return permute(permutation, x);
}

// The windows of a plane within its border.
Expr plane_windows(Expr plane, const Geometry& g, Expr border) {
  return slides(bordered(plane, 0, g, border), 0, g.kernel, g.strides, g.dilations);
}

// The number of elements that count in each window of a dimension: elements inside the input, or inside input and
// padding.
Shape counts_along(const Geometry& g, size_t i, int64_t n, bool with_padding) {
  Shape counts;
  int64_t low = with_padding ? 0 : g.begin[i];
  int64_t high = with_padding ? g.begin[i] + n + g.end[i] : g.begin[i] + n;
  for (int64_t o = 0; o < g.out[i]; ++o) {
    int64_t count = 0;
    for (int64_t k = 0; k < g.kernel[i]; ++k) {
      int64_t place = o * g.strides[i] + k * g.dilations[i];
      count += place >= low && place < high;
    }
    counts.push_back(count);
  }
  return counts;
}

struct Windowed {
  Shape kernel;
  Geometry geometry;
};

Result<Windowed> windows_of(const FormCall& c, Expr x) {
  Windowed w;
  HOIST_TRY(Shape spatial, spatial_extents(x));
  if (!has_attribute(c.context, "kernel_shape")) return fault("attribute kernel_shape is missing");
  HOIST_TRY(w.kernel, integers_attribute(c.context, "kernel_shape", {}));
  HOIST_TRY(w.geometry, window_geometry(c.context, spatial, w.kernel));
  return w;
}

// windows border... f x...: f applied to each window of all arrays, plane by plane. Each array has its own border; the
// attributes give the positions of the windows.
Result<Expr> form_windows(const FormCall& c) {
  const size_t count = c.count() / 2;
  HOIST_TRY_VOID(c.want(2 * count + 1));
  std::vector<Expr> arrays, borders;
  for (size_t i = 0; i < count; ++i) {
    HOIST_TRY(Expr x, c.value(count + 1 + i));
    HOIST_TRY(Expr border, c.value(i, element_type(x)));
    arrays.push_back(x), borders.push_back(border);
  }
  HOIST_TRY(Windowed w, windows_of(c, arrays[0]));
  std::vector<Type> rows;
  for (Expr x : arrays) rows.push_back(row_type(product(w.kernel), x));
  HOIST_TRY(Expr f, c.function(count, rows));
  return map_zip_at(2, arrays, [&](const std::vector<Expr>& planes) {
    std::vector<Expr> views;
    for (size_t i = 0; i < count; ++i) views.push_back(plane_windows(planes[i], w.geometry, borders[i]));
    return map_zip_at(static_cast<int64_t>(w.kernel.size()), views, [&](const std::vector<Expr>& parts) {
      std::vector<Expr> flat;
      for (Expr part : parts) flat.push_back(flatten(part));
      return hoist::apply(f, flat);
    });
  });
}

// counted_windows border with_padding f x: f of the elements of each window and the number of them that count, which is
// a constant if it is the same for all windows.
Result<Expr> form_counted_windows(const FormCall& c) {
  HOIST_TRY_VOID(c.want(4));
  HOIST_TRY(Expr x, c.value(3));
  HOIST_TRY(Expr border, c.value(0, element_type(x)));
  HOIST_TRY(int64_t with_padding, c.integer(1));
  HOIST_TRY(Windowed w, windows_of(c, x));
  const Geometry& g = w.geometry;
  const Scalar scalar = wide_float(element_of(x));
  HOIST_TRY(Expr f, c.function(2, {row_type(product(w.kernel), x), scalar_type(scalar)}));
  int64_t entries = 1;
  for (size_t i = 0; i < g.out.size(); ++i) {
    if (g.out[i] > most_table_entries / entries || g.out[i] > most_table_entries / g.kernel[i]) {
      return fault(fmt::format("{} windows, at most {} are supported", text(g.out), most_table_entries));
    }
    entries *= g.out[i];
  }
  const Shape shape = extents(x);
  Tensor counts(scalar, {1});
  counts.set_float(0, 1);
  for (size_t i = 0; i < g.kernel.size(); ++i) {  // the outer product of the counts along each dimension
    const Shape along = counts_along(g, i, shape[i + 2], with_padding != 0);
    Tensor next(scalar, {counts.size() * g.out[i]});
    for (int64_t k = 0; k < next.size(); ++k) {
      next.set_float(k, counts.float_at(k / g.out[i]) * static_cast<double>(along[static_cast<size_t>(k % g.out[i])]));
    }
    counts = next;
  }
  bool uniform = true;
  for (int64_t k = 0; k < counts.size(); ++k) uniform = uniform && counts.float_at(k) == counts.float_at(0);
  const auto depth = static_cast<int64_t>(g.out.size());
  // As for convolutions the border goes around all images at once.
  const Expr images = bordered(x, 2, g, border);
  const auto windows = [&](Expr plane) { return slides(plane, 0, g.kernel, g.strides, g.dilations); };
  if (uniform) {
    const Expr count = literal(scalar, counts.size() > 0 ? counts.float_at(0) : 1);
    return map_at(
        2,
        [&](Expr plane) {
          return map_at(
              static_cast<int>(depth),
              [&](Expr window) {
                return hoist::apply(f, {flatten(window), count});
              },
              windows(plane));
        },
        images);
  }
  const Expr divisors = constant(counts.reshaped(g.out));
  return map_at(
      2,
      [&](Expr plane) {
        return map_zip_at(depth, {windows(plane), divisors}, [&](const std::vector<Expr>& parts) {
          return hoist::apply(f, {flatten(parts[0]), parts[1]});
        });
      },
      images);
}

// places_in_planes order x: the positions of the elements of x, flat and row-major, or with the spatial dimensions
// reversed if the order is 1.
Result<Expr> form_places_in_planes(const FormCall& c) {
  HOIST_TRY_VOID(c.want(2));
  HOIST_TRY(Expr x, c.value(1));
  HOIST_TRY(int64_t column_major, c.integer(0));
  const Shape shape = extents(x);
  Expr flat = iota(product(shape), Scalar::i64);
  if (column_major == 0 || shape.size() < 2) return reshape(flat, shape);
  Shape reversed = shape;
  std::reverse(reversed.begin() + 2, reversed.end());
  Shape permutation = {0, 1};
  for (size_t i = shape.size(); i-- > 2;) permutation.push_back(static_cast<int64_t>(i));
  return permute(permutation, reshape(flat, reversed));
}

// margins border kernel x: x with the border around its spatial dimensions in which windows of the kernel's extents
// lie, as given by the attributes. The border goes around all images at once, as a term of x alone, so that x may be
// stored with it (storage.h).
Result<Expr> form_margins(const FormCall& c) {
  HOIST_TRY_VOID(c.want(3));
  HOIST_TRY(Expr x, c.value(2));
  HOIST_TRY(Expr border, c.value(0, element_type(x)));
  HOIST_TRY(Shape kernel, c.integers(1));
  HOIST_TRY(Shape spatial, spatial_extents(x));
  HOIST_TRY(Geometry g, window_geometry(c.context, spatial, kernel));
  return bordered(x, 2, g, border);
}

// patches kernel strides dilations x: the windows of all channels, [out...][channels][kernel...], of x with its spatial
// dimensions after the channels. One number, or an attribute that is left out, applies to all dimensions.
Result<Expr> form_patches(const FormCall& c) {
  HOIST_TRY_VOID(c.want(4));
  HOIST_TRY(Expr x, c.value(3));
  HOIST_TRY(Shape kernel, c.integers(0));
  const size_t dimensions = kernel.size();
  const Shape shape = extents(x);
  std::array<Shape, 2> steps;
  for (size_t k = 0; k < 2; ++k) {
    steps[k] = {1};
    if (!c.is_absent(k + 1)) {
      HOIST_TRY(steps[k], c.integers(k + 1));
    }
    if (steps[k].size() == 1) steps[k].resize(dimensions, steps[k][0]);
    if (steps[k].size() != dimensions || shape.size() != dimensions + 1)
      return fault(fmt::format("windows of {} over {}", text(kernel), text(shape)));
    for (int64_t step : steps[k]) {
      if (step < 1) return fault(fmt::format("windows with a stride of {}", step));
    }
  }
  const auto& [strides, dilations] = steps;
  Shape out;
  for (size_t i = 0; i < dimensions; ++i) {
    const int64_t span = (kernel[i] - 1) * dilations[i] + 1, n = shape[i + 1];
    if (span > n) return fault(fmt::format("a window of {} elements does not fit into {}", span, n));
    out.push_back((n - span) / strides[i] + 1);
  }
  HOIST_TRY_VOID(check_extents(out));
  return slides(x, 1, kernel, strides, dilations);
}

constexpr auto forms_of_windows = std::to_array<Form>({
    {"windows", form_windows},
    {"counted_windows", form_counted_windows},
    {"places_in_planes", form_places_in_planes},
    {"margins", form_margins},
    {"patches", form_patches},
});

}  // namespace

std::span<const Form> window_forms() { return forms_of_windows; }

}  // namespace hoist::operators
