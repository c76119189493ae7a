// Rules between operator calls, which change whole layers before the layers are inlined. between_calls.rules has the
// rows; program_rules.cpp has the conditions that text cannot express. A test checks every row alone
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
/// The rules whose key names this pass, or a part of it, in the order of the rows; at least one.
std::vector<const ProgramRule*> operator_rules_of(std::string_view pass);

}  // namespace hoist
