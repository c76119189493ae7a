// Exact and rounding rules by family, a file each; lowering/rules/rules.h joins them. Only the sources of this folder
// and that include this.
//
// Rows move plain maps: what has a mode is decided, and only the rows `map-from-...` open a mode again, so that no rule
// undoes a decision by accident. No row takes a tuple of any length; rows name the zips of two and three that occur,
// and where a rule holds for any pattern or permutation it is a C++ function (native_rules).
#pragma once

#include <span>
#include <vector>

#include "ir/rules/rule_text.h"

namespace hoist {

/// The files *.rules of this folder.
extern const std::span<const RowFile> lowering_rule_files;
/// The rows that they hold.
const RuleRows& own_rule_rows();
/// The C++ functions and conditions that rows name.
RuleFunctions native_rules();
const ProgramConditions& program_conditions();

}  // namespace hoist
