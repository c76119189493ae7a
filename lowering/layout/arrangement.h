// How the elements of an array stand in a term that moves them, where strategies cannot make up for it: on CPUs a
// vector of the result takes vectors of what it reads only where neighbours in one are neighbours in the other. Where
// they are not, each lane is read apart, by every sum again; kept in memory in the order in which it is read, an array
// is moved once. Extents have to be numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "ir/language/expression.h"

namespace hoist {

/// Where in the term an array of folds begins whose elements change places in runs shorter than a vector, as pixel
/// shuffles (depth to space) make them: the innermost dimension of the term is put together of such runs, or is one of
/// them, a part of a row. None where rows stay whole: strategies store those in an order that suits both.
std::optional<Path> shuffled_fold(Expr term, int64_t vector_width);

/// Whether the term moves what it computes such that neighbours in its rows are those of other rows there, as in a
/// softmax over the columns of a matrix: what a row shares is then shared by nothing that one vector or loop computes.
/// What a function does to each element by itself afterwards (an activation) changes nothing about that.
bool rows_lie_across(Expr term);

/// Of such a term, the dimension along which neighbours are neighbours in memory as well; nothing where there is none.
std::optional<size_t> dimension_in_lines(Expr term);

struct TransposedOperand {
  Path place;
  bool rows_first = false;  ///< the term has the columns as rows too, and transposes none of them
};
/// Where the right operand of a product of matrices stands whose columns are rows in memory, as those of
/// MatMul(x, Transpose(y)) are: the term's vectors run over its columns. Of computed arrays and inputs alone, since
/// constants are packed in the order in which they are read; none where so few rows of the result read it that moving
/// it takes longer.
std::optional<TransposedOperand> transposed_operand(Expr term,
                                                    const std::function<bool(const std::string&)>& is_constant);

/// Whether the term only moves an array, and neighbours in its rows are elements some positions apart there.
bool moves_in_steps(Expr term);

/// Where in the term sums stand, an array of numbers without free variables, that other sums read at positions from a
/// table, each of them more often than once.
std::optional<Path> resampled_sums(Expr term);

/// Whether a term that reads one array is that array: views alone, after which every element is in its place.
bool keeps_places(Expr term);

}  // namespace hoist
