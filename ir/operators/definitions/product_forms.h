// The forms for products of matrices, and for the scales and zero points of quantised numbers. Only for ir/operators.
#pragma once

#include <span>

#include "ir/operators/definitions/form_call.h"

namespace hoist::operators {

std::span<const Form> product_forms();

}  // namespace hoist::operators
