// Operators that only move elements by positions known at compile time: all of them are views.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/operators/families.h"
#include "ir/operators/support.h"

namespace hoist::operators {
namespace {

Lowered lower_transpose(const OperatorContext& c) {
  int64_t rank = rank_of(c.inputs[0]);
  Shape reversed;
  for (int64_t i = rank; i-- > 0;) reversed.push_back(i);
  HOIST_TRY(Shape permutation, integers_attribute(c, "perm", reversed));
  HOIST_TRY(Shape sorted, normalise_axes(permutation, rank));
  if (static_cast<int64_t>(sorted.size()) != rank)
    return fault(fmt::format("perm has {} values for {} dimensions", sorted.size(), rank));
  for (int64_t& p : permutation) p = p < 0 ? p + rank : p;
  return one(permute(permutation, c.inputs[0]));
}

Lowered lower_concat(const OperatorContext& c) {
  HOIST_TRY_VOID(check_same_element(c));
  HOIST_TRY(int64_t named, integer_attribute(c, "axis", 1));
  Shape first = extents(c.inputs[0]);
  HOIST_TRY(int64_t axis, normalise_axis(named, rank_of(c.inputs[0])));
  std::vector<Expr> arrays;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    if (c.inputs[i] == nullptr) return fault(fmt::format("input {} is left out", i));
    Shape shape = extents(c.inputs[i]);
    bool fits = shape.size() == first.size();
    for (size_t k = 0; fits && k < shape.size(); ++k) fits = static_cast<int64_t>(k) == axis || shape[k] == first[k];
    if (!fits)
      return fault(
          fmt::format("inputs 0 and {} do not fit along axis {}: {} and {}", i, axis, text(first), text(shape)));
    arrays.push_back(c.inputs[i]);
  }
  if (arrays.size() > 1024) return fault(fmt::format("{} inputs, at most 1024 are supported", arrays.size()));
  return one(concat_at(axis, arrays));
}

Expr slice_at(int64_t axis, int64_t start, int64_t count, Expr x, int64_t step = 1) {
  return map_at(
      static_cast<int>(axis), [&](Expr row) { return slice(start, count, row, step); }, x);
}

Lowered lower_split(const OperatorContext& c) {
  HOIST_TRY(int64_t named, integer_attribute(c, "axis", 0));
  HOIST_TRY(int64_t axis, normalise_axis(named, rank_of(c.inputs[0])));
  HOIST_TRY(auto given, integers_of(c, "split", 1));
  HOIST_TRY(int64_t parts, integer_attribute(c, "num_outputs", c.call.results));
  int64_t n = extents(c.inputs[0])[static_cast<size_t>(axis)];
  if (parts < 1 || parts > 65536) return fault(fmt::format("{} parts", parts));
  Shape counts;
  if (given) {
    counts = *given;
  } else {
    bool even_only = c.call.version < 18;
    if (even_only && n % parts != 0)
      return fault(fmt::format("{} elements do not split into {} equal parts", n, parts));
    int64_t each = (n + parts - 1) / parts;
    for (int64_t i = 0; i < parts; ++i) counts.push_back(std::clamp<int64_t>(n - i * each, 0, each));
  }
  int64_t total = 0;
  std::vector<Expr> results;
  for (int64_t count : counts) {
    if (count < 0 || count > n - total)
      return fault(fmt::format("the parts want more than the {} elements of axis {}", n, axis));
    results.push_back(slice_at(axis, count == 0 ? 0 : total, count, c.inputs[0]));
    total += count;
  }
  if (total != n) return fault(fmt::format("the parts have {} elements, axis {} has {}", total, axis, n));
  return results;
}

Lowered lower_slice(const OperatorContext& c) {
  Expr x = c.inputs[0];
  Shape shape = extents(x);
  HOIST_TRY(auto starts, integers_of(c, "starts", 1));
  HOIST_TRY(auto ends, integers_of(c, "ends", 2));
  HOIST_TRY(auto named, integers_of(c, "axes", 3));
  HOIST_TRY(auto steps, integers_of(c, "steps", 4));
  if (!starts || !ends) return fault("starts or ends are missing");
  size_t count = starts->size();
  Shape axes, all_steps = steps.value_or(Shape(count, 1));
  for (size_t i = 0; i < count; ++i) axes.push_back(static_cast<int64_t>(i));
  if (named) axes = *named;
  if (ends->size() != count || axes.size() != count || all_steps.size() != count) {
    return fault(fmt::format("starts, ends, axes and steps have {}, {}, {} and {} values", count, ends->size(),
                             axes.size(), all_steps.size()));
  }
  HOIST_TRY_VOID(normalise_axes(axes, rank_of(x)));
  for (size_t i = 0; i < count; ++i) {
    int64_t axis = axes[i] < 0 ? axes[i] + rank_of(x) : axes[i];
    int64_t n = shape[static_cast<size_t>(axis)], step = all_steps[i];
    if (step == 0) return fault(fmt::format("the step along axis {} is 0", axis));
    step = std::clamp<int64_t>(step, -n - 1, n + 1);  // beyond that the first element alone is taken
    auto place = [&](int64_t p, int64_t low, int64_t high) {
      if (p < 0) p = p < -n ? low - 1 : p + n;
      return std::clamp(p, low, high);
    };
    int64_t start = step > 0 ? place((*starts)[i], 0, n) : place((*starts)[i], -1, n - 1);
    int64_t end = step > 0 ? place((*ends)[i], 0, n) : place((*ends)[i], -1, n - 1);
    int64_t distance = step > 0 ? end - start : start - end, stride = step > 0 ? step : -step;
    int64_t taken = distance <= 0 ? 0 : (distance + stride - 1) / stride;
    x = slice_at(axis, taken == 0 ? 0 : start, taken, x, step);
  }
  return one(x);
}

// ---- Pad
// -----------------------------------------------------------------------------------------------------------------

// The element that stands at position p of a padded row of n.
int64_t padded_source(const std::string& mode, int64_t p, int64_t n) {
  if (mode == "edge") return std::clamp<int64_t>(p, 0, n - 1);
  if (mode == "wrap") return ((p % n) + n) % n;
  int64_t period = std::max<int64_t>(2 * (n - 1), 1);  // reflect
  p = ((p % period) + period) % period;
  return p < n ? p : period - p;
}

Expr padded(Expr row, const std::string& mode, int64_t before, int64_t after, Expr value) {
  int64_t n = extents(row)[0];
  if (mode == "constant") return pad_with(before, after, value, row);
  if (mode == "edge") return pad(before, after, Border::clamp, row);
  if (mode == "wrap" && before <= n && after <= n) return pad(before, after, Border::wrap, row);
  if (mode == "reflect" && before < n && after < n) return pad(before, after, Border::mirror, row);
  Shape sources;
  for (int64_t i = 0; i < before + n + after; ++i) sources.push_back(padded_source(mode, i - before, n));
  return map([&](Expr i) { return index(i, row); }, constant(Tensor::of(Scalar::i64, {before + n + after}, sources)));
}

Lowered lower_pad(const OperatorContext& c) {
  Expr x = c.inputs[0];
  Shape shape = extents(x);
  Scalar scalar = element_of(x);
  HOIST_TRY(std::string mode, choice_attribute(c, "mode", "constant", {"constant", "reflect", "edge", "wrap"}));
  HOIST_TRY(auto pads, integers_of(c, has_attribute(c, "paddings") ? "paddings" : "pads", 1));
  HOIST_TRY(double number, float_attribute(c, "value", 0));
  Expr value = literal(scalar, number);
  if (Expr given = input(c, 2)) {
    if (product(extents(given)) != 1 || element_of(given) != scalar) {
      return fault(fmt::format("constant_value has to be one {}, found {}", row(scalar).name, text(extents(given))));
    }
    // A number that is known can be the border of a stored array.
    const Tensor* known = c.constants[2];
    const bool whole = known != nullptr && is_integer(scalar);
    value = whole ? literal_integer(scalar, known->integer_at(0)) : reshape(given, {});
  }
  Shape axes;
  for (size_t i = 0; i < shape.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  if (is_given(c, 3, "axes")) {
    HOIST_TRY(axes, constant_integers(c, 3, "axes"));
  }
  HOIST_TRY_VOID(normalise_axes(axes, rank_of(x)));
  if (!pads || pads->size() != 2 * axes.size()) {
    return fault(fmt::format("pads has {} values for {} axes", pads ? pads->size() : 0, axes.size()));
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t axis = axes[i] < 0 ? axes[i] + rank_of(x) : axes[i];
    int64_t& n = shape[static_cast<size_t>(axis)];
    int64_t before = (*pads)[i], after = (*pads)[axes.size() + i];
    for (int64_t amount : {before, after}) {
      if (amount < -most_elements || amount > most_elements)
        return fault(fmt::format("pads hold {}, which is out of range", amount));
    }
    // Negative amounts take elements away first.
    int64_t skip = std::max<int64_t>(-before, 0), drop = std::max<int64_t>(-after, 0);
    if (skip + drop > n)
      return fault(fmt::format("negative pads take {} of {} elements of axis {}", skip + drop, n, axis));
    x = slice_at(axis, skip == n ? 0 : skip, n - skip - drop, x);
    n -= skip + drop;
    before = std::max<int64_t>(before, 0), after = std::max<int64_t>(after, 0);
    if (n == 0 && mode != "constant" && before + after > 0)
      return fault(fmt::format("axis {} has no elements to pad with", axis));
    n += before + after;
    HOIST_TRY_VOID(check_extents(shape));
    if (mode != "constant" && n > most_table_entries)
      return fault(
          fmt::format("axis {} is padded to {} elements, at most {} by {}", axis, n, most_table_entries, mode));
    if (before + after == 0) continue;
    x = map_at(
        static_cast<int>(axis), [&](Expr row) { return padded(row, mode, before, after, value); }, x);
  }
  return one(x);
}

Lowered lower_tile(const OperatorContext& c) {
  Expr x = c.inputs[0];
  HOIST_TRY(Shape repeats, constant_integers(c, 1, "repeats"));
  Shape shape = extents(x), to = shape;
  if (repeats.size() != shape.size())
    return fault(fmt::format("repeats has {} values for {} dimensions", repeats.size(), shape.size()));
  for (size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i] < 0 || repeats[i] > most_elements)
      return fault(fmt::format("dimension {} is to be repeated {} times", i, repeats[i]));
    to[i] = shape[i] > most_elements / std::max<int64_t>(repeats[i], 1) ? most_elements + 1 : shape[i] * repeats[i];
  }
  HOIST_TRY_VOID(check_extents(to));
  for (size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i] == 1) continue;
    x = map_at(
        static_cast<int>(i), [&](Expr row) { return join(repeat(repeats[i], row)); }, x);
  }
  return one(x);
}

