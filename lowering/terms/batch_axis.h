// The samples of a batch in arrays, and the proof that a term computes the samples of its result separately: the term
// of a whole batch and the same term over fewer samples are compared element by element, as formulas. For passes that
// divide a batch; a term without a formula of an element (scans, scatters) is never proved.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "ir/language/expression.h"

namespace hoist {

/// The dimension of an array along which samples are adjacent: sample n has `each` positions from n * each.
struct BatchAxis {
  size_t dimension = 0;
  int64_t each = 1;

  bool operator==(const BatchAxis&) const = default;
};

/// True if `part`, whose arrays have `in_part` consecutive samples, computes the elements that `whole` has for these
/// samples of `samples`, whichever part it is. `operands` has the axes of the parameters that are divided, which have
/// the same names in both terms; all other parameters are the same arrays. The formulas are compared at corners and at
/// seeded positions in between: their positions are sums, quotients and remainders of few dimensions.
bool computes_samples(Expr whole, Expr part, const std::map<std::string, BatchAxis>& operands, BatchAxis result,
                      int64_t samples, int64_t in_part);

}  // namespace hoist
