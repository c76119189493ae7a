// The neural rules of formats as rows between operator calls: what the reads of a value become (quantised and
// dequantised, or cast and cast back) and what a product becomes whose weights are stored in a small type. The rows
// follow from the formats and schemes of neural_rules(), which hold the error models too. What they compute with
// comes in as constants: scales and zero points of values, numbers and scales of weights. Layers that only move numbers
// are pulled in front of dequantising by an exact rule, which is a C++ function, since texts of rules have no calls
// with any number of operands and results. What a rewrite applies here, replay applies again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/rules/program_rule.h"
#include "neural_rules/formats/product_weights.h"

namespace hoist {

/// The rows of a neural rule, one of which applies at a site of its; none where the rule is not about formats.
const std::vector<const ProgramRule*>& format_rules(std::string_view rule);

/// The rule at a value, or at the definition that a product layer computes; what nobody reads any more goes. False
/// where no row applies. Errors are those of apply_program_rule.
Result<bool> apply_format(std::string_view rule, Program& program, const std::string& value,
                          const ProgramArguments& arguments);

/// Numbers, scales, zero points and bias of a product as its rows want them.
ProgramArguments arguments_of(const PreparedProduct& prepared);

inline constexpr std::string_view move_step = "move-before-dequantise";
/// A layer that only moves or picks numbers, all of which are dequantised with one scale (or cast to f32), works on the
/// small ones, and dequantising comes behind it; exact. False where it does not, where an operand is another number, or
/// where the standard does not let the operator take the small type.
bool move_before_dequantise(Program& program, const std::string& value);

/// A step of a derivation that neural rules made, done again, with the numbers of weights computed from the program's
/// where those are known and data have not decided them. False where the step is none of them.
Result<bool> repeat_neural_step(const ProgramStep& step, Program& program);

}  // namespace hoist
