// Folds reshapes of constant weights into plain constants, so that consuming layers are contractions with constant
// weights. Exact: the bytes stay. Lowering evaluates all other computations on constants.
#pragma once

#include <string>
#include <string_view>

#include "ir/program/program.h"

namespace hoist {

/// Replaces layers that only reshape a constant (Reshape, Flatten, Identity) by the reshaped constant. Must run before
/// the search for sites.
void fold_constant_shapes(Program& program);

inline constexpr std::string_view constant_shape_step = "constant-shape";
/// Folds the layer that defines this value; false if it is not such a layer, has no consumer or is an output. Recorded
/// in the program's steps.
bool fold_constant_shape(Program& program, const std::string& value);

}  // namespace hoist
