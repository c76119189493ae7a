// Partial derivatives of the scalar functions, from the rows of functions.derivatives: a line
//
//   d tanh(x) = 1 - y * y
//
// names the operands and states one term for each, in the operands and the result y. A row holds for every float type.
// At kinks the row decides; the file's first comment lists these choices. Functions without a row have no derivative:
// their results are booleans.
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
/// The partial derivative by operand i of a function at these operands, which are floats of one type; `result` is the
/// value of the function there.
Expr partial_derivative(const DerivativeRow& row, size_t i, const std::vector<Expr>& operands, Expr result);
/// Types all rows for all float types. For developers: at build time. Errors: all faults of the file.
Result<Nothing> check_own_derivatives();

}  // namespace hoist
