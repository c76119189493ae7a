// The type checker, for expression.cpp only: make() is the way to typed terms.
#pragma once

#include "ir/base/result.h"
#include "ir/language/expression.h"

namespace hoist {

/// The type of a node from those of its children. Errors: what was expected, what was found, which size differs.
Result<Type> infer_type(const Spec& spec);

}  // namespace hoist
