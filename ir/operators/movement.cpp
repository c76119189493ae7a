// Operators that only move elements by positions known at compile time: all of them are views.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/operators/families.h"
#include "ir/operators/operator_text.h"
#include "ir/operators/support.h"

namespace hoist::operators {
namespace {

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

// clang-format off
constexpr auto movement_rows = std::to_array<OperatorRow>({
  by_text("Transpose", 1, "(x : anything; perm?) = permute perm x", -2, 2, "", 21),
  {"", "Concat", 4, 1, -1, Takes::anything, lower_concat,
   "one after the other along an axis; a function, since any number of arrays meet under any number of dimensions"},
  {"", "Split", 2, 1, 2, Takes::anything, lower_split,
   "parts along an axis; a function, since the call says how many results there are", -2, 2, "1 split", 0, nullptr, true},
  {"", "Slice", 1, 1, 5, Takes::anything, lower_slice,
   "from start to end by steps; a function, since it goes through lists of axes", -2, 2, "1 starts, 2 ends, 3 axes, 4 steps"},
  {"", "Pad", 1, 1, 4, Takes::anything, lower_pad,
   "elements before and after: a number, mirror image, edge, or wrapped; a function, since it goes through lists of axes", -2, 2, "1 pads, 3 axes"},
  {"", "Tile", 6, 2, 2, Takes::anything, lower_tile,
   "repeated along each dimension; a function, since it goes through a list of axes", -2, 2, "1 repeats"},
  by_text("DepthToSpace", 1,
          "(x : anything [n][c][h][w]; blocksize from 1 to 65536, mode = \"DCR\" | \"CRD\") "
          "refuse c % (blocksize * blocksize) != 0: \"blocks of {blocksize} x {blocksize} do not divide {c} channels\" "
          "= select(mode == \"DCR\", "
          "x |> reshape [n][blocksize][blocksize][c // (blocksize * blocksize)][h][w] |> transpose (0 3 4 1 5 2), "
          "x |> reshape [n][c // (blocksize * blocksize)][blocksize][blocksize][h][w] |> transpose (0 1 4 2 5 3)) "
          "|> reshape [n][c // (blocksize * blocksize)][h * blocksize][w * blocksize]"),
  by_text("SpaceToDepth", 1,
          "(x : anything [n][c][h][w]; blocksize from 1 to 65536, mode = \"DCR\" | \"CRD\") "
          "refuse h % blocksize != 0 | w % blocksize != 0: \"blocks of {blocksize} x {blocksize} do not divide {h} x {w}\" "
          "= (select(mode == \"DCR\", transpose (0 3 5 1 2 4) blocks, transpose (0 1 3 5 2 4) blocks) "
          "|> reshape [n][c * blocksize * blocksize][h // blocksize][w // blocksize]) "
          "where blocks = x |> reshape [n][c][h // blocksize][blocksize][w // blocksize][blocksize]"),
  {"", "CenterCropPad", 18, 2, 2, Takes::anything, lower_centre,
   "cropped or padded around the centre; a function, since it goes through a list of axes", -2, 2, "1 shape"},
  by_text("Trilu", 14,
          "(x : anything, k? : integers; upper = 1) "
          "refuse rank(x) < 2: \"the input has to be at least a matrix, found {x}\" "
          "refuse given(k) & (!one_number(k) | type(k) != i64): \"k has to be one i64\" "
          "= under (rank(x) - 2) (\\matrix. zip(matrix, positions i64 matrix) |> map (\\(line, i). "
          "zip(line, positions i64 line) |> map (\\(v, j). select(kept i j, v, convert(type(x), 0))))) x "
          "where kept = \\i j. select(upper, j - i >= diagonal, j - i <= diagonal); "
          "diagonal = select(given(k), scalar k, 0i64)"),
});
// clang-format on

}  // namespace

std::span<const OperatorRow> movement_operators() { return movement_rows; }

}  // namespace hoist::operators
