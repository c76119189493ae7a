// Splits a definition into several kernels, as its term specifies: each `materialise global` becomes a definition of
// its own before it. Rules and users write `materialise global`; the split only names these arrays, so the value is the
// same bit for bit. An array materialised inside a map that depends on the map's variable is computed for all elements
// at once, by a map of its own over the same array. That array and values bound by a let are computed in both kernels,
// unless a rule materialises them too.
//
// Materialised arrays are stored in the dimension order of their terms, since the rule that wrote the term chose it for
// the consumer. Arrays that use constants alone, such as transformed filters, become constants.
#pragma once

#include <string>

#include "ir/program/program.h"
#include "ir/rules/program_index.h"

namespace hoist {

/// Splits the definition of that value at every `materialise global` and every host function in its term; returns false
/// if there is none. The arrays are named after the value (conv1.stage1, ...). A whole convolution is stored like any
/// convolution, every other array in the dimension order of its term. Records `outline-kernels`. Errors, which leave
/// the program unchanged: an array that depends on the variables of a fold or another loop, or whose elements are not
/// scalars.
Result<bool> outline_definition(ProgramIndex& index, const std::string& value);

}  // namespace hoist
