// The rules that keep the numbers: exact ones and those that differ in rounding only. Rules that change values are in
// neural_rules. tools/pages/contributing.md says how to add a row; every row is tested by itself against the
// interpreter.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ir/rules/rewrite.h"

namespace hoist {

/// The rows in the order of their families, for listings.
std::span<const RuleRow> lowering_rule_rows();
/// The same rows, each parsed and typed at its first use; a fault in a row is a fault of hoist: aborts.
const RuleTable& lowering_rules();
/// Reads and types all of hoist's rules, those between operator calls too. Errors: everything that is wrong in their
/// files. For developers, at build and where HOIST_RULES_FOLDER names files that may have changed.
Result<Nothing> check_own_rules();
/// The names of those that a pass applies, in this order.
std::vector<std::string_view> rules_within_terms(std::string_view pass);
/// The C++ functions that some rows name.
const RuleFunctions& lowering_rule_functions();

}  // namespace hoist
