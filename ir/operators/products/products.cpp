// Products whose definition depends on a size or an equation; products.op has the others.
#include <fmt/format.h>

#include <array>
#include <functional>

#include "ir/operators/definitions/einsum.h"
#include "ir/operators/definitions/support.h"
#include "ir/operators/families.h"

namespace hoist::operators {
namespace {

// The determinant of a matrix by elimination: the row with the largest first element becomes the pivot, and its
// multiples are subtracted from the other rows.
Expr determinant(Expr matrix) {
  const int64_t n = extents(matrix)[0];
  const Scalar scalar = element_of(matrix);
  if (n == 0) return literal(scalar, 1);
  const auto element = [&](int64_t i, int64_t k) { return Number(at_position(k, at_position(i, matrix))); };
  if (n == 1) return element(0, 0).e;
  if (n == 2) return (element(0, 0) * element(1, 1) - element(0, 1) * element(1, 0)).e;
  const Scalar place = Scalar::i32;
  Expr sizes = map([&](Expr row) { return abs(at_position(0, row)).e; }, matrix);
  Expr largest = fold([&](Expr best, Expr next) { return select((Number(get(0, next)) > get(0, best)).e, next, best); },
                      tuple({at_position(0, sizes), literal_integer(place, 0)}), zip({sizes, iota(n, place)}));
  return let(get(1, largest), [&](Expr first) {
    return let(index(first, matrix), [&](Expr pivot) {
      Expr rest = map_zip({slice(1, n - 1, matrix), iota(n - 1, place)}, [&](const std::vector<Expr>& p) {
        const Expr moved = (Number(p[1]) + 1.0 == first).e;
        Expr row = map_zip({p[0], at_position(0, matrix)},
                           [&](const std::vector<Expr>& q) { return select(moved, q[1], q[0]); });
        const Number factor = Number(at_position(0, row)) / at_position(0, pivot);
        return map_zip({slice(1, n - 1, row), slice(1, n - 1, pivot)},
                       [&](const std::vector<Expr>& q) { return (Number(q[0]) - factor * q[1]).e; });
      });
      // Materialised, since otherwise each use would recompute its elements through all steps.
      return let(materialise(Memory::private_, rest), [&](Expr smaller) {
        const Number value = Number(at_position(0, pivot)) * determinant(smaller);
        return choose(Number(at_position(0, pivot)) == 0.0, 0.0, choose(Number(first) == 0.0, value, -value)).e;
      });
    });
  });
}

// A kernel of all steps names each of them: 16 rows compile in 1 s, 24 in 6 s, 31 in 14 s.
constexpr int64_t most_in_one_kernel = 8;

// The row from t on whose element in column t is largest.
Expr pivot_row(Expr matrix, Expr t) {
  const Scalar scalar = element_of(matrix);
  const int64_t n = extents(matrix)[0];
  const Expr sizes = map_zip({matrix, iota(n, Scalar::i32)}, [&](const std::vector<Expr>& p) {
    return tuple({choose(Number(p[1]) >= t, abs(index(t, p[0])), -1.0).e, p[1]});
  });
  const Expr largest =
      fold([&](Expr best, Expr row) { return select((Number(get(0, row)) > get(0, best)).e, row, best); },
           tuple({literal(scalar, -1), t}), sizes);
  return get(1, largest);
}

// The row at a position that kernels may read from an array: clamped, whatever the array holds.
Expr row_at(Expr position, Expr matrix) {
  const auto last = static_cast<double>(extents(matrix)[0] - 1);
  return index(max(min(Number(position), last), 0.0).e, matrix);
}

using Elimination = std::function<Expr(Expr matrix, Expr t, Expr first)>;

Expr elimination_step(const Elimination& next, Expr matrix, Expr t) {
  return let(pivot_row(matrix, t), [&](Expr first) { return next(matrix, t, first); });
}

// matrices : [b][n][m]. Steps t = 0 to n - 1 of an elimination, each a kernel over all matrices; `first` is the row of
// the pivot.
Expr eliminated(Expr matrices, const Elimination& next) {
  return fold(
      [&](Expr state, Expr t) {
        return in_memory(map([&](Expr matrix) { return elimination_step(next, matrix, t); }, state));
      },
      matrices, iota(extents(matrices)[1], Scalar::i32));
}

// The same steps from t on of one small matrix, in one kernel.
Expr eliminated_at_once(Expr matrix, const Elimination& next, int64_t t = 0) {
  if (t == extents(matrix)[0]) return matrix;
  const Expr step = elimination_step(next, matrix, literal_integer(Scalar::i32, t));
  return let(materialise(Memory::private_, step), [&](Expr after) { return eliminated_at_once(after, next, t + 1); });
}

// matrices : [b][n][n]. The same in n steps: row t is swapped with the row below that has the largest element in column
// t, and one of both is negated, so that the determinant does not change.
Expr determinants(Expr matrices) {
  const int64_t n = extents(matrices)[1];
  const Expr numbers = iota(n, Scalar::i32);
  const Expr steps = eliminated(matrices, [&](Expr matrix, Expr t, Expr first) {
    const Expr pivot = row_at(first, matrix), top = index(t, matrix);
    return map_zip({matrix, numbers}, [&](const std::vector<Expr>& p) {
      const auto moved = [&](Expr own, Expr of_pivot, Expr of_top) {
        return choose(Number(p[1]) == t, of_pivot, choose(Number(p[1]) == first, -Number(of_top), own));
      };
      const Number leading = index(t, pivot), own = moved(index(t, p[0]), leading.e, index(t, top));
      const Number factor = choose((Number(p[1]) > t) & (abs(leading) > 0.0), own / leading, 0.0);
      return let(factor.e, [&](Expr times) {
        return map_zip({p[0], pivot, top},
                       [&](const std::vector<Expr>& q) { return (moved(q[0], q[1], q[2]) - Number(times) * q[1]).e; });
      });
    });
  });
  return map(
      [&](Expr matrix) {
        return reduce(Function::multiply, literal(element_of(matrices), 1),
                      map_zip({matrix, numbers}, [](const std::vector<Expr>& p) { return index(p[1], p[0]); }));
      },
      steps);
}

// matrices : [b][n][n]. Gauss-Jordan elimination of each matrix extended by the identity, which turns into the inverse;
// elements of a singular matrix's inverse are infinite or NaN.
Expr inverses(Expr matrices) {
  const int64_t n = extents(matrices)[1];
  const Scalar scalar = element_of(matrices);
  const Expr numbers = iota(n, Scalar::i32);
  const Expr extended = map(
      [&](Expr matrix) {
        return map_zip({matrix, numbers}, [&](const std::vector<Expr>& p) {
          return map_zip({pad(0, n, literal(scalar, 0), p[0]), iota(2 * n, Scalar::i32)},
                         [&](const std::vector<Expr>& q) {
                           const Number one = literal(scalar, 1);
                           return choose(Number(q[1]) == Number(p[1]) + static_cast<double>(n), one, q[0]).e;
                         });
        });
      },
      matrices);
  const Elimination next = [&](Expr matrix, Expr t, Expr first) {
    const Expr pivot = row_at(first, matrix), top = index(t, matrix);
    return map_zip({matrix, numbers}, [&](const std::vector<Expr>& p) {
      const Number leading = index(t, pivot);
      const auto swapped = [&](Expr own, Expr of_top) { return choose(Number(p[1]) == first, of_top, own); };
      return let((swapped(index(t, p[0]), index(t, top)) / leading).e, [&](Expr times) {
        return map_zip({p[0], pivot, top}, [&](const std::vector<Expr>& q) {
          return choose(Number(p[1]) == t, Number(q[1]) / leading, swapped(q[0], q[2]) - Number(times) * q[1]).e;
        });
      });
    });
  };
  const Expr steps = n <= most_in_one_kernel
                         ? map([&](Expr matrix) { return eliminated_at_once(matrix, next); }, extended)
                         : eliminated(extended, next);
  return map([&](Expr matrix) { return map([&](Expr row) { return slice(n, n, row); }, matrix); }, steps);
}

Result<Nothing> check_square(const Shape& shape) {
  if (shape.size() >= 2 && shape.back() == shape[shape.size() - 2]) return Nothing{};
  return fault(fmt::format("the input is {}, expected square matrices", text(shape)));
}

Lowered lower_inverse(const OperatorContext& c) {
  Expr x = c.inputs[0];
  const Shape shape = extents(x);
  HOIST_TRY_VOID(check_square(shape));
  if (product(shape) == 0) return one(x);
  const Scalar scalar = element_of(x), wide = wide_float(scalar);
  const int64_t n = shape.back();
  const Expr matrices = reshape(x, {product(shape) / (n * n), n, n});
  const Expr found = inverses(map_at(
      3, [&](Expr v) { return convert(wide, v); }, matrices));
  return one(reshape(map_at(
                         3, [&](Expr v) { return convert(scalar, v); }, found),
                     shape));
}

Lowered lower_determinant(const OperatorContext& c) {
  Expr x = c.inputs[0];
  const Shape shape = extents(x);
  HOIST_TRY_VOID(check_square(shape));
  const Scalar scalar = element_of(x);
  if (const int64_t n = shape.back(); n > most_in_one_kernel && product(shape) > 0) {
    const Expr wide = map_at(
        3, [&](Expr v) { return convert(wide_float(scalar), v); }, reshape(x, {product(shape) / (n * n), n, n}));
    const Expr found = map([&](Expr v) { return convert(scalar, v); }, determinants(wide));
    return one(reshape(found, Shape(shape.begin(), shape.end() - 2)));
  }
  return one(map_at(
      static_cast<int>(shape.size()) - 2,
      [&](Expr matrix) {
        Expr wide = map_at(
            2, [&](Expr v) { return convert(wide_float(scalar), v); }, matrix);
        return convert(scalar, let(wide, determinant));
      },
      x));
}

// clang-format off
constexpr auto product_rows = std::to_array<OperatorRow>({
  {"", "Det", 11, 1, 1, Takes::floats, lower_determinant,
   "the determinant of matrices by elimination; in C++, since each step has a matrix of another size"},
  {"", "Einsum", 12, 1, -1, Takes::numbers, lower_einsum,
   "a contraction over named dimensions; in C++, since its equation is a language of its own", -2, 2, "", 0, einsum_as_products},
  {"com.microsoft", "Inverse", 1, 1, 1, Takes::floats, lower_inverse,
   "the inverse of matrices by elimination; in C++, since it shares the steps of Det"},
});
// clang-format on

}  // namespace

std::span<const OperatorRow> product_operators() { return product_rows; }

}  // namespace hoist::operators
