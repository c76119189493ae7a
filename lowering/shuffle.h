// Results of folds whose elements change places in short runs, as pixel shuffles (depth to space) make them: the
// innermost dimension of the stored array is put together of runs that are shorter than a vector, so that no vector of
// it is one of what the folds read. A kernel of such a term gathers each operand of each sum; kept in memory first, the
// sums are vectors, and only their results are gathered. Results that keep whole rows, or whose rows are one dimension
// of the fold's, are no such case: strategies store them in an order that suits both.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/expression.h"

namespace hoist {

/// Where in the term the array of folds begins; none where it is not shuffled so. Extents have to be numbers.
std::optional<Path> shuffled_fold(Expr term, int64_t vector_width);

}  // namespace hoist
