// What the passes over operator calls have in C++: constants are evaluated, and definitions put in the place of calls.
// Later passes over the program (grouping.h, storage.h) merge definitions and choose how values are
// stored.
#pragma once

#include <set>
#include <string>

#include "ir/base/result.h"
#include "ir/program/program.h"

namespace hoist {

/// Layers that make a larger array of constants alone, f32 of weights in 4 bits say: computed at compile time, which is
/// fast, or part of the kernels, so that the bundle has the constants as the model stores them: of ResNet-8 with 4-bit
/// weights 54 kB instead of 316 kB, for 2.2 times the time of a run (two busy cores). Under the objective size they are
/// stored, or the bytes that a choice counts would not be the bundle's.
enum class ConstantUse : uint8_t { computed, stored };

/// What layers may cost that are computed at compile time since all their inputs are known, over the whole model. What
/// exceeds it stays for the device, as if its inputs were not known. Half is kept for small results: shapes must be
/// known whatever the weights cost.
struct FoldingBudget {
  int64_t operations = 2'000'000'000;  ///< calls, casts and selections, and elements that only move
  int64_t bytes = int64_t{4} << 30;    ///< of results together, and of the values in between of any one

  bool operator==(const FoldingBudget&) const = default;
};

/// Evaluates definitions that read nothing but constants, within the budget: shape arithmetic, and weights that are
/// computed from others. With `only` it looks at the definitions of those values alone.
Result<Nothing> fold_constants(Program& program, ConstantUse use, const FoldingBudget& budget,
                               const std::set<std::string>* only = nullptr);

/// Reads off the definition's term what storage wants to know beside it.
void describe_definition(Definition& definition);

/// Puts the definition of every operator call in its place, and evaluates sums over constants in it. Exact.
Result<Nothing> unfold_operators(Program& program, const FoldingBudget& budget);

}  // namespace hoist
