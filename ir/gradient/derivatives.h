// Partial derivatives of the scalar functions, read from functions.derivatives. A row
//
//   d tanh(x) = 1 - y * y
//
// names the operands and gives one partial derivative for each, a term in the operands and the result y. A row holds
// for every float type. At kinks the row chooses a value; the first comment of the file lists these choices. Functions
// without a row, such as comparisons, have no derivative.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/language/expression.h"
#include "ir/text/row_text.h"

namespace hoist {

struct DerivativeRow {
  Function function;
  std::vector<std::string> operands;
  std::vector<std::string> partial;  ///< texts of terms, one for each operand
  double low = -2, high = 2;         ///< the range of operands for tests
};

/// All rows, in the order of the file.
std::span<const DerivativeRow> derivative_table();
/// The row of a function, or null.
const DerivativeRow* find_derivative(Function function);
/// The partial derivative of the row's function with respect to operand i. The operands are floats of one type, and
/// `result` is the function's value for them.
Expr partial_derivative(const DerivativeRow& row, size_t i, const std::vector<Expr>& operands, Expr result);
/// Checks the types of all rows for all float types, when hoist is built. Errors: all faults of the file.
Result<Nothing> check_own_derivatives();

}  // namespace hoist
