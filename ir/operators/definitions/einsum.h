// Einsum: its equation, the meaning for known extents of the operands, and the computation. A contraction of many
// operands becomes contractions of two, and a contraction of two that is a product of matrices becomes a MatMul: four
// matrices of 128 rows take 6.3e6 steps instead of 3.4e10. Dimensions of one operand alone are summed first.
// Intermediate sums are rounded to the element type, so strict compilations do not do this.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/operators/operators.h"

namespace hoist {

/// The terms of an equation, without blanks: one for each operand, and the result's if the equation has an arrow.
struct EinsumTerms {
  std::vector<std::string> operands;
  std::optional<std::string> result;
};
EinsumTerms einsum_terms(std::string equation);

/// A dimension's name: the code of its letter, or a negative number if it belongs to an ellipsis, the last one -1.
using EinsumLabels = std::vector<int>;

struct Einsum {
  /// Labels of every operand's dimensions; a label that occurs twice is a diagonal.
  std::vector<EinsumLabels> operands;
  EinsumLabels result;             ///< labels of the result; all others are summed over
  std::map<int, int64_t> extents;  ///< extent of each label; an operand may have 1 instead
};

/// Errors: a malformed equation, a wrong number of operands, unknown names, and contradictory extents.
Result<Einsum> parse_einsum(const std::string& equation, const std::vector<std::vector<int64_t>>& shapes);

/// A call with two or more operands as sums of one operand and products of two inside each other, the cheapest pair
/// first; null if that is not less work. A product of two whose dimensions are arrays, rows, columns and sums becomes
/// MatMul between views; another one stays a call of Einsum with two operands. The definition multiplies all operands
/// for every combination of all indices: four square matrices of n rows take n^5 steps, and 3 n^3 as three products of
/// matrices; ij,kl->il takes n^4 steps, and 3 n^2 if j and k are summed first. Intermediate sums have the call's
/// element type.
Expr einsum_as_products(const Spec& call);

}  // namespace hoist

namespace hoist::operators {

/// The definition: products of elements, maps over the dimensions of the result and sums over the others.
Result<std::vector<Expr>> lower_einsum(const OperatorContext& context);

}  // namespace hoist::operators
