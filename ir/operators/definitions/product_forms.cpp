#include "ir/operators/definitions/product_forms.h"

#include <algorithm>
#include <array>

namespace hoist::operators {
namespace {

// Checks that numpy's matmul accepts arrays of these extents; returns the extents of the result.
Result<Sizes> product_extents(const Sizes& a, const Sizes& b) {
  if (a.empty() || b.empty()) return fault("a scalar cannot be a factor of a matrix product", "use Mul");
  const Nat inner_a = a.back(), inner_b = b[b.size() < 2 ? 0 : b.size() - 2];
  if (inner_a != inner_b)
    return fault(fmt::format("inner dimensions differ: {} of {} and {} of {}", inner_a.text(), text(a), inner_b.text(),
                             text(b)));
  Sizes out;
  for (size_t i = std::max(a.size(), b.size()); i > 2; --i) {
    const Nat n = i <= a.size() ? a[a.size() - i] : 1, m = i <= b.size() ? b[b.size() - i] : 1;
    if (n != m && n != Nat(1) && m != Nat(1))
      return fault(fmt::format("batch dimensions differ: {} of {} and {} of {}", n.text(), text(a), m.text(), text(b)));
    out.push_back(n == Nat(1) ? m : n);
  }
  if (a.size() > 1) out.push_back(a[a.size() - 2]);
  if (b.size() > 1) out.push_back(b.back());
  return out;
}

// f of rows and columns, inside maps over batch dimensions; an operand that lacks a dimension is captured, not copied.
// `c` may be null, or broadcasts to the rest of the result, of `rank` dimensions.
Expr product_of(Expr f, Expr a, Expr b, Expr c, int64_t rank) {
  const int64_t batch_a = std::max<int64_t>(rank_of(a) - 2, 0), batch_b = std::max<int64_t>(rank_of(b) - 2, 0);
  bool has_a = batch_a >= batch_b && rank_of(a) > 1, has_b = batch_b >= batch_a && batch_b > 0;
  if (has_a && has_b && a->type->size != b->type->size) {
    has_a = a->type->size != Nat(1);
    has_b = !has_a;
    Expr& single = has_a ? b : a;
    single = at_position(0, single);
  }
  if (!has_a && !has_b && rank_of(b) == 2) b = transpose(b), has_b = true;
  if (!has_a && !has_b) return hoist::apply(f, c == nullptr ? std::vector{a, b} : std::vector{a, b, c});
  const Nat n = has_a ? a->type->size : b->type->size;
  bool has_c = c != nullptr && rank_of(c) == rank;
  if (has_c && c->type->size != n) c = at_position(0, c), has_c = false;
  std::vector<Expr*> sides;
  for (auto [has, side] : {std::pair(has_a, &a), std::pair(has_b, &b), std::pair(has_c, &c)}) {
    if (has) sides.push_back(side);
  }
  std::vector<Expr> arrays;
  for (Expr* side : sides) arrays.push_back(*side);
  return map_zip(arrays, [&](const std::vector<Expr>& parts) {
    const std::array<Expr, 3> whole = {a, b, c};
    for (size_t i = 0; i < parts.size(); ++i) *sides[i] = parts[i];
    Expr inner = product_of(f, a, b, c, rank - 1);
    a = whole[0], b = whole[1], c = whole[2];
    return inner;
  });
}

// products f a b, products f a b c: f of each row of a and each column of b, with matrices, vectors and batches as in
// numpy's matmul, and of the element of c at the position of the result, to which c broadcasts.
Result<Expr> form_products(const FormCall& c) {
  const bool with_third = c.count() == 4;
  HOIST_TRY_VOID(c.want(with_third ? 4 : 3));
  HOIST_TRY(Expr a, c.value(1));
  HOIST_TRY(Expr b, c.value(2));
  HOIST_TRY(Sizes result, product_extents(sizes_of(a->type), sizes_of(b->type)));
  const Nat inner = sizes_of(a->type).back();
  std::vector<Type> types = {row_type(inner, a), row_type(inner, b)};
  Expr third = nullptr;
  if (with_third) {
    HOIST_TRY(third, c.value(3));
    types.push_back(element_type(third));
    const Sizes own = sizes_of(third->type);
    bool fits = own.size() <= result.size();
    for (size_t i = 1; fits && i <= own.size(); ++i) {
      const Nat& n = own[own.size() - i];
      fits = n == Nat(1) || n == result[result.size() - i];
    }
    if (!fits) return fault(fmt::format("{} does not broadcast to the product {}", text(own), text(result)));
  }
  HOIST_TRY(Expr f, c.function(0, types));
  return product_of(f, a, b, third, static_cast<int64_t>(result.size()));
}

// per_line role axis p x: p, which is a scalar or has one element for each row (axis -2) or column (axis -1) of the
// matrices x, as an array that broadcasts to x.
Result<Expr> form_per_line(const FormCall& c) {
  HOIST_TRY_VOID(c.want(4));
  HOIST_TRY(std::string role, c.word(0));
  HOIST_TRY(int64_t axis, c.integer(1));
  HOIST_TRY(Expr p, c.value(2));
  HOIST_TRY(Expr x, c.value(3));
  const Shape found = extents(p);
  if (product(found) == 1) return reshape(p, {});
  Shape shape = extents(x);
  if (shape.size() >= 2) {
    shape[shape.size() - (axis == -2 ? 1 : 2)] = 1;
    if (found == shape) return p;
    const Shape matrix(shape.end() - 2, shape.end());
    if (found == Shape{product(matrix)}) return reshape(p, matrix);
  }
  return fault(fmt::format("the {} {} is neither one number nor one for each {} of {}", role, text(found),
                           axis == -2 ? "row" : "column", text(extents(x))));
}

// per_place role axis block p x: p, which is a scalar, has one element for each position along an axis of x, or one for
// each block of positions and each position of the other dimensions, as an array that broadcasts to x.
Result<Expr> form_per_place(const FormCall& c) {
  HOIST_TRY_VOID(c.want(5));
  HOIST_TRY(std::string role, c.word(0));
  HOIST_TRY(int64_t named, c.integer(1));
  HOIST_TRY(int64_t block, c.integer(2));
  HOIST_TRY(Expr p, c.value(3));
  HOIST_TRY(Expr x, c.value(4));
  const Shape found = extents(p);
  if (product(found) == 1) return reshape(p, {});
  const Shape shape = extents(x);
  HOIST_TRY(int64_t axis, normalise_axis(shape.size() == 1 ? 0 : named, rank_of(x)));
  const auto at = static_cast<size_t>(axis);
  const int64_t n = shape[at];
  if (block < 0) return fault(fmt::format("attribute block_size is {}", block));
  if (block == 0) {
    if (found != Shape{n})
      return fault(fmt::format("the {} is {}, expected one number or [{}] for axis {}", role, text(found), n, axis));
    Shape spread(shape.size() - at, 1);
    spread[0] = n;
    return reshape(p, spread);
  }
  block = std::min(block, std::max<int64_t>(n, 1));
  Shape wanted = shape;
  wanted[at] = (n + block - 1) / block;
  if (found != wanted)
    return fault(fmt::format("the {} is {}, expected {} for blocks of {} along axis {}", role, text(found),
                             text(wanted), block, axis));
  return map_at(
      static_cast<int>(axis),
      [&](Expr line) { return slice(0, n, join(map([&](Expr value) { return repeat(block, value); }, line))); }, p);
}

constexpr auto forms_of_products = std::to_array<Form>({
    {"products", form_products},
    {"per_line", form_per_line},
    {"per_place", form_per_place},
});

}  // namespace

std::span<const Form> product_forms() { return forms_of_products; }

}  // namespace hoist::operators
