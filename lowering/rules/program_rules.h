// Rules between operator calls: what whole layers become before they are unfolded. Every row is tested by itself
// (tests/lowering/rules/program_rules_test.cpp).
//
// Right sides compute constants in f64 and round once. Models in quantise-dequantise form become integer products in
// ONNX's own operators: a dequantise layer is a factor, so a product of two is a factor behind exact integer sums, and
// what follows (bias, residual sum, quantise) stays as it is, for grouping to fuse. Sums of (x - zero point) * w are
// sums of x * w less the zero point times the sum of w, which is a constant; padding is the zero point as a byte, which
// the stored border provides (`Storage::border`). Quantising multiplies by the reciprocal: a division is a third of
// such a kernel.
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
