// From a term to stages and programs; see evaluate_program.h for what those are and evaluate_compile.cpp for how.
#pragma once

#include <memory>

#include "ir/evaluate.h"
#include "ir/evaluate_program.h"

namespace hoist {

/// The last stage's buffer is the result. Empty when the term has a form that only the interpreter computes: an
/// accumulator whose elements mix inside another fold, or nesting too deep to compile.
std::unique_ptr<Compiled> compile(Expr e, const Bindings& bindings);

}  // namespace hoist
