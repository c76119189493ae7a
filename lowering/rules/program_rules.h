// Rules between operator calls: what whole layers become before they are unfolded. between_calls.rules has the rows,
// program_rules.cpp the conditions that text cannot say. Every row is tested by itself
// (tests/lowering/rules/program_rules_test.cpp).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/rules/program_rule.h"

namespace hoist {

std::span<const ProgramRuleRow> operator_rule_rows();
/// Null if there is none. A rule is read at its first use; a fault in a row aborts.
const ProgramRule* operator_rule(const std::string& name);
std::vector<const ProgramRule*> operator_rules();
/// The rules whose key names this pass, or a part of one, in the order of the rows; at least one.
std::vector<const ProgramRule*> operator_rules_of(std::string_view pass);

}  // namespace hoist
