// The neural rules of formats as rows between operator calls: reads of a value become quantise and dequantise (or a
// cast and a cast back), and a contraction changes its form if its weights are stored in a small type. The rows follow
// from the formats and schemes of neural_rules(), which hold the error models too. Constants are operands: scales and
// zero points of values, elements and scales of weights. Layers that only move elements are pulled before dequantising
// by an exact rule, which is a C++ function, because texts of rules have no calls with any number of operands and
// results. Rewriting and replay apply the same functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/rules/program_rule.h"
#include "neural_rules/formats/product_weights.h"

namespace hoist {

/// The rows of a neural rule, one of which applies at a site of its; none where the rule is not about formats.
const std::vector<const ProgramRule*>& format_rules(std::string_view rule);

/// Applies the rule at a value, or at the definition of a contraction layer, and removes unused definitions. False if
/// no row applies. Errors: errors of apply_program_rule.
Result<bool> apply_format(std::string_view rule, Program& program, const std::string& value,
                          const ProgramArguments& arguments);

/// Elements, scales, zero points and bias of a contraction in the form that its rows require.
ProgramArguments arguments_of(const PreparedProduct& prepared);

inline constexpr std::string_view move_step = "move-before-dequantise";
/// A layer that only moves or selects elements that are all dequantised with one scale (or cast to f32) works on the
/// stored elements, and dequantising comes after it; exact. False if the layer does more, if an operand differs, or if
/// the standard does not allow the operator the small type.
bool move_before_dequantise(Program& program, const std::string& value);

/// A step of a derivation that neural rules made, done again, with the numbers of weights computed from the program's
/// where those are known and data have not decided them. False where the step is none of them.
Result<bool> repeat_neural_step(const ProgramStep& step, Program& program);

}  // namespace hoist
