// Reductions over axes, places of extremes, running sums, and the softmax family, whose rows need two reductions.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "ir/operators/families.h"
#include "ir/operators/support.h"

namespace hoist::operators {
namespace {

Expr mapped(Expr row, Number (*f)(Number)) {
  return map([&](Expr x) { return f(x).e; }, row);
}

Expr sum_of(Expr row) { return sum(row); }
Expr product_of(Expr row) { return reduce(Function::multiply, literal(element_of(row), 1), row); }
Expr sum_of_magnitudes(Expr row) {
  return sum(mapped(row, [](Number x) { return abs(x); }));
}
Expr sum_of_squares(Expr row) {
  return sum(mapped(row, [](Number x) { return x * x; }));
}
Expr root(Expr row) {
  // Integers have no square root of their own: it is taken in floats and truncated.
  Scalar scalar = element_of(row);
  Expr total = sum_of_squares(row);
  return is_float(scalar) ? sqrt(Number(total)).e : convert(scalar, sqrt(Number(cast(Scalar::f64, total))).e);
}
Expr log_of_sum(Expr row) { return log(Number(sum(row))).e; }

Expr maximum_of(Expr row) {
  Scalar scalar = element_of(row);
  if (scalar == Scalar::boolean) return reduce(Function::logical_or, zero(scalar), row);
  return reduce(Function::maximum, lowest(scalar), row);
}

Expr minimum_of(Expr row) {
  Scalar scalar = element_of(row);
  if (scalar == Scalar::boolean) return reduce(Function::logical_and, literal_integer(scalar, 1), row);
  return reduce(Function::minimum, highest(scalar), row);
}

// The largest element is taken out of the exponentials, unless it is infinite.
Expr log_of_sum_of_exponentials(Expr row) {
  return let(maximum_of(row), [&](Expr m) {
    Number shift = choose(operators::apply(Function::is_infinite, m), 0.0, m);
    return (log(Number(sum(map([&](Expr x) { return exp(x - shift).e; }, row)))) + shift).e;
  });
}

template <Expr (*f)(Expr)>
Lowered reduction(const OperatorContext& c) {
  Expr x = c.inputs[0];
  HOIST_TRY(auto named, integers_of(c, "axes", 1));
  HOIST_TRY(int64_t keep, integer_attribute(c, "keepdims", 1));
  HOIST_TRY(int64_t keep_all, integer_attribute(c, "noop_with_empty_axes", 0));
  HOIST_TRY(Shape axes, normalise_axes(named.value_or(Shape{}), rank_of(x)));
  if (axes.empty()) {
    if (keep_all != 0) return one(elementwise({x}, [](const std::vector<Expr>& v) { return f(repeat(1, v[0])); }));
    axes.resize(static_cast<size_t>(rank_of(x)));
    std::iota(axes.begin(), axes.end(), 0);
  }
  return one(reduce_axes(x, axes, keep != 0, f));
}

// Where the element is that wins over all others, the first or the last of several. NaN wins over every number, as it
// is what an extreme with NaN among its elements is.
Expr place_of_best(Expr row, Function better, bool last, Expr initial, Scalar index) {
  HOIST_CHECK(better == Function::greater || better == Function::less, "an order is greater or less");
  const bool greatest = better == Function::greater;
  const Function wins = !last ? better : greatest ? Function::greater_equal : Function::less_equal;
  Expr best = fold(
      [&](Expr best, Expr next) {
        Number a = get(0, next), b = get(0, best), won = apply(wins, a, b);
        if (is_float(element_of(row))) {
          Number unordered = apply(Function::is_nan, a);
          won = won | (last ? unordered : unordered & (b == b));
        }
        return select(won.e, next, best);
      },
      tuple({initial, literal_integer(index, 0)}), zip({row, iota(row->type->size, index)}));
  return get(1, best);
}

template <Function better>
Lowered place_of_extreme(const OperatorContext& c) {
  Expr x = c.inputs[0];
  HOIST_TRY(int64_t named, integer_attribute(c, "axis", 0));
  HOIST_TRY(int64_t keep, integer_attribute(c, "keepdims", 1));
  HOIST_TRY(int64_t last, integer_attribute(c, "select_last_index", 0));
  HOIST_TRY(int64_t axis, normalise_axis(named, rank_of(x)));
  if (extents(x)[static_cast<size_t>(axis)] == 0) return fault(fmt::format("axis {} has no elements", axis));
  return one(reduce_axes(x, {axis}, keep != 0, [&](Expr row) {
    return place_of_best(row, better, last != 0, at_position(0, row), Scalar::i64);
  }));
}

template <Function function>
Lowered running(const OperatorContext& c) {
  Expr x = c.inputs[0];
  HOIST_TRY(Shape named, constant_integers(c, 1, "axis"));
  if (named.size() != 1) return fault(fmt::format("axis has {} values, expected 1", named.size()));
  HOIST_TRY(int64_t axis, normalise_axis(named[0], rank_of(x)));
  HOIST_TRY(int64_t exclusive, integer_attribute(c, "exclusive", 0));
  HOIST_TRY(int64_t reverse, integer_attribute(c, "reverse", 0));
  Scalar scalar = element_of(x);
  Expr neutral = literal(scalar, function == Function::add ? 0 : 1);
  int64_t n = extents(x)[static_cast<size_t>(axis)];
  if (n == 0) return one(x);
  auto turned = [&](Expr row) { return reverse != 0 ? slice(n - 1, n, row, -1) : row; };
  return one(map_rows(x, axis, [&](Expr row) {
    Expr all = scan([](Expr a, Expr b) { return call(function, {a, b}); }, neutral, turned(row));
    if (exclusive != 0) all = slice(0, n, pad(1, 0, neutral, all));
    return turned(all);
  }));
}

// ---- Softmax
// -------------------------------------------------------------------------------------------------------------

// f on each row that the axis names; before version 13 everything from the axis on is one row.
Lowered over_rows(const OperatorContext& c, const std::function<Expr(Expr)>& f) {
  Expr x = c.inputs[0];
  bool coerced = c.call.version < 13;
  HOIST_TRY(int64_t named, integer_attribute(c, "axis", coerced ? 1 : -1));
  int64_t rank = rank_of(x);
  if (coerced && named == rank) named = rank - 1;  // one element a row would be all that is left
  HOIST_TRY(int64_t axis, normalise_axis(named, rank));
  if (!coerced) return one(map_rows(x, axis, f));
  Shape shape = extents(x);
  Shape lead(shape.begin(), shape.begin() + axis), rest(shape.begin() + axis, shape.end());
  Expr rows = reshape(x, {product(lead), product(rest)});
  return one(reshape(map(f, rows), shape));
}

Lowered lower_softmax(const OperatorContext& c) {
  return over_rows(c, [](Expr row) {
    return let(maximum_of(row), [&](Expr m) {
      auto power = [&](Expr x) { return exp(Number(x) - m); };
      return let(sum(map([&](Expr x) { return power(x).e; }, row)),
                 [&](Expr s) { return map([&](Expr x) { return (power(x) / s).e; }, row); });
    });
  });
}

Lowered lower_log_softmax(const OperatorContext& c) {
  return over_rows(c, [](Expr row) {
    return let(maximum_of(row), [&](Expr m) {
      return let(log(Number(sum(map([&](Expr x) { return exp(Number(x) - m).e; }, row)))).e,
                 [&](Expr s) { return map([&](Expr x) { return (Number(x) - m - s).e; }, row); });
    });
  });
}

Lowered lower_hardmax(const OperatorContext& c) {
  return over_rows(c, [](Expr row) {
    Scalar scalar = element_of(row);
    Expr best = place_of_best(row, Function::greater, false, lowest(scalar), Scalar::i32);
    return let(best, [&](Expr place) {
      return map(
          [&](Expr i) {
            return select(call(Function::equal, {i, place}), literal(scalar, 1), zero(scalar));
          },
          iota(row->type->size, Scalar::i32));
    });
  });
}

// clang-format off
constexpr auto reduction_rows = std::to_array<OperatorRow>({
  {"", "ReduceSum", 1, 1, 2, Takes::numbers, reduction<sum_of>, "sum", -2, 2, "1 axes"},
  {"", "ReduceMean", 1, 1, 2, Takes::numbers, reduction<mean_of>, "sum / how many", -2, 2, "1 axes"},
  {"", "ReduceMax", 1, 1, 2, Takes::anything, reduction<maximum_of>, "largest; of bools: any", -2, 2, "1 axes"},
  {"", "ReduceMin", 1, 1, 2, Takes::anything, reduction<minimum_of>, "smallest; of bools: all", -2, 2, "1 axes"},
  {"", "ReduceProd", 1, 1, 2, Takes::numbers, reduction<product_of>, "product", 0.5, 1.5, "1 axes"},
  {"", "ReduceL1", 1, 1, 2, Takes::numbers, reduction<sum_of_magnitudes>, "sum of abs(x)", -2, 2, "1 axes"},
  {"", "ReduceL2", 1, 1, 2, Takes::numbers, reduction<root>, "sqrt of the sum of x * x", -2, 2, "1 axes"},
  {"", "ReduceSumSquare", 1, 1, 2, Takes::numbers, reduction<sum_of_squares>, "sum of x * x", -2, 2, "1 axes"},
  {"", "ReduceLogSum", 1, 1, 2, Takes::floats, reduction<log_of_sum>, "log of the sum", 0.1, 4, "1 axes"},
  {"", "ReduceLogSumExp", 1, 1, 2, Takes::floats, reduction<log_of_sum_of_exponentials>, "log of the sum of exp(x)", -2, 2, "1 axes"},
  {"", "ArgMax", 1, 1, 1, Takes::numbers, place_of_extreme<Function::greater>, "where the largest is"},
  {"", "ArgMin", 1, 1, 1, Takes::numbers, place_of_extreme<Function::less>, "where the smallest is"},
  {"", "CumSum", 11, 2, 2, Takes::numbers, running<Function::add>, "running sums along an axis", -2, 2, "1 axis"},
  {"", "CumProd", 26, 2, 2, Takes::numbers, running<Function::multiply>, "running products along an axis", 0.5, 1.5, "1 axis"},
  {"", "Softmax", 1, 1, 1, Takes::floats, lower_softmax, "exp(x - max) / sum of exp(x - max), row by row"},
  {"", "LogSoftmax", 1, 1, 1, Takes::floats, lower_log_softmax, "x - max - log(sum of exp(x - max)), row by row"},
  {"", "Hardmax", 1, 1, 1, Takes::floats, lower_hardmax, "1 at the first largest element of each row, else 0"},
});
// clang-format on

}  // namespace

std::span<const OperatorRow> reduction_operators() { return reduction_rows; }

}  // namespace hoist::operators