Lowered lower_depth_to_space(const OperatorContext& c) {
  Shape s = extents(c.inputs[0]);
  HOIST_TRY(int64_t b, integer_attribute(c, "blocksize", 0));
  HOIST_TRY(std::string mode, choice_attribute(c, "mode", "DCR", {"DCR", "CRD"}));
  if (s.size() != 4) return fault(fmt::format("the input has to be [N][C][H][W], found {}", text(s)));
  if (b < 1 || b > 65536 || s[1] % (b * b) != 0)
    return fault(fmt::format("blocks of {} x {} do not divide {} channels", b, b, s[1]));
  int64_t depth = s[1] / (b * b);
  bool depth_last = mode == "DCR";
  Expr blocks =
      reshape(c.inputs[0], depth_last ? Shape{s[0], b, b, depth, s[2], s[3]} : Shape{s[0], depth, b, b, s[2], s[3]});
  Expr placed = permute(depth_last ? Shape{0, 3, 4, 1, 5, 2} : Shape{0, 1, 4, 2, 5, 3}, blocks);
  return one(reshape(placed, {s[0], depth, s[2] * b, s[3] * b}));
}

Lowered lower_space_to_depth(const OperatorContext& c) {
  Shape s = extents(c.inputs[0]);
  HOIST_TRY(int64_t b, integer_attribute(c, "blocksize", 0));
  HOIST_TRY(std::string mode, choice_attribute(c, "mode", "DCR", {"DCR", "CRD"}));
  if (s.size() != 4) return fault(fmt::format("the input has to be [N][C][H][W], found {}", text(s)));
  if (b < 1 || s[2] % b != 0 || s[3] % b != 0)
    return fault(fmt::format("blocks of {} x {} do not divide {} x {}", b, b, s[2], s[3]));
  Expr blocks = reshape(c.inputs[0], {s[0], s[1], s[2] / b, b, s[3] / b, b});
  Expr placed = permute(mode == "DCR" ? Shape{0, 3, 5, 1, 2, 4} : Shape{0, 1, 3, 5, 2, 4}, blocks);
  return one(reshape(placed, {s[0], s[1] * b * b, s[2] / b, s[3] / b}));
}

