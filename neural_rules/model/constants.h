// Weights that a model reshapes before it uses them become plain constants, so that the layers which multiply by them
// are products with constant weights. Exact: the bytes stay. Everything else that is made of constants is lowering's to
// evaluate.
#pragma once

#include "ir/program/program.h"

namespace hoist {

/// Replaces layers that only give a constant another shape (Reshape, Flatten, Identity) by the reshaped constant;
/// recorded in the program's steps. Call it before sites are looked for.
void fold_constant_shapes(Program& program);

}  // namespace hoist
