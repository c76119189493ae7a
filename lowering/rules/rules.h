// The rules that keep the numbers: exact ones and those that differ in rounding only. Rules that change values are in
// neural_rules. lowering/README.md says how to add a row; every row is tested by itself against the interpreter.
#pragma once

#include <span>

#include "ir/rules/rewrite.h"

namespace hoist {

/// The rows in the order of their families, for listings.
std::span<const RuleRow> lowering_rule_rows();
/// The same, loaded once; a fault in a row is a fault of hoist: aborts with all messages.
const RuleTable& lowering_rules();
/// The C++ functions that some rows name.
const RuleFunctions& lowering_rule_functions();

}  // namespace hoist
