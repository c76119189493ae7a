// Products of rows with weights of recurrent layers. If the weights are quantised, the run quantises the rows by the
// range of their elements. Only for ir/operators.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/operators/definitions/support.h"

namespace hoist::operators {

using Elements = std::vector<Expr>;  ///< one element of each array

/// Quantised weights: the real value is (element - zero point) * scale.
struct Quantisation {
  Expr scales = nullptr, zeros = nullptr;  ///< [D] or [D][gates*H]; null for weights of floats
};

/// The weights of one direction, in memory.
struct DirectionWeights {
  Expr rows = nullptr;    ///< [gates*H][n] of floats, or of i16 without zero points
  Expr scales = nullptr;  ///< [gates*H]; null for weights of floats
};

/// The sum of the products of two rows, formed in `wide`.
Expr row_product(Scalar wide, Expr a, Expr b);

/// Applies the function to each row and its row of numbers, which is different for each row or the same for all.
Expr by_rows(Expr rows, Expr numbers, const std::function<Expr(Expr row, Expr numbers)>& function);

/// The scales and zero points of quantised weights, operands `place` and `place` + 1, for `directions` directions. The
/// rows of the weights are their columns in the call: [D][n][gates*H] becomes [D][gates*H][n].
Result<Quantisation> read_quantisation(const OperatorContext& context, size_t place, const std::string& role,
                                       Expr& weights, int64_t directions);

/// The weights of one direction, from the weights of all directions, [D][gates*H][n].
DirectionWeights weights_of_direction(int64_t direction, Expr all, const Quantisation& quantised);

/// Applies `use` to the product of `rows` with quantised weights plus `added`, [n][m]: each row times each row of the
/// weights, plus a row of numbers, which is different for each row or the same for all. The elements of `ranged`
/// determine the quantisation range.
Expr with_quantised_product(Expr rows, Expr ranged, const DirectionWeights& weights, Expr added,
                            const std::function<Expr(Expr)>& use);

}  // namespace hoist::operators
