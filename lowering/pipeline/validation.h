// Translation validation: replays the derivation of a model and computes both sides of every step with the interpreter.
// Each changed definition is compared alone, on inputs of its own: random elements, zeros, small integers, the largest
// and smallest values of the type, infinities, NaNs and subnormals among others, and one NaN, infinity or 1e30 among
// random elements; so extreme values reach the last layer as they reach the first. Exact steps have to give equal bits
// (NaNs are equal). Rounding steps have to give close values on inputs that stay finite; next to one extreme element
// the scale is that of the results that do not depend on it. Neural steps are not compared. The check of a kernel on a
// device is self_check in tools.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lowering/pipeline/replay.h"

namespace hoist {

struct ValidationOptions {
  uint64_t seed = 1;
  /// The maximum number of compared elements per definition and kind of inputs, if all elements take too long.
  int64_t elements = 24;
  bool only_first = false;  ///< stop at the first difference
  /// Called with the number of finished steps and the number of all steps.
  std::function<void(size_t done, size_t all)> progress = {};
};

/// A step that changes a value although it must not.
struct StepDifference {
  size_t step = 0;  ///< step of the derivation, from 0
  std::string rule, layer;
  RuleClass rule_class = RuleClass::exact;
  std::string value;   ///< the definition with different values
  std::string inputs;  ///< the kind of inputs: "zeros"
  std::string what;    ///< "position 3: 1, before the step 0"
};

struct Validation {
  size_t steps = 0;       ///< replayed steps of the derivation
  size_t compared = 0;    ///< comparisons of a definition
  size_t neural = 0;      ///< steps that change values on purpose
  size_t left = 0;        ///< definitions that were not compared: because an element takes too long or the type changed
  uint64_t elements = 0;  ///< compared in total
  std::vector<StepDifference> differences;
};

/// `derivation` has the values of all constants. Errors: errors of replay, and terms that cannot be evaluated.
Result<Validation> validate(const ProgramDerivation& derivation, const ReplayOptions& replaying,
                            const ValidationOptions& options = {});

}  // namespace hoist
