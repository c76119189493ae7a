// Measured choices for kernels: a record replaces the estimates of the cost model for a definition. The owner of a knob
// reads its value by name (tile.h: register tiles and work-groups; winograd.h, exploration.h, passes.h and launches.h:
// forms of a term; storage.h: layouts of inputs and outputs). Without a record, or with one that does not fit the
// target description, the estimate holds. Every choice gives the same result, within the rules that the compilation
// allows.
//
// A record belongs to a term, whichever model contains it: parameters are identified by position, not by name.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/program/program.h"
#include "lowering/tiling/knobs.h"

namespace hoist {

/// Lookup key of a tuning record: the term's structure and its constants. Definitions of equal structure compute the
/// same function for other sizes.
struct TuningTask {
  std::string structure;         ///< a hash of the term's text with the integers removed
  std::vector<int64_t> numbers;  ///< the removed integers in text order

  bool operator==(const TuningTask&) const = default;
  auto operator<=>(const TuningTask&) const = default;
};
TuningTask tuning_task(Expr term);

/// The current name of a knob. Records and derivations may contain a former name.
std::string present_knob_name(const std::string& recorded);

/// The knobs of a task, empty if there is no record. Every pass with a choice calls this for each definition, as does
/// the choice of storage.
using TuningRecords = std::function<KnobValues(const TuningTask& task)>;

/// Sets the definition's knobs and records the step "choose-knobs".
void take_knobs(Program& program, Definition& definition, const KnobValues& knobs);
/// Sets the recorded knobs of each definition; runs before storage is chosen.
void choose_knobs(Program& program, const TuningRecords& records);

}  // namespace hoist
