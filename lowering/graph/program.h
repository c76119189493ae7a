// The parts of passes over operator calls that are written in C++: evaluation of constants and inlining of operator
// definitions. Later passes (grouping.h, storage.h) merge definitions and choose layouts; they do not belong here.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "ir/base/result.h"
#include "ir/program/program.h"

namespace hoist {

/// Treatment of layers that make a larger array from constants alone, such as f32 weights from 4-bit weights.
/// `computed`: at compile time, which runs fast. `stored`: in the kernels, so that the bundle holds the constants as
/// the model stores them: 54 kB instead of 316 kB for ResNet-8 with 4-bit weights, at 2.2x the run time (two busy
/// cores). The objective size requires `stored`, otherwise the counted bytes would not be the bundle's.
enum class ConstantUse : uint8_t { computed, stored };

/// Limits, over the whole model, for layers computed at compile time because all their inputs are known. Work beyond
/// the limits stays for the device, as if the inputs were unknown. Half is reserved for small results, because shapes
/// must be known however much the weights cost. The default limits grow by 32 operations and 8 bytes for each byte of
/// the model's constants.
struct FoldingBudget {
  /// Calls, casts and selections, and moved elements. Winograd's transform of 512 filters of 2048 channels has 1.2
  /// billion and takes half a second on one core.
  int64_t operations = 8'000'000'000;
  int64_t bytes = int64_t{4} << 30;  ///< bytes of all results that the program keeps at a time, and of the temporaries
                                     ///< of each evaluation

  bool operator==(const FoldingBudget&) const = default;
};

/// The rows of a product up to which one register tile has all of them, so that a kernel widens each weight once.
inline constexpr int64_t thin_rows = 8;
/// No array of floats has so many bytes.
inline constexpr int64_t never_narrow = INT64_MAX;

/// Evaluates definitions that use only constants, within the budget: shape arithmetic, and weights computed from other
/// weights. Float weights of at least `narrow_bytes` are left to the kernels if their constants have at most half the
/// bytes and only products of at most thin_rows rows read them: these run at the speed of the memory. `only` restricts
/// it to the definitions of these values. Evaluator errors name the layer.
Result<Nothing> fold_constants(Program& program, ConstantUse use, const FoldingBudget& budget,
                               int64_t narrow_bytes = never_narrow, const std::set<std::string>* only = nullptr);

/// Evaluates the float weights that fold_constants left to kernels and that no kernel has taken.
Result<Nothing> fold_widened(Program& program, const FoldingBudget& budget);

/// True if all parameters of a term are constants of the program.
bool reads_constants_alone(const Program& program, Expr e);

/// The values that definitions define, for passes that ask for many of them: is_definition searches the program.
std::set<std::string> defined_values(const Program& program);

/// Derives from the definition's term the properties that the choice of storage needs: weights, parts and layout.
void describe_definition(Definition& definition);

/// Replaces every operator call by its definition and evaluates sums over constants inside. Exact.
Result<Nothing> inline_operators(Program& program, const FoldingBudget& budget);

}  // namespace hoist
