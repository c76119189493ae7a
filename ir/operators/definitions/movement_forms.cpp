#include "ir/operators/definitions/movement_forms.h"

#include <algorithm>
#include <array>

namespace hoist::operators {
namespace {

// across axes f... x: the functions one after the other on each row along each of the axes in turn; their last
// parameter is the known position in the list of axes.
Result<Expr> form_across(const FormCall& c) {
  if (c.count() < 3) return c.want(3).errors();
  const size_t last = c.count() - 1;
  HOIST_TRY(Expr x, c.value(last));
  HOIST_TRY(Shape axes, c.integers(0));
  HOIST_TRY_VOID(normalise_axes(axes, rank_of(x)));
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + rank_of(x) : axes[i];
    for (size_t k = 1; k < last; ++k) {
      HOIST_TRY(Expr f, c.function(k, {type_under(x, axis)}, {static_cast<int64_t>(i)}));
      x = map_at(static_cast<int>(axis), calling(f), x);
      HOIST_TRY_VOID(check_sizes(sizes_of(x->type)));
    }
  }
  return x;
}

// bordered value before after x: elements of this value before and after the elements of x, which may be rows; negative
// amounts remove elements.
Result<Expr> form_bordered(const FormCall& c) {
  HOIST_TRY_VOID(c.want(4));
  HOIST_TRY(Expr x, c.value(3));
  HOIST_TRY(Expr value, c.value(0, element_type(x)));
  HOIST_TRY(int64_t before, c.integer(1));
  HOIST_TRY(int64_t after, c.integer(2));
  for (int64_t amount : {before, after}) {
    if (amount < -most_elements || amount > most_elements)
      return fault(fmt::format("pads hold {}, which is out of range", amount));
  }
  const int64_t n = extents(x)[0], skip = std::max<int64_t>(-before, 0), drop = std::max<int64_t>(-after, 0);
  if (skip + drop > n) return fault(fmt::format("negative pads take {} of {} elements", skip + drop, n));
  return pad_with(std::max<int64_t>(before, 0), std::max<int64_t>(after, 0), value,
                  slice(skip == n ? 0 : skip, n - skip - drop, x));
}

// The element at position p of a padded row of n.
int64_t padded_source(const std::string& mode, int64_t p, int64_t n) {
  if (mode == "edge") return std::clamp<int64_t>(p, 0, n - 1);
  if (mode == "wrap") return ((p % n) + n) % n;
  int64_t period = std::max<int64_t>(2 * (n - 1), 1);  // reflect
  p = ((p % period) + period) % period;
  return p < n ? p : period - p;
}

// padded mode before after x: the elements that the mode (reflect, edge, wrap) adds before and after x.
// If no side adds more elements than the array has, the form is a border of the language; otherwise it uses a table of
// positions.
Result<Expr> form_padded(const FormCall& c) {
  HOIST_TRY_VOID(c.want(4));
  HOIST_TRY(Expr x, c.value(3));
  HOIST_TRY(std::string mode, c.word(0));
  HOIST_TRY(int64_t before, c.integer(1));
  HOIST_TRY(int64_t after, c.integer(2));
  const int64_t n = extents(x)[0];
  if (before + after == 0) return x;
  if (n == 0) return fault("there are no elements to pad with");
  if (before + n + after > most_table_entries)
    return fault(fmt::format("{} elements are padded to {}; the limit is {} with mode {}", n, before + n + after,
                             most_table_entries, mode));
  if (mode == "edge") return pad(before, after, Border::clamp, x);
  if (mode == "wrap" && before <= n && after <= n) return pad(before, after, Border::wrap, x);
  if (mode == "reflect" && before < n && after < n) return pad(before, after, Border::mirror, x);
  Shape sources;
  for (int64_t i = 0; i < before + n + after; ++i) sources.push_back(padded_source(mode, i - before, n));
  return map([&](Expr i) { return index(i, x); }, constant(Tensor::of(Scalar::i64, {before + n + after}, sources)));
}

// broadcast shape x: x repeated along new dimensions and dimensions of extent 1, to the extents to which both
// broadcast.
Result<Expr> form_broadcast(const FormCall& c) {
  HOIST_TRY_VOID(c.want(2));
  HOIST_TRY(Expr x, c.value(1));
  HOIST_TRY(Shape wanted, c.integers(0));
  const Shape from = extents(x);
  Shape to = wanted;
  if (to.size() < from.size()) to.insert(to.begin(), from.size() - to.size(), 1);
  for (size_t i = 0; i < from.size(); ++i) {
    int64_t& n = to[to.size() - from.size() + i];
    if (n == 1)
      n = from[i];
    else if (from[i] != 1 && from[i] != n)
      return fault(fmt::format("{} does not broadcast to {}: {} and {} differ", text(from), text(wanted), from[i], n));
  }
  HOIST_TRY_VOID(check_extents(to));
  return broadcast_to(x, to);
}

// reshape [a][b] x: the same elements, row-major, in another shape.
Result<Expr> form_reshape(const FormCall& c) {
  HOIST_TRY_VOID(c.want(1));
  HOIST_TRY(Expr x, c.value(0));
  HOIST_TRY(Shape to, c.sizes());
  if (product(to) != product(extents(x)))
    return fault(fmt::format("{} does not have the elements of {}", text(to), text(extents(x))));
  return reshape(x, to);
}

// scalar x: the element of an array of one element.
Result<Expr> form_scalar(const FormCall& c) {
  HOIST_TRY_VOID(c.want(1));
  HOIST_TRY(Expr x, c.value(0));
  if (product(extents(x)) != 1) return fault(text(extents(x)) + " is not one number");
  return reshape(x, {});
}

// permute p x: dimension i of the result is dimension p[i], counted from the end if it is negative; without p all
// dimensions in reverse order.
Result<Expr> form_permute(const FormCall& c) {
  HOIST_TRY_VOID(c.want(2));
  HOIST_TRY(Expr x, c.value(1));
  Shape permutation;
  for (int64_t i = rank_of(x); i-- > 0;) permutation.push_back(i);
  if (!c.is_absent(0)) {
    HOIST_TRY(permutation, c.integers(0));
  }
  HOIST_TRY(Shape sorted, normalise_axes(permutation, rank_of(x)));
  if (static_cast<int64_t>(sorted.size()) != rank_of(x))
    return fault(fmt::format("perm has {} values for {} dimensions", sorted.size(), rank_of(x)));
  for (int64_t& p : permutation) p = p < 0 ? p + rank_of(x) : p;
  return permute(permutation, x);
}

// numbers T list: an array of known numbers.
Result<Expr> form_numbers(const FormCall& c) {
  HOIST_TRY_VOID(c.want(2));
  HOIST_TRY(Scalar scalar, c.scalar(0));
  HOIST_TRY(Shape list, c.known<Shape>(1, "a list that is known"));
  return constant(Tensor::of(scalar, {std::ssize(list)}, list));
}

constexpr auto forms_of_movement = std::to_array<Form>({
    {"across", form_across},
    {"bordered", form_bordered},
    {"padded", form_padded},
    {"broadcast", form_broadcast},
    {"reshape", form_reshape},
    {"scalar", form_scalar},
    {"permute", form_permute},
    {"numbers", form_numbers},
});

}  // namespace

std::span<const Form> movement_forms() { return forms_of_movement; }

}  // namespace hoist::operators
