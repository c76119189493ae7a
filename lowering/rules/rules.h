// The rules that keep values: exact ones, and rounding rules. Rules that change values are in neural_rules.
// tools/pages/contributing.md shows how to add a row; a test checks every row against the interpreter.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ir/rules/rewrite.h"

namespace hoist {

/// A tile of floats is transformed if the largest sum of magnitudes over the channels at one of its positions is below
/// 2^winograd_magnitude and at most 2^winograd_ratio times the largest one of each of its windows. The results of other
/// tiles are sums of the window's own products. In six trained networks one tile in 200 of one layer fails this test,
/// and no tile of the other layers.
inline constexpr int64_t winograd_magnitude = 60, winograd_ratio = 3;

/// The rows in the order of their families, for listings.
std::span<const RuleRow> lowering_rule_rows();
/// The same rows; each is parsed and typed at its first use. A fault in a row is a bug of hoist and aborts.
const RuleTable& lowering_rules();
/// Reads and types all of hoist's rules, including the rules between operator calls. Returns all errors of their files.
/// For the build, and for developers who change the files in HOIST_RULES_FOLDER.
Result<Nothing> check_own_rules();
/// The names of the rules that a pass applies, in this order.
std::vector<std::string_view> rules_within_terms(std::string_view pass);
/// The C++ functions that some rows name.
const RuleFunctions& lowering_rule_functions();

}  // namespace hoist
