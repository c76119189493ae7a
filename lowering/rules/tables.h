// Exact and rounding rules by family, one file each; lowering/rules/rules.h joins them. Only the sources of this folder
// include this header.
//
// Rows move plain maps: a mode is a decision, and only the rows `map-from-...` remove a mode again, so that no rule
// undoes a decision by accident. No row accepts a tuple of any length: rows name zips of two and of three. A rule that
// holds for any pattern or permutation is a C++ function (native_rules).
#pragma once

#include <span>
#include <vector>

#include "ir/rules/rule_text.h"

namespace hoist {

/// The files *.rules of this folder.
extern const std::span<const RowFile> lowering_rule_files;
/// The rows of the files; each call reads them. Errors: errors of parse_rules.
Result<RuleRows> read_lowering_rules();
/// The same rows, which are read once.
const RuleRows& own_rule_rows();
/// The C++ functions and conditions that rows name.
RuleFunctions native_rules();
const ProgramConditions& program_conditions();

}  // namespace hoist
