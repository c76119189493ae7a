// The neural rules of formats as rows between operator calls: reads of a value become quantise and dequantise (or a
// cast and a cast back), and a contraction changes its form if its weights are stored in a small type. The rows follow
// from the formats and schemes of neural_rules(), which hold the error models too. Constants are operands: scales and
// zero points of values, elements and scales of weights. Layers that only move elements are pulled before dequantising
// by an exact rule, which is a C++ function, because rule texts cannot express calls with arbitrary numbers of operands
// and results. Rewriting and replay apply the same functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/rules/program_rule.h"
#include "neural_rules/formats/product_weights.h"

namespace hoist {

/// The rows of a neural rule, one of which applies at each of its sites; none if the rule does not concern formats.
const std::vector<const ProgramRule*>& format_rules(std::string_view rule);

/// The straight-through gradient of a value that a rule adds, as its row states it: the gradient passes to another
/// value, and is zero where that value is outside the range of the format if the gradient is clipped.
struct StatedGradient {
  std::string value, of;
  bool is_clipped = false;
};

/// Applies the rule at a value, or at the definition of a contraction layer, and removes unused definitions. False if
/// no row applies. Errors: errors of apply_program_rule. Fills in the gradients of the added values, if wanted.
Result<bool> apply_format(std::string_view rule, Program& program, const std::string& value,
                          const ProgramArguments& arguments, std::vector<StatedGradient>* gradients = nullptr);

/// Elements, scales, zero points and bias of a contraction in the form that its rows require.
ProgramArguments arguments_of(const PreparedProduct& prepared);

inline constexpr std::string_view move_step = "move-before-dequantise";
/// A layer that only moves or selects elements that are all dequantised with one scale (or cast to f32) is moved before
/// dequantising, so that it works on the stored elements; exact. False if the layer does more, if the operands' scales
/// differ, or if the standard does not allow the small type for the operator.
bool move_before_dequantise(Program& program, const std::string& value);

/// Repeats a step of a derivation that neural rules made; the quantised weights are computed from the program's weights
/// if these are known and no calibration data determined them. False if the step is not from a neural rule.
Result<bool> repeat_neural_step(const ProgramStep& step, Program& program);

}  // namespace hoist
