// Weights that a model reshapes before it uses them become plain constants, so that the layers which multiply by them
// are products with constant weights. Exact: the bytes stay. Everything else that is made of constants is lowering's to
// evaluate.
#pragma once

#include <string>
#include <string_view>

#include "ir/program/program.h"

namespace hoist {

/// Replaces layers that only give a constant another shape (Reshape, Flatten, Identity) by the reshaped constant. Call
/// it before sites are looked for.
void fold_constant_shapes(Program& program);

inline constexpr std::string_view constant_shape_step = "constant-shape";
/// The same of the layer that defines this value; false where it does not, where nobody reads the value or it is an
/// output. Recorded in the program's steps.
bool fold_constant_shape(Program& program, const std::string& value);

}  // namespace hoist
