// Random bits as a term, for operators that draw numbers. The standard leaves the generator open: random.cpp says which
// it is.
#pragma once

#include "ir/language/expression.h"

namespace hoist::operators {

/// [count]u64: random bits, of which each element's depend on the seed and its position alone. The upper bits are as
/// good as the lower ones.
Expr random_words(int64_t count, float seed);

}  // namespace hoist::operators
