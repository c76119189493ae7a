// Rules between operator calls: what whole layers become before they are unfolded. Every row is tested by itself
// (tests/lowering/program_rules_test.cpp).
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ir/rules/program_rule.h"

namespace hoist {

std::span<const ProgramRuleRow> operator_rule_rows();
/// The rules of these names, in this order.
std::vector<const ProgramRule*> operator_rules(std::span<const std::string_view> names);
const std::vector<const ProgramRule*>& operator_rules();

}  // namespace hoist
