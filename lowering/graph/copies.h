// Values that only repeat others in a program of operator calls, as exporters leave them: copies, casts to the same
// type, dropout, transpositions and reshapes that undo each other, layers that stand twice. Readers of such a value
// read the first one instead, so that rules see what a layer really reads, and nothing is computed twice. Of
// definitions that are terms already, which the results of a layer keep in memory each for itself, those that stand
// twice are one.
#pragma once

#include <string>

#include "ir/program/program.h"

namespace hoist {

/// The pass "drop-copies", with `share_equal` for layers that stand twice too. It unfolds the calls of one operand, so
/// it is linear in layers.
void drop_copies(Program& program, bool share_equal);

/// Whether the value is the original, element by element: both have the same definition, or there are only views
/// between them, which leave every element in its place together.
bool repeats(const Program& program, const std::string& value, const std::string& original);

}  // namespace hoist
