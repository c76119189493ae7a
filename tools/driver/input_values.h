// The command line's --value: the value that a model input has from compilation on.
#pragma once

#include <string>

#include "frontend/frontend.h"
#include "ir/base/result.h"

namespace hoist {

/// Parses NAME=FILE with a .npy or .pb file, or NAME=LITERAL: a number, true, false, or nested lists of them in
/// brackets. Literals are untyped. Errors: the text has neither form, or rows have different lengths.
Result<InputValue> parse_input_value(const std::string& text);

}  // namespace hoist
