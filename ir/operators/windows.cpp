#include "ir/operators/windows.h"

#include <fmt/format.h>

#include <algorithm>

namespace hoist::operators {

Result<Shape> spatial_extents(Expr x) {
  Shape shape = extents(x);
  if (shape.size() < 3 || shape.size() > 5) {
    return fault(fmt::format("the input has to be [N][C] and 1 to 3 spatial dimensions, found {}", text(shape)));
  }
  return Shape(shape.begin() + 2, shape.end());
}

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
    // With ceil_mode the last window may reach beyond the input, also where it is the only one.
    if (room < 0 && (ceiling == 0 || room <= -stride)) {
      return fault(fmt::format("a window of {} elements does not fit into {} in spatial dimension {}", span,
                               n + begin + end, i));
    }
    int64_t out = (ceiling != 0 ? (room + stride - 1) / stride : room / stride) + 1;
    // A window that would start in the padding behind the input is left out.
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

Expr windows(Expr x, int64_t lead, const Geometry& g, Expr border) {
  size_t dimensions = g.kernel.size();
  for (size_t i = 0; i < dimensions; ++i) {
    int64_t axis = lead + static_cast<int64_t>(i);
    // What lies behind the last window is not padded: slide leaves it out.
    x = map_at(
        static_cast<int>(axis), [&](Expr row) { return pad_with(g.begin[i], g.reach[i], border, row); }, x);
  }
  for (size_t i = 0; i < dimensions; ++i) {
    int64_t axis = lead + 2 * static_cast<int64_t>(i);
    x = map_at(
        static_cast<int>(axis), [&](Expr row) { return slide(g.kernel[i], g.strides[i], g.dilations[i], row); }, x);
  }
  // [lead...][out0][k0][out1][k1]...
  Shape permutation;
  for (size_t i = 0; i < dimensions; ++i) permutation.push_back(lead + 2 * static_cast<int64_t>(i));
  for (int64_t i = 0; i < lead; ++i) permutation.push_back(i);
  for (size_t i = 0; i < dimensions; ++i) permutation.push_back(lead + 2 * static_cast<int64_t>(i) + 1);
  return permute(permutation, x);
}

}  // namespace hoist::operators
