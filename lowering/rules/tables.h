// The tables of exact and rounding rules by family; lowering/rules.h joins them. Only that and the tables include this.
#pragma once

#include <vector>

#include "ir/rewrite.h"

namespace hoist {

std::vector<RuleRow> fusion_rules();
std::vector<RuleRow> split_rules();
std::vector<RuleRow> layout_rules();
std::vector<RuleRow> interchange_rules();
std::vector<RuleRow> stencil_rules();
std::vector<RuleRow> reduction_rules();
std::vector<RuleRow> mapping_rules();
std::vector<RuleRow> arithmetic_rules();
std::vector<RuleRow> nest_rules();
/// The C++ functions that rows of these tables name.
RuleFunctions native_rules();

}  // namespace hoist
