// Products whose size or equation no text follows; products.op has the others.
#include <fmt/format.h>

#include <array>

#include "ir/operators/definitions/einsum.h"
#include "ir/operators/definitions/support.h"
#include "ir/operators/families.h"

namespace hoist::operators {
namespace {

// The determinant of a matrix by elimination: the row whose first element is the largest comes first, and takes that
// element out of the others.
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
      // Kept, or each of its elements would be computed again for all that read it, down to the last step.
      return let(materialise(Memory::private_, rest), [&](Expr smaller) {
        const Number value = Number(at_position(0, pivot)) * determinant(smaller);
        return choose(Number(at_position(0, pivot)) == 0.0, 0.0, choose(Number(first) == 0.0, value, -value)).e;
      });
    });
  });
}

Lowered lower_determinant(const OperatorContext& c) {
  Expr x = c.inputs[0];
  const Shape shape = extents(x);
  constexpr int64_t most = 32;
  if (shape.size() < 2 || shape.back() != shape[shape.size() - 2])
    return fault(fmt::format("the input is {}, expected square matrices", text(shape)));
  if (shape.back() > most)
    return fault(fmt::format("matrices of {} rows, at most {} are supported", shape.back(), most));
  const Scalar scalar = element_of(x);
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
   "the determinant of matrices by elimination; a function, since each step has a matrix of another size"},
  {"", "Einsum", 12, 1, -1, Takes::numbers, lower_einsum,
   "a contraction over named dimensions; a function, since its equation is a language of its own", -2, 2, "", 0, einsum_in_pairs},
});
// clang-format on

}  // namespace

std::span<const OperatorRow> product_operators() { return product_rows; }

}  // namespace hoist::operators
