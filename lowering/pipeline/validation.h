// Translation validation: the derivation of a model replayed, and what every step changed computed on both sides with
// the interpreter. Each changed definition is looked at by itself, on inputs of its own: random numbers, zeros, small
// integers, the largest and smallest numbers of the type, infinities, NaNs and denormals among others, and one NaN,
// infinity or 1e30 among random numbers; so extreme values reach the last layer as they reach the first. Exact steps
// have to give equal bits (NaNs are equal), rounding steps close numbers on inputs that stay finite, and beside one
// extreme number on the scale of the results that do not depend on it; neural steps are not compared. Not the check of
// a kernel on a device: what code generators and drivers do to a term is self_check's in tools.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lowering/pipeline/replay.h"

namespace hoist {

struct ValidationOptions {
  uint64_t seed = 1;
  /// Elements a definition and kind of inputs where not all of them are affordable, at most.
  int64_t elements = 24;
  bool only_first = false;  ///< stop at the first difference
  /// Called with the number of steps so far, of all.
  std::function<void(size_t done, size_t all)> progress = {};
};

/// A step that changes what it must not.
struct StepDifference {
  size_t step = 0;  ///< of the derivation, from 0
  std::string rule, layer;
  RuleClass rule_class = RuleClass::exact;
  std::string value;   ///< whose definition gives other numbers
  std::string inputs;  ///< the kind of inputs: "zeros"
  std::string what;    ///< "position 3: 1, before the step 0"
};

struct Validation {
  size_t steps = 0;       ///< of the derivation that replay
  size_t compared = 0;    ///< times a definition was compared
  size_t neural = 0;      ///< steps that change numbers on purpose
  size_t left = 0;        ///< times a definition was not compared: an element takes too long, or its type changed
  uint64_t elements = 0;  ///< compared in all
  std::vector<StepDifference> differences;
};

/// `derivation` has the values of all constants. Errors: those of replay, and terms that have no value.
Result<Validation> validate(const ProgramDerivation& derivation, const ReplayOptions& replaying,
                            const ValidationOptions& options = {});

}  // namespace hoist
