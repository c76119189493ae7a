// Checks that every step of a model's derivation preserves the values, for compile --validate, bisect and reduce.
#pragma once

#include <string>
#include <vector>

#include "ir/base/result.h"
#include "lowering/pipeline/validation.h"

namespace hoist {

/// Compares both sides of every step, up to the first difference with `only_first`. The derivation must hold the values
/// of constants.
Result<Validation> validate_derivation(ProgramDerivation derivation, const Profile& profile, bool only_first);

/// "step 12, split-join [exact] at layer conv1: position 3: 1, before the step 0 (inputs: zeros)".
Diagnostic described(const StepDifference& difference);

/// "812 comparisons of 301 steps, 20,412 elements: every step keeps the values".
std::string summary_of(const Validation& validation);

}  // namespace hoist
