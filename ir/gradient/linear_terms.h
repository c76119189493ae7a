// Terms that are linear in adjoints: zeros, sums, and maps and sums over variables. Their forms are known to the
// strategies: a sum of arrays moves inwards until it is `reduce (+) 0` of scalars, so the adjoint of a contraction is a
// contraction, and a sum of adjoints of look-ups is one scatter that adds. A zero is a literal, a repeated zero or a
// tuple of zeros; sums and products with a zero are simplified. An adjoint has the type of its value, and its integers
// are 0. Extents are constants. Only for ir/gradient: the namespace keeps short names apart from locals of other files.
#pragma once

#include <vector>

#include "ir/language/expression.h"

namespace hoist::gradients {

/// The zero of a type: also for integers and booleans.
Expr zeros(Type type);
bool is_zero(Expr e);
/// True if the type contains a float.
bool has_floats(Type type);

/// Operations on two scalars.
inline Expr times(Expr a, Expr b) { return call(Function::multiply, {a, b}); }
inline Expr minus(Expr a, Expr b) { return call(Function::subtract, {a, b}); }
inline Expr over(Expr a, Expr b) { return call(Function::divide, {a, b}); }
/// The elementwise sum.
Expr sum_of(Expr a, Expr b);
/// The product of two scalars. Factors 1 and -1 need no product, and a factor that selects a constant becomes a
/// selection of products.
Expr scaled(Expr adjoint, Expr factor);

/// A fresh parameter that replaces the variable of an opened function until bind() makes a function again.
Expr fresh_variable(Type type);
/// True if the term mentions the parameter.
bool mentions(Expr e, Expr variable);
/// A function of the variables with this body.
Expr bind(const std::vector<Expr>& variables, Expr body);

/// let name = value in body, without a let if the body does not mention the name or is the name itself.
Expr let_in(Expr name, Expr value, Expr body);

/// A variable and the array that it runs over. All arrays in a list of variables have the same extent.
struct Running {
  Expr variable;
  Expr array;
};
/// The array of the body's values while the variables run over their arrays; n is the extent.
Expr map_over(std::vector<Running> variables, const Nat& n, Expr body);
/// The sum of the body's values while the variables run over their arrays.
Expr sum_over(std::vector<Running> variables, const Nat& n, Expr body);
/// An array of n zeros, but with the value at this position, an integer scalar.
Expr one_hot(const Nat& n, Expr position, Expr value);

/// The array with its first two dimensions exchanged. Nested maps over independent arrays change places, so the
/// transposed product of two matrices is a product, and its right factors give the columns.
Expr transposed(Expr array);
Expr reversed(Expr array);
/// Pads with zeros; elements may have any type.
Expr pad_zeros(const Nat& left, const Nat& right, Expr array);
/// The array with `count` zeros between adjacent elements.
Expr zeros_between(const Nat& count, Expr array);
/// A component of a tuple, which may be inside lets.
Expr part_of(int64_t i, Expr e);
/// A component of each element of an array of tuples.
Expr component(int64_t i, Expr array);

}  // namespace hoist::gradients
