// Pooling: a reduction over windows of each channel's plane, or over the whole plane.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/operators/families.h"
#include "ir/operators/windows.h"

namespace hoist::operators {
namespace {

struct Pool {
  Expr x;
  Geometry geometry;
};

Result<Pool> pool_of(const OperatorContext& c) {
  HOIST_TRY(Shape spatial, spatial_extents(c.inputs[0]));
  if (!has_attribute(c, "kernel_shape")) return fault("attribute kernel_shape is missing");
  HOIST_TRY(Shape kernel, integers_attribute(c, "kernel_shape", {}));
  HOIST_TRY(Geometry g, window_geometry(c, spatial, kernel));
  return Pool{c.inputs[0], g};
}

// f on the flattened window at each place of each plane.
Expr pooled(const Pool& p, Expr border, const std::function<Expr(Expr)>& f) {
  auto plane = [&](Expr image) {
    return map_at(
        static_cast<int>(p.geometry.kernel.size()), [&](Expr window) { return f(flatten(window)); },
        windows(image, 0, p.geometry, border));
  };
  return map_at(2, plane, p.x);
}

// The positions of the elements of x, flat and row-major, or with the last two dimensions exchanged.
Expr positions(const Shape& shape, bool column_major) {
  Expr flat = iota(product(shape), Scalar::i64);
  if (!column_major || shape.size() < 2) return reshape(flat, shape);
  Shape turned = shape;
  std::reverse(turned.begin() + 2, turned.end());
  Shape permutation = {0, 1};
  for (size_t i = shape.size(); i-- > 2;) permutation.push_back(static_cast<int64_t>(i));
  return permute(permutation, reshape(flat, turned));
}

Lowered lower_max_pool(const OperatorContext& c) {
  HOIST_TRY(Pool p, pool_of(c));
  HOIST_TRY(int64_t column_major, integer_attribute(c, "storage_order", 0));
  Scalar scalar = element_of(p.x);
  Expr low = lowest(scalar);
  std::vector<Expr> results = {pooled(p, low, [&](Expr window) { return reduce(Function::maximum, low, window); })};
  if (c.call.results > 1) {
    // The first place of the largest element: values and places go through the same windows.
    Expr places = positions(extents(p.x), column_major != 0);
    Expr none = literal_integer(Scalar::i64, -1);
    results.push_back(map_zip_at(2, {p.x, places}, [&](const std::vector<Expr>& planes) {
      std::vector<Expr> views = {windows(planes[0], 0, p.geometry, low), windows(planes[1], 0, p.geometry, none)};
      return map_zip_at(static_cast<int64_t>(p.geometry.kernel.size()), views, [&](const std::vector<Expr>& w) {
        Expr best = fold(
            [&](Expr best, Expr next) {
              Expr wins = call(
                  Function::logical_or,
                  {call(Function::greater, {get(0, next), get(0, best)}),
                   call(Function::logical_and, {call(Function::less, {get(1, best), zero(Scalar::i64)}),
                                                call(Function::greater_equal, {get(1, next), zero(Scalar::i64)})})});
              return select(wins, next, best);
            },
            tuple({low, none}), zip({flatten(w[0]), flatten(w[1])}));
        return get(1, best);
      });
    }));
  }
  return results;
}

// How many elements each window of a dimension counts: those inside the input, or inside input and padding.
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

Lowered lower_average_pool(const OperatorContext& c) {
  HOIST_TRY(Pool p, pool_of(c));
  HOIST_TRY(int64_t with_padding, integer_attribute(c, "count_include_pad", 0));
  const Geometry& g = p.geometry;
  Scalar scalar = element_of(p.x);
  Shape shape = extents(p.x);
  int64_t entries = 1;
  for (size_t i = 0; i < g.out.size(); ++i) {
    if (g.out[i] > most_table_entries / entries || g.out[i] > most_table_entries / g.kernel[i]) {
      return fault(fmt::format("{} windows, at most {} are supported", text(g.out), most_table_entries));
    }
    entries *= g.out[i];
  }
  Tensor counts(scalar, {1});
  counts.set_float(0, 1);
  Shape out;
  for (size_t i = 0; i < g.kernel.size(); ++i) {  // the outer product of the counts along each dimension
    Shape along = counts_along(g, i, shape[i + 2], with_padding != 0);
    out.push_back(g.out[i]);
    Tensor next(scalar, {counts.size() * g.out[i]});
    for (int64_t k = 0; k < next.size(); ++k) {
      next.set_float(k, counts.float_at(k / g.out[i]) * static_cast<double>(along[static_cast<size_t>(k % g.out[i])]));
    }
    counts = next;
  }
  bool uniform = true;
  for (int64_t k = 0; k < counts.size(); ++k) uniform = uniform && counts.float_at(k) == counts.float_at(0);
  Expr nothing = zero(scalar);
  if (uniform) {
    double count = counts.size() > 0 ? counts.float_at(0) : 1;
    return one(pooled(p, nothing, [&](Expr window) { return (Number(sum(window)) / count).e; }));
  }
  Expr divisors = constant(counts.reshaped(out));
  return one(map_at(
      2,
      [&](Expr image) {
        return map_zip_at(static_cast<int64_t>(out.size()), {windows(image, 0, g, nothing), divisors},
                          [&](const std::vector<Expr>& w) { return (Number(sum(flatten(w[0]))) / w[1]).e; });
      },
      p.x));
}

// (sum of |x|^p)^(1/p) of a row.
Expr norm(Expr row, int64_t p) {
  if (p == 1) return sum(map([](Expr x) { return abs(Number(x)).e; }, row));
  if (p == 2) return sqrt(Number(sum(map([](Expr x) { return (Number(x) * x).e; }, row)))).e;
  auto exponent = static_cast<double>(p);
  return pow(Number(sum(map([&](Expr x) { return pow(abs(Number(x)), exponent).e; }, row))), 1 / exponent).e;
}

Lowered lower_lp_pool(const OperatorContext& c) {
  HOIST_TRY(Pool p, pool_of(c));
  HOIST_TRY(int64_t order, integer_attribute(c, "p", 2));
  if (order < 1) return fault(fmt::format("p is {}, expected at least 1", order));
  return one(pooled(p, zero(element_of(p.x)), [&](Expr window) { return norm(window, order); }));
}

// One number for each channel; every spatial dimension stays with extent 1.
Lowered global(const OperatorContext& c, const std::function<Expr(Expr)>& f) {
  Shape shape = extents(c.inputs[0]), axes;
  if (shape.size() < 3)
    return fault(fmt::format("the input has to be [N][C] and spatial dimensions, found {}", text(shape)));
  for (size_t i = 2; i < shape.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  return one(reduce_axes(c.inputs[0], axes, true, f));
}

Lowered lower_global_average(const OperatorContext& c) {
  return global(c, [](Expr row) { return (Number(sum(row)) / static_cast<double>(extents(row)[0])).e; });
}

Lowered lower_global_max(const OperatorContext& c) {
  return global(c, [](Expr row) { return reduce(Function::maximum, lowest(element_of(row)), row); });
}

Lowered lower_global_lp(const OperatorContext& c) {
  HOIST_TRY(int64_t order, integer_attribute(c, "p", 2));
  if (order < 1) return fault(fmt::format("p is {}, expected at least 1", order));
  return global(c, [&](Expr row) { return norm(row, order); });
}

// clang-format off
constexpr auto pooling_rows = std::to_array<OperatorRow>({
  {"", "MaxPool", 1, 1, 1, Takes::numbers, lower_max_pool, "largest element of each window, and where it is"},
  {"", "AveragePool", 1, 1, 1, Takes::floats, lower_average_pool, "mean of each window, with or without its padding"},
  {"", "LpPool", 2, 1, 1, Takes::floats, lower_lp_pool, "p-norm of each window"},
  {"", "GlobalMaxPool", 1, 1, 1, Takes::floats, lower_global_max, "largest element of each channel"},
  {"", "GlobalAveragePool", 1, 1, 1, Takes::floats, lower_global_average, "mean of each channel"},
  {"", "GlobalLpPool", 2, 1, 1, Takes::floats, lower_global_lp, "p-norm of each channel"},
});
// clang-format on

}  // namespace

std::span<const OperatorRow> pooling_operators() { return pooling_rows; }

}  // namespace hoist::operators
