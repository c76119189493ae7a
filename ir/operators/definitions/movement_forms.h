// The forms that move elements: along lists of axes, into borders, to other shapes. Only for ir/operators.
#pragma once

#include <span>

#include "ir/operators/definitions/form_call.h"

namespace hoist::operators {

std::span<const Form> movement_forms();

}  // namespace hoist::operators
