// Terms that are linear in adjoints: zeros, sums, and maps and sums over variables. They are kept in the forms that
// strategies recognise: a sum of arrays is pushed into the arrays until it is `reduce (+) 0` of scalars, so that the
// adjoint of a product is again a product, and a sum of look-ups becomes one scatter that adds. Zeros are literals,
// repeated or in tuples, and vanish. Adjoints have the type of their value; integers in it have the adjoint 0. Only for
// ir/gradient. Extents are constants. The namespace keeps short names apart from locals of other files.
#pragma once

#include <vector>

#include "ir/language/expression.h"

namespace hoist::gradients {

/// The zero of a type: also for integers and booleans.
Expr zeros(Type type);
bool is_zero(Expr e);
/// True if the type contains a float.
bool has_floats(Type type);

/// The sum, element by element.
Expr sum_of(Expr a, Expr b);
/// The product of two scalars, without factors 1 and -1, inside a selection between constants.
Expr scaled(Expr adjoint, Expr factor);

/// A fresh parameter for an opened variable: closed terms mention it until bind() closes them.
Expr fresh_variable(Type type);
/// True if the term mentions the parameter.
bool mentions(Expr e, Expr variable);
/// A function of the variables with this body.
Expr bind(const std::vector<Expr>& variables, Expr body);

/// let name = value in body; without a let if the body does not mention the name, or is the name.
Expr let_in(Expr name, Expr value, Expr body);

/// A variable and the array that it runs over. All arrays of a list have the same extent.
struct Running {
  Expr variable;
  Expr array;
};
/// The array of the body for all values of the variables; n is its extent.
Expr map_over(std::vector<Running> variables, const Nat& n, Expr body);
/// The sum of the body over all values of the variables.
Expr sum_over(std::vector<Running> variables, const Nat& n, Expr body);
/// An array of n zeros with a value at a position, an integer scalar.
Expr one_hot(const Nat& n, Expr position, Expr value);

Expr reversed(Expr array);
/// pad with zeros, for elements of any type.
Expr pad_zeros(const Nat& left, const Nat& right, Expr array);
/// Each element followed by `count` zeros, without those after the last.
Expr zeros_between(const Nat& count, Expr array);
/// A component of a tuple, also inside lets.
Expr part_of(int64_t i, Expr e);
/// A component of each element of an array of tuples.
Expr component(int64_t i, Expr array);

}  // namespace hoist::gradients
