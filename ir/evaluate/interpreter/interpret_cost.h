// About how many steps the interpreter takes for one element of a value, so that whoever asks for elements knows when
// not to: one element may be a sum over a billion others. An estimate from the term alone, for limits; not a time.
#pragma once

#include <cstdint>

#include "ir/language/expression.h"

namespace hoist {

/// For a closed term with constant sizes; at most the largest number there is. Branches of a selection are counted as
/// if both were taken.
int64_t interpretation_steps(Expr e);

/// How many of the wanted elements the interpreter computes within a second or so: at least one, but none where one
/// alone takes minutes.
int64_t affordable_elements(Expr e, int64_t wanted);

}  // namespace hoist
