// The order of an array's elements in a term that moves them, for the cases that strategies cannot handle. On CPUs a
// vector of the result loads vectors of the operand only if adjacent elements are adjacent in both. Otherwise every sum
// loads each lane separately; an array materialised in the consumer's order is moved once. Extents have to be
// constants.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "ir/language/expression.h"

namespace hoist {

/// The path to a folded array whose elements are moved in runs shorter than a vector, as by pixel shuffles (depth to
/// space): the innermost dimension of the term consists of such runs, or is a part of a row. Empty if rows stay whole,
/// since strategies store those in an order that suits both sides.
std::optional<Path> shuffled_fold(Expr term, int64_t vector_width);

/// True if adjacent elements in the rows of the term belong to different rows of the array that it moves, as in a
/// softmax over the columns of a matrix: no vector or loop then shares the values that a row shares. Elementwise
/// functions applied afterwards make no difference.
bool rows_are_strided(Expr term);

/// The dimension of such a term along which elements are contiguous in memory; empty if there is none.
std::optional<size_t> dimension_in_lines(Expr term);

/// False if the largest part of the term that only moves the named array divides this dimension or joins it with
/// another, as views do that rearrange rows of tokens into an image.
bool keeps_dimension(Expr term, const std::string& name, size_t dimension);

struct TransposedOperand {
  Path place;
  const char* rule;  ///< materialises the operand in the order of its columns
};
/// The path to the right operand of a matrix product whose columns are rows in memory, as in MatMul(x, Transpose(y));
/// the term's vectors run over its columns. Only for computed arrays and inputs, since constants are packed in the
/// order of their use. Empty if the result has so few rows that moving the operand takes longer.
std::optional<TransposedOperand> transposed_operand(Expr term,
                                                    const std::function<bool(const std::string&)>& is_constant);

/// True if the term only moves an array and elements that are adjacent in its rows are strided in the array.
bool moves_in_steps(Expr term);

/// The path to an array of scalar sums without free variables that other sums gather from a table of positions, each
/// more than once.
std::optional<Path> resampled_sums(Expr term);

/// True if the term equals the only array that it uses: views that keep every element in place.
bool keeps_places(Expr term);

}  // namespace hoist
