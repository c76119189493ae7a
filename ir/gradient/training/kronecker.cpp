#include "ir/gradient/training/kronecker.h"

#include <algorithm>

#include "ir/gradient/calls.h"
#include "ir/gradient/linear_terms.h"
#include "ir/operators/definitions/support.h"

namespace hoist {
namespace {

Expr product(Expr a, Expr b) { return gradients::build_call({"", "MatMul", 13, 1, {}, {}}, {a, b}); }

Expr filled(int64_t extent, Expr array) { return gradients::pad_zeros(0, Nat(extent) - array->type->size, array); }

}  // namespace

KroneckerBlocks::KroneckerBlocks(std::vector<int64_t> shape, int64_t largest_block) : shape_(std::move(shape)) {
  const auto side = [&](int64_t extent) {
    const int64_t count = std::max<int64_t>((extent + largest_block - 1) / largest_block, 1);
    return Side{extent, count, (extent + count - 1) / count};
  };
  rows_ = side(shape_[0]);
  if (dimensions() == 2) columns_ = side(element_count(shape_) / std::max<int64_t>(shape_[0], 1));
}

std::vector<int64_t> KroneckerBlocks::factor_shape(size_t dimension) const {
  const int64_t size = dimension == 0 ? rows_.size : columns_.size;
  return {rows_.count * columns_.count, size, size};
}

Expr KroneckerBlocks::in_blocks(Expr array) const {
  const int64_t rows = rows_.count * rows_.size, columns = columns_.count * columns_.size;
  Expr e = operators::reshape(array, {rows_.extent, columns_.extent});
  e = filled(rows, map([&](Expr row) { return filled(columns, row); }, e));
  e = operators::reshape(e, {rows_.count, rows_.size, columns_.count, columns_.size});
  return operators::reshape(transpose({0, 2, 1, 3}, e), {rows_.count * columns_.count, rows_.size, columns_.size});
}

Expr KroneckerBlocks::from_blocks(Expr blocks) const {
  Expr e = operators::reshape(blocks, {rows_.count, columns_.count, rows_.size, columns_.size});
  e = operators::reshape(transpose({0, 2, 1, 3}, e), {rows_.count * rows_.size, columns_.count * columns_.size});
  e = map([&](Expr row) { return slice(0, columns_.extent, row); }, slice(0, rows_.extent, e));
  return operators::reshape(e, shape_);
}

Expr kronecker_products(size_t dimension, Expr blocks, const DefineValue& define) {
  const Expr turned = transpose({0, 2, 1}, blocks);
  // The right operand lies in memory as rows: strided reads of it take four times as long.
  if (dimension == 0) return define("products", product(blocks, define("turned", operators::in_memory(turned))));
  return define("products", product(define("turned", turned), blocks));
}

Expr between_roots(Expr blocks, const std::vector<Expr>& roots, const DefineValue& define) {
  const Expr left = define("left", product(roots[0], blocks));
  return roots.size() == 1 ? left : define("between", product(left, roots[1]));
}

}  // namespace hoist
