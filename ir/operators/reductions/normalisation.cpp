// The normalisation over arbitrary axes; normalisation.op has the others.
#include <algorithm>
#include <array>

#include "ir/operators/definitions/support.h"
#include "ir/operators/families.h"

namespace hoist::operators {
namespace {

Expr variance_of(Expr row, Expr mean) {
  return mean_of(map(
      [&](Expr x) {
        Number d = Number(x) - mean;
        return (d * d).e;
      },
      row));
}

Lowered lower_mean_variance(const OperatorContext& c) {
  const Scalar scalar = element_of(c.inputs[0]);
  const auto converted = [](Scalar to, Expr array) {
    if (element_of(array) == to) return array;
    return map_at(
        static_cast<int>(rank_of(array)), [&](Expr v) { return convert(to, v); }, array);
  };
  Expr x = converted(wide_float(scalar), c.inputs[0]);
  HOIST_TRY(Shape named, integers_attribute(c, "axes", {0, 2, 3}));
  HOIST_TRY(Shape axes, normalise_axes(named, rank_of(x)));
  Shape permutation = with_last(axes, rank_of(x));
  Expr front = permute(permutation, x);
  int kept = static_cast<int>(rank_of(x) - static_cast<int64_t>(axes.size()));
  Expr result = map_at(
      kept,
      [&](Expr block) {
        Expr row = flatten(block);
        return let(mean_of(row), [&](Expr mean) {
          return let(sqrt(Number(variance_of(row, mean))).e, [&](Expr deviation) {
            return map_at(
                static_cast<int>(rank_of(block)),
                [&](Expr v) { return ((Number(v) - mean) / (Number(deviation) + 1e-9)).e; }, block);
          });
        });
      },
      front);
  return one(converted(scalar, permute(inverse(permutation), result)));
}

// clang-format off
constexpr auto normalisation_rows = std::to_array<OperatorRow>({
  {"", "MeanVarianceNormalization", 9, 1, 1, Takes::floats, lower_mean_variance,
   "(x - mean) / (deviation + 1e-9) over the axes; in C++, since the result keeps the dimensions of the axes at any place"},
});
// clang-format on

}  // namespace

std::span<const OperatorRow> normalisation_operators() { return normalisation_rows; }

}  // namespace hoist::operators
