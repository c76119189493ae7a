// The command line's --value and --initial: the value that a model input has from compilation on, or at first.
#pragma once

#include <string>

#include "frontend/frontend.h"
#include "ir/base/result.h"

namespace hoist {

/// Parses NAME=FILE with a .npy or .pb file, or NAME=LITERAL: a number, true, false, or nested lists of them in
/// brackets. Literals are untyped. Errors: the text has neither form, or rows have different lengths.
Result<InputValue> parse_input_value(const std::string& text, const std::string& option = "--value");

}  // namespace hoist
