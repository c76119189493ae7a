// Random bits as a term, for operators that draw numbers. The standard leaves the generator open: random.cpp documents
// it.
#pragma once

#include "ir/language/expression.h"

namespace hoist::operators {

/// [count]u64: random bits; the bits of an element depend only on the seed and its position. The upper bits are as
/// good as the lower ones.
Expr random_words(int64_t count, float seed);
/// The same for a number that changes from run to run, a scalar of u64.
Expr random_words(int64_t count, uint64_t seed, Expr run);

}  // namespace hoist::operators
