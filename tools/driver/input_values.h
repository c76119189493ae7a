// --value as the command line has it: the value that an input of a model has from the compilation on.
#pragma once

#include <string>

#include "frontend/frontend.h"
#include "ir/base/result.h"

namespace hoist {

/// NAME=FILE with a .npy or .pb file, or NAME=LITERAL: a number, true, false, or lists of them in brackets, one inside
/// another for more axes. Literals are untyped. Errors: neither of the two, rows of different lengths.
Result<InputValue> parse_input_value(const std::string& text);

}  // namespace hoist
