// Pooling: a reduction over windows of each channel's plane, or over the whole plane.
#include <array>

#include "ir/operators/definitions/operator_text.h"
#include "ir/operators/families.h"

namespace hoist::operators {
namespace {

// The places of windows, which the form `windows` reads.
#define HOIST_WINDOWS "kernel_shape?, strides?, pads?, dilations?, auto_pad = \"NOTSET\", ceil_mode = 0"

// (sum of |x|^p)^(1/p) of a row.
#define HOIST_NORM                                                                              \
  "(\\row. select(p == 1, sum (map abs row), select(p == 2, sqrt(sum (map (\\v. v * v) row)), " \
  "pow(sum (map (\\v. pow(abs(v), p)) row), 1 / p)))) x"

// clang-format off
constexpr auto pooling_rows = std::to_array<OperatorRow>({
  // The second result is the first place of the largest element: values and places go through the same windows.
  by_text("MaxPool", 1,
          "(x : numbers; " HOIST_WINDOWS ", storage_order = 0) "
          "= (windows lowest (reduce max lowest) x, "
          "windows lowest (-1) (\\values places. (fold (\\best next. "
          "select(next.0 > best.0 | best.1 < 0 & next.1 >= 0, next, best)) (convert(type(x), lowest), -1i64) (zip(values, places))).1) "
          "x (places_in_planes storage_order x))"),
  by_text("AveragePool", 1,
          "(x : floats; " HOIST_WINDOWS ", count_include_pad = 0) "
          "= counted_windows 0 count_include_pad (\\window count. "
          "convert(type(x), sum (map (\\v. convert(wide(type(x)), v)) window) / count)) x"),
  by_text("LpPool", 2, "(x : floats; " HOIST_WINDOWS ", p = 2 from 1) = windows 0 " HOIST_NORM),
  by_text("GlobalMaxPool", 1, "(x : floats) = planes (reduce max lowest) x"),
  by_text("GlobalAveragePool", 1, "(x : floats) = planes mean x"),
  by_text("GlobalLpPool", 2, "(x : floats; p = 2 from 1) = planes " HOIST_NORM),
});
// clang-format on

#undef HOIST_WINDOWS
#undef HOIST_NORM

}  // namespace

std::span<const OperatorRow> pooling_operators() { return pooling_rows; }

}  // namespace hoist::operators
