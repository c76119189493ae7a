// Operators that only move elements by positions known at compile time: all of them are views.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/operators/definitions/operator_text.h"
#include "ir/operators/definitions/support.h"
#include "ir/operators/families.h"

namespace hoist::operators {
namespace {

Lowered lower_concat(const OperatorContext& c) {
  HOIST_TRY_VOID(check_same_element(c));
  HOIST_TRY(int64_t named, integer_attribute(c, "axis", 1));
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    if (c.inputs[i] == nullptr) return fault(fmt::format("input {} is left out", i));
  }
  return concatenation(c.inputs, named);
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
      return fault(fmt::format("the parts need more than the {} elements of axis {}", n, axis));
    results.push_back(slice_at(axis, count == 0 ? 0 : total, count, c.inputs[0]));
    total += count;
  }
  if (total != n) return fault(fmt::format("the parts have {} elements, axis {} has {}", total, axis, n));
  return results;
}

// clang-format off
constexpr auto movement_rows = std::to_array<OperatorRow>({
  by_text("Transpose", 1, "(x : anything; perm?) = permute perm x", -2, 2, "", 21),
  {"", "Concat", 4, 1, -1, Takes::anything, lower_concat,
   "concatenation along an axis; a function, since the number of arrays and dimensions is arbitrary"},
  {"", "Split", 2, 1, 2, Takes::anything, lower_split,
   "parts along an axis; a function, since the call decides the number of results", -2, 2, "1 split", 0, nullptr, true},
  // Negative starts and ends count from the end, and values out of range are clamped.
  by_text("Slice", 1,
          "(x : anything; starts, ends, axes?, steps?) "
          "refuse length(ends) != length(starts) | given(axes) & length(axes) != length(starts) | given(steps) & length(steps) != length(starts): "
          "\"starts, ends, axes and steps have {length(starts)}, {length(ends)}, {select(given(axes), length(axes), length(starts))} "
          "and {select(given(steps), length(steps), length(starts))} values\" "
          "refuse given(steps) & holds(steps, 0): \"a step is 0 among {steps}\" "
          "= across (select(given(axes), axes, range(0, length(starts)))) (\\line[n] i. (slice first count step step line "
          "where first = select(count == 0, 0, start); count = max(ceil((end - start) / step), 0); "
          "start = min(max(select(s < 0, s + n, s), low), high); end = min(max(select(e < 0, e + n, e), low), high); "
          "low = select(step > 0, 0, -1); high = select(step > 0, n, n - 1); s = at(starts, i); e = at(ends, i); "
          // Beyond the length the first element alone is taken.
          "step = min(max(at(steps, i, 1), -n - 1), n + 1))) x", -2, 2, "1 starts, 2 ends, 3 axes, 4 steps"),
  // Negative amounts take elements away first. A number that is known can be the border of a stored array.
  by_text("Pad", 1,
          "(x : anything, amounts? : anything, filler? : anything; pads?, paddings?, axes?, "
          "mode = \"constant\" | \"reflect\" | \"edge\" | \"wrap\", value = 0.0) "
          "refuse !given(pads) & !given(paddings): \"pads has 0 values for {length(named)} axes\" "
          "refuse length(both) != 2 * length(named): \"pads has {length(both)} values for {length(named)} axes\" "
          "refuse length(both) > 0 & (least(both) < -1099511627776 | most(both) > 1099511627776): "
          "\"pads hold {both}, which is out of range\" "
          "refuse given(filler) & (!one_number(filler) | type(filler) != type(x)): "
          "\"constant_value has to be one {type(x)}, found {filler}\" "
          "= across named (\\line i. bordered 0 (min(at(both, i), 0)) (min(at(both, i + length(named)), 0)) line) "
          "(\\line i. (select(mode == \"constant\", bordered border before after line, padded mode before after line) "
          "where before = max(at(both, i), 0); after = max(at(both, i + length(named)), 0))) x "
          "where named = select(given(axes), axes, range(0, rank(x))); both = select(given(paddings), paddings, pads); "
          "border = select(!given(filler), convert(type(x), value), "
          "select(is_known(filler) & integers(filler), convert(type(x), value(filler)), scalar filler))", -2, 2, "1 pads, 3 axes"),
  by_text("Tile", 6,
          "(x : anything; repeats) "
          "refuse length(repeats) != rank(x): \"repeats has {length(repeats)} values for {rank(x)} dimensions\" "
          "refuse rank(x) > 0 & (least(repeats) < 0 | most(repeats) > 1099511627776): \"dimensions are to be repeated {repeats} times\" "
          "= across (range(0, rank(x))) (\\line i. select(n == 1, line, line |> repeat n |> join) where n = at(repeats, i)) x",
          -2, 2, "1 repeats"),
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
  by_text("CenterCropPad", 18,
          "(x : anything; shape, axes?) "
          "refuse length(shape) != length(named): \"shape has {length(shape)} values for {length(named)} axes\" "
          "refuse length(shape) > 0 & least(shape) < 0: \"extents {shape} are wanted\" "
          "= across named (\\line[n] i. (select(wanted < n, slice first wanted line, bordered 0 before (wanted - n - before) line) "
          "where first = floor((n - wanted) / 2); before = floor((wanted - n) / 2); wanted = at(shape, i))) x "
          "where named = select(given(axes), axes, range(0, rank(x)))", -2, 2, "1 shape"),
  by_text("Trilu", 14,
          "(x : anything, k? : integers; upper = 1) "
          "refuse rank(x) < 2: \"the input has to be at least a matrix, found {x}\" "
          "refuse given(k) & (!one_number(k) | type(k) != i64): \"k has to be one i64\" "
          "= under (rank(x) - 2) (\\matrix. zip(matrix, positions i32 matrix) |> map (\\(line, i). "
          "zip(line, positions i32 line) |> map (\\(v, j). select(kept i j, v, convert(type(x), 0))))) x "
          "where kept = \\i j. select(upper, j - i >= diagonal, j - i <= diagonal); "
          "diagonal = select(given(k), convert(i32, min(max(scalar k, -2147483648i64), 2147483647i64)), 0i32)"),
});
// clang-format on

}  // namespace

std::span<const OperatorRow> movement_operators() { return movement_rows; }

}  // namespace hoist::operators