Lowered lower_centre(const OperatorContext& c) {
  Expr x = c.inputs[0];
  HOIST_TRY(Shape wanted, constant_integers(c, 1, "shape"));
  Shape shape = extents(x), axes;
  for (int64_t i = 0; i < rank_of(x); ++i) axes.push_back(i);
  HOIST_TRY(axes, integers_attribute(c, "axes", axes));
  HOIST_TRY_VOID(normalise_axes(axes, rank_of(x)));
  if (axes.size() != wanted.size())
    return fault(fmt::format("shape has {} values for {} axes", wanted.size(), axes.size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t axis = axes[i] < 0 ? axes[i] + rank_of(x) : axes[i];
    int64_t& n = shape[static_cast<size_t>(axis)];
    if (wanted[i] < n) {
      if (wanted[i] < 0) return fault(fmt::format("extent {} is wanted along axis {}", wanted[i], axis));
      x = slice_at(axis, (n - wanted[i]) / 2, wanted[i], x);
    } else {
      int64_t before = (wanted[i] - n) / 2;
      HOIST_TRY_VOID(check_extents({wanted[i]}));
      x = map_at(
          static_cast<int>(axis),
          [&](Expr row) { return pad_with(before, wanted[i] - n - before, zero(element_of(x)), row); }, x);
    }
    n = wanted[i];
    HOIST_TRY_VOID(check_extents(shape));
  }
  return one(x);
}

// Keeps the part of each matrix on one side of a diagonal.
Lowered lower_triangle(const OperatorContext& c) {
  Expr x = c.inputs[0];
  Shape shape = extents(x);
  if (shape.size() < 2) return fault(fmt::format("the input has to be at least a matrix, found {}", text(shape)));
  HOIST_TRY(int64_t upper, integer_attribute(c, "upper", 1));
  Expr diagonal = literal_integer(Scalar::i64, 0);
  if (Expr k = input(c, 1)) {
    if (product(extents(k)) != 1 || element_of(k) != Scalar::i64) return fault("k has to be one i64");
    diagonal = reshape(k, {});
  }
  Expr nothing = zero(element_of(x));
  return one(map_at(
      static_cast<int>(shape.size()) - 2,
      [&](Expr matrix) {
        return map_zip({matrix, iota(matrix->type->size, Scalar::i64)}, [&](const std::vector<Expr>& line) {
          return map_zip({line[0], iota(line[0]->type->size, Scalar::i64)}, [&](const std::vector<Expr>& cell) {
            Number distance = Number(cell[1]) - line[1];
            return choose(upper != 0 ? distance >= diagonal : distance <= diagonal, cell[0], nothing).e;
          });
        });
      },
      x));
}

// clang-format off
constexpr auto movement_rows = std::to_array<OperatorRow>({
  {"", "Transpose", 1, 1, 1, Takes::anything, lower_transpose, "dimensions in another order", -2, 2, "", 21},
  {"", "Concat", 4, 1, -1, Takes::anything, lower_concat, "one after the other along an axis"},
  {"", "Split", 2, 1, 2, Takes::anything, lower_split, "parts along an axis", -2, 2, "1 split", 0, nullptr, true},
  {"", "Slice", 1, 1, 5, Takes::anything, lower_slice, "from start to end by steps", -2, 2, "1 starts, 2 ends, 3 axes, 4 steps"},
  {"", "Pad", 1, 1, 4, Takes::anything, lower_pad, "elements before and after: a number, mirror image, edge, or wrapped", -2, 2, "1 pads, 3 axes"},
  {"", "Tile", 6, 2, 2, Takes::anything, lower_tile, "repeated along each dimension", -2, 2, "1 repeats"},
  {"", "DepthToSpace", 1, 1, 1, Takes::anything, lower_depth_to_space, "channels become blocks of the plane"},
  {"", "SpaceToDepth", 1, 1, 1, Takes::anything, lower_space_to_depth, "blocks of the plane become channels"},
  {"", "CenterCropPad", 18, 2, 2, Takes::anything, lower_centre, "cropped or padded around the centre", -2, 2, "1 shape"},
  {"", "Trilu", 14, 1, 2, Takes::anything, lower_triangle, "one side of a diagonal, zeros on the other"},
});
// clang-format on

}  // namespace

std::span<const OperatorRow> movement_operators() { return movement_rows; }

}  // namespace hoist::operators
