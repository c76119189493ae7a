// Reductions over axes, positions of minima and maxima, running sums, and the softmax family, whose rows need two
// reductions.
#include <array>

#include "ir/operators/definitions/operator_text.h"
#include "ir/operators/families.h"

namespace hoist::operators {
namespace {

// Every reduction has the same head.
#define HOIST_REDUCTION(takes, formula) \
  "(x : " takes "; axes?, keepdims = 1, noop_with_empty_axes = 0) = reduced " formula " x"

// The minimum or maximum first and then its position: two reductions in any order, so kernels compute them in parallel.
// NaN wins over every number, because a minimum or maximum with NaN among its elements is NaN; of several positions the
// first wins, or the last.
#define HOIST_PLACE_IN(row, extreme, last)                  \
  "(let best = reduce " extreme " " row " in (select(" last \
  ", reduce max lowest hits, "                              \
  "reduce min highest hits) "                               \
  "where hits = map (\\p. select(select(floats(" row        \
  "), p.0 == best | is_nan(p.0) & is_nan(best), "           \
  "p.0 == best), p.1, select(" last ", lowest, highest))) (zip(" row ", positions i32 " row "))))"

#define HOIST_PLACE(extreme)                                      \
  "(x : numbers; axis = 0, keepdims = 1, select_last_index = 0) " \
  "refuse extent(axis, x) == 0: \"axis {axis} has no elements\" " \
  "= over axis keepdims (\\row. convert(i64, " HOIST_PLACE_IN("row", extreme, "select_last_index") ")) x"

#define HOIST_RUNNING(function, neutral)                                                      \
  "(x : numbers; axis, exclusive = 0, reverse = 0) "                                          \
  "= along axis (\\row[n]. select(n == 0, row, row |> reversed |> scan " function " " neutral \
  " |> shifted |> reversed)) x "                                                              \
  "where reversed = \\row[n]. select(reverse, slice (n - 1) n step -1 row, row); "            \
  "shifted = \\row[n]. select(exclusive, row |> pad 1 0 " neutral " |> slice 0 n, row)"

// Before version 13 everything from the axis on is one row.
#define HOIST_ROWS(formula)                           \
  "(x : floats; axis = select(version < 13, 1, -1)) " \
  "= select(version < 13, from_axis axis row_of x, along axis row_of x) where row_of = \\row. " formula

// clang-format off
constexpr auto reduction_rows = std::to_array<OperatorRow>({
  by_text("ReduceSum", 1, HOIST_REDUCTION("numbers", "sum"), -2, 2, "1 axes"),
  by_text("ReduceMean", 1, HOIST_REDUCTION("numbers", "mean"), -2, 2, "1 axes"),
  by_text("ReduceMax", 1, HOIST_REDUCTION("anything", "(\\row. select(booleans(row), reduce (|) false row, reduce max lowest row))"), -2, 2, "1 axes"),
  by_text("ReduceMin", 1, HOIST_REDUCTION("anything", "(\\row. select(booleans(row), reduce (&) true row, reduce min highest row))"), -2, 2, "1 axes"),
  by_text("ReduceProd", 1, HOIST_REDUCTION("numbers", "(reduce (*) 1)"), 0.5, 1.5, "1 axes"),
  by_text("ReduceL1", 1, HOIST_REDUCTION("numbers", "(map abs >> sum)"), -2, 2, "1 axes"),
  // Integers have no square root of their own: it is taken in floats and truncated.
  by_text("ReduceL2", 1, HOIST_REDUCTION("numbers",
          "(\\row. select(floats(row), sqrt(total), convert(type(row), sqrt(convert(f64, total)))) "
          "where total = sum (map (\\v. v * v) row))"), -2, 2, "1 axes"),
  by_text("ReduceSumSquare", 1, HOIST_REDUCTION("numbers", "(map (\\v. v * v) >> sum)"), -2, 2, "1 axes"),
  // A sum that f16 does not hold may have a logarithm that it does.
  by_text("ReduceLogSum", 1, HOIST_REDUCTION("floats",
          "(\\row. convert(type(x), log(sum (map (\\v. convert(wide(type(x)), v)) row))))"), 0.1, 4, "1 axes"),
  // The largest element is taken out of the exponentials, unless it is infinite.
  by_text("ReduceLogSumExp", 1, HOIST_REDUCTION("floats",
          "(\\row. let m = reduce max lowest row in (log(sum (map (\\v. exp(v - shift)) row)) + shift "
          "where shift = select(is_infinite(m), 0, m)))"), -2, 2, "1 axes"),
  by_text("ArgMax", 1, HOIST_PLACE("max lowest")),
  by_text("ArgMin", 1, HOIST_PLACE("min highest")),
  by_text("CumSum", 11, HOIST_RUNNING("(+)", "0"), -2, 2, "1 axis"),
  by_text("CumProd", 26, HOIST_RUNNING("(*)", "1"), 0.5, 1.5, "1 axis"),
  by_text("Softmax", 1, HOIST_ROWS(
          "let m = reduce max lowest row in let s = sum (map (\\v. exp(v - m)) row) in map (\\v. exp(v - m) / s) row")),
  by_text("LogSoftmax", 1, HOIST_ROWS(
          "let m = reduce max lowest row in let s = log(sum (map (\\v. exp(v - m)) row)) in map (\\v. v - m - s) row")),
  by_text("Hardmax", 1, HOIST_ROWS(
          "let place = " HOIST_PLACE_IN("row", "max lowest", "0") " "
          "in map (\\i. select(i == place, convert(type(row), 1), convert(type(row), 0))) (positions i32 row)")),
});
// clang-format on

#undef HOIST_REDUCTION
#undef HOIST_PLACE
#undef HOIST_PLACE_IN
#undef HOIST_RUNNING
#undef HOIST_ROWS

}  // namespace

std::span<const OperatorRow> reduction_operators() { return reduction_rows; }

}  // namespace hoist::operators
