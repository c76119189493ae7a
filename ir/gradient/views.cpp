// The adjoints of views: the inverse view if there is one. Otherwise each element of the result is the sum of the
// adjoints of all its uses, which it gathers, so that no element is written twice.
#include <algorithm>

#include "ir/gradient/adjoints.h"

namespace hoist::gradients {
namespace {

// The first n elements; zeros after the end of the array.
Expr with_extent(const Nat& n, Expr array) {
  const Nat& found = array->type->size;
  return at_most(n, found) == Answer::yes ? slice(0, n, array) : pad_zeros(0, n - found, array);
}

// Adds overlapping rows: row i has `size` elements, for the places i, i + dilation, i + 2 dilation, ... The sum for a
// place reads one diagonal of a window over the rows.
Expr overlapped(const Nat& size, const Nat& dilation, Expr rows) {
  if (size == Nat(1)) return join(rows);
  const Nat border = (size - 1) * dilation;
  const Expr windows = slide(size, 1, dilation, pad_zeros(border, border, rows));
  const Expr window = fresh_variable(windows->type->element);
  const Expr row = fresh_variable(window->type->element), place = fresh_variable(scalar_type(Scalar::i64));
  const Expr sum = sum_over({{row, window}, {place, reversed(iota(size, Scalar::i64))}}, size, index(place, row));
  return map_over({{window, windows}}, windows->type->size, sum);
}

// Windows with a step above 1 are split into blocks of `step` elements; they then begin at consecutive blocks.
Expr adjoint_of_windows(const Nat& n, Nat size, const Nat& step, Nat dilation, Expr adjoint) {
  if (step == Nat(1)) return with_extent(n, overlapped(size, dilation, adjoint));
  if (dilation != Nat(1)) {
    adjoint = map([&](Expr window) { return zeros_between(dilation - 1, window); }, adjoint);
    size = (size - 1) * dilation + 1;
  }
  const Nat blocks = ceiling_division(size, step);
  const Expr rows = map([&](Expr window) { return split(step, pad_zeros(0, blocks * step - size, window)); }, adjoint);
  return with_extent(n, join(overlapped(blocks, 1, rows)));
}

Expr sum_of_rows(Expr rows) {
  const Expr row = fresh_variable(rows->type->element);
  return sum_over({{row, rows}}, rows->type->size, row);
}

// An array of n zeros, but with the sum of the elements at this position.
Expr sum_at(const Nat& n, const Nat& position, Expr elements) {
  return pad_zeros(position, n - position - 1, repeat(1, sum_of_rows(elements)));
}

void adjoint_of_pad(AdjointScope& scope, Expr e, Expr adjoint) {
  const Expr array = e->children[0];
  const Nat &n = array->type->size, &left = e->sizes[0], &right = e->sizes[1];
  const Expr middle = slice(left, n, adjoint), before = slice(0, left, adjoint),
             after = slice(left + n, right, adjoint);
  if (e->border == Border::value && scope.is_active(e->children[1]))
    scope.add(e->children[1], sum_of_rows(concat({before, after})));
  if (!scope.is_active(array)) return;
  const bool has_left = left != Nat(0), has_right = right != Nat(0);
  switch (e->border) {
    case Border::value:
    case Border::undefined:
      return scope.add(array, middle);
    case Border::clamp:
      scope.add(array, middle);
      if (has_left) scope.add(array, sum_at(n, 0, before));
      if (has_right) scope.add(array, sum_at(n, n - 1, after));
      return;
    case Border::mirror:
      scope.add(array, middle);
      if (has_left) scope.add(array, pad_zeros(1, n - 1 - left, reversed(before)));
      if (has_right) scope.add(array, pad_zeros(n - 1 - right, 1, reversed(after)));
      return;
    case Border::wrap: {
      // Pads the adjoint to whole periods, and adds the periods.
      const Nat begin = remainder(n - remainder(left, n), n), all = begin + left + n + right;
      const Nat end = ceiling_division(all, n) * n - all;
      return scope.add(array, sum_of_rows(split(n, pad_zeros(begin, end, adjoint))));
    }
  }
}

void adjoint_of_slice(AdjointScope& scope, Expr e, Expr adjoint) {
  const Expr array = e->children[0];
  const Nat &n = array->type->size, &start = e->sizes[0], &count = e->sizes[1];
  if (count == Nat(0)) return;
  const int64_t step = e->integers[0];
  const Nat size = std::abs(step), first = step > 0 ? start : start - (count - 1) * size;
  const Expr ordered = zeros_between(size - 1, step > 0 ? adjoint : reversed(adjoint));
  scope.add(array, pad_zeros(first, n - first - ordered->type->size, ordered));
}

// The rows of a tile are whole rows, and a last row that overlaps the row before it.
void adjoint_of_tile(AdjointScope& scope, Expr e, Expr adjoint) {
  const Expr array = e->children[0];
  const Nat &n = array->type->size, &k = e->sizes[0];
  const Nat whole = floor_division(n, k);
  scope.add(array, pad_zeros(0, n - whole * k, join(slice(0, whole, adjoint))));
  if (whole * k != n) scope.add(array, pad_zeros(n - k, 0, join(slice(whole, 1, adjoint))));
}

void adjoint_of_untile(AdjointScope& scope, Expr e, Expr adjoint) {
  const Expr rows = e->children[0];
  const Nat &n = adjoint->type->size, &k = rows->type->element->size;
  const Nat whole = floor_division(n, k), rest = n - whole * k;
  const Expr full = split(k, slice(0, whole * k, adjoint));
  if (rest == Nat(0)) return scope.add(rows, full);
  scope.add(rows, concat({full, split(k, pad_zeros(k - rest, 0, slice(whole * k, rest, adjoint)))}));
}

void adjoint_of_parts(AdjointScope& scope, Expr e, Expr adjoint) {
  Nat begin = 0;
  for (size_t i = 0; i < e->children.size(); ++i) {
    const Expr part = e->children[i];
    const auto at = static_cast<int64_t>(i);
    if (scope.is_active(part)) {
      scope.add(part, e->pattern == Pattern::concat ? slice(begin, part->type->size, adjoint)
                      : e->pattern == Pattern::zip  ? component(at, adjoint)
                                                    : get(at, adjoint));
    }
    if (e->pattern == Pattern::concat) begin = begin + part->type->size;
  }
}

void adjoint_of_get(AdjointScope& scope, Expr e, Expr adjoint) {
  const Expr whole = e->children[0];
  std::vector<Expr> parts;
  for (Type part : whole->type->parts) parts.push_back(zeros(part));
  parts[static_cast<size_t>(e->integers[0])] = adjoint;
  scope.add(whole, tuple(parts));
}

}  // namespace

Expr untransposed(Expr e, Expr array) {
  std::vector<int64_t> inverse(e->integers.size());
  for (size_t i = 0; i < inverse.size(); ++i) inverse[static_cast<size_t>(e->integers[i])] = static_cast<int64_t>(i);
  return inverse == std::vector<int64_t>{1, 0} ? transposed(array) : transpose(inverse, array);
}

void adjoint_of_view(AdjointScope& scope, Expr e, Expr adjoint) {
  const Expr x = e->children.empty() ? nullptr : e->children.back();
  switch (e->pattern) {
    case Pattern::tuple:
    case Pattern::zip:
    case Pattern::concat:
      return adjoint_of_parts(scope, e, adjoint);
    case Pattern::get:
      return adjoint_of_get(scope, e, adjoint);
    case Pattern::split:
      return scope.add(x, join(adjoint));
    case Pattern::join:
      return scope.add(x, split(x->type->element->size, adjoint));
    case Pattern::transpose:
      return scope.add(x, untransposed(e, adjoint));
    case Pattern::slide:
      return scope.add(x, adjoint_of_windows(x->type->size, e->sizes[0], e->sizes[1], e->sizes[2], adjoint));
    case Pattern::pad:
      return adjoint_of_pad(scope, e, adjoint);
    case Pattern::slice:
      return adjoint_of_slice(scope, e, adjoint);
    case Pattern::tile:
      return adjoint_of_tile(scope, e, adjoint);
    case Pattern::untile:
      return adjoint_of_untile(scope, e, adjoint);
    case Pattern::repeat:
      return scope.add(x, sum_of_rows(adjoint));
    case Pattern::index:
      if (scope.is_active(x)) scope.add(x, one_hot(x->type->size, scope.shared(e->children[0]), adjoint));
      return;
    default:
      return scope.fault(std::string(row(e->pattern).name) + (e->name.empty() ? "" : " " + e->name));
  }
}

}  // namespace hoist::gradients
