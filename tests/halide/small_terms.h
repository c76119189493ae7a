// Terms that tests of the Halide backend build their own terms from.
#pragma once

#include <vector>

#include "ir/language/expression.h"

namespace hoist::testing {

inline Type array(const std::vector<Nat>& sizes, Scalar s = Scalar::f32) { return array_type(sizes, scalar_type(s)); }
inline Expr zero() { return literal(Scalar::f32, 0); }
inline Expr copy(Expr e, Mode mode = Mode::vec) {
  return map([](Expr x) { return x; }, e, mode);
}

inline Expr real(double v) { return literal(Scalar::f32, v); }
inline Expr x(const std::vector<Nat>& sizes, Scalar s = Scalar::f32) { return parameter("x", array(sizes, s)); }
inline Expr y(const std::vector<Nat>& sizes, Scalar s = Scalar::f32) { return parameter("y", array(sizes, s)); }
inline Expr twice(Expr v) { return operator_add(v, v); }
inline Expr plus(Expr a, Expr b) { return operator_add(a, b); }

/// A loop nest that copies a rank-2 array: one group per row, one element at a time.
inline Expr store2(Expr e, Mode inner = Mode::seq) {
  return map([&](Expr row) { return map([](Expr v) { return identity(v); }, row, inner); }, e, Mode::group, 0);
}
inline Expr store1(Expr e, Mode mode = Mode::seq) {
  return map([](Expr v) { return identity(v); }, e, mode);
}

}  // namespace hoist::testing
