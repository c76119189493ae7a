// Removes values that repeat other values in a program of operator calls, as exporters leave them: copies, casts to the
// same type, dropout, pairs of transpositions and reshapes that undo each other, repeated layers. Uses of such a value
// are redirected to the original, so that rules match the real operands and nothing is computed twice. Definitions that
// are terms already, such as materialised parts of a layer's several results, are merged if they are equal.
#pragma once

#include <string>

#include "ir/program/program.h"

namespace hoist {

/// The pass "drop-copies"; `share_equal` also merges repeated layers. It inlines the calls with one operand and takes
/// time linear in layers.
void drop_copies(Program& program, bool share_equal);

/// True if the value equals the original element by element: both have the same definition, or the views between them
/// compose to the identity.
bool repeats(const Program& program, const std::string& value, const std::string& original);

}  // namespace hoist
