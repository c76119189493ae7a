// The forms for windows over the spatial dimensions of an array, for convolution and pooling. Only for ir/operators.
#pragma once

#include <span>

#include "ir/operators/definitions/form_call.h"

namespace hoist::operators {

std::span<const Form> window_forms();

}  // namespace hoist::operators
