// The type checker, for expression.cpp only: make() is the way to typed terms.
#pragma once

#include "ir/base/result.h"
#include "ir/language/expression.h"

namespace hoist {

/// Infers the type of a node from the types of its children. Errors name the expected and the actual type.
Result<Type> infer_type(const Spec& spec);

}  // namespace hoist
