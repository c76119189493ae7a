// An estimate of the interpreter's steps for one element of a value, so that callers avoid elements that are too
// expensive: one element may be a sum over a billion others. Derived from the term alone, for limits; not a time.
#pragma once

#include <cstdint>

#include "ir/language/expression.h"

namespace hoist {

/// For a closed term with constant sizes; saturates at the largest int64_t. All branches of a selection are counted.
int64_t interpretation_steps(Expr e);

/// The number of elements, at most `wanted`, that the interpreter computes within about a second: at least 1, but 0 if
/// one element takes minutes.
int64_t affordable_elements(Expr e, int64_t wanted);

}  // namespace hoist
