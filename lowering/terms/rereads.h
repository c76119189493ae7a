// Terms that read elements of an array repeatedly: fused into them, its elements would be computed repeatedly.
#pragma once

#include <string>

#include "ir/language/expression.h"

namespace hoist {

/// True if evaluating every element of `e` once may read an element of parameter `name` more than once.
bool rereads(Expr e, const std::string& name);

}  // namespace hoist
