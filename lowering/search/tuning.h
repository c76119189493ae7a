// Choices of kernels that were measured: what a record says of a definition, in the place of an estimate. The name of a
// knob says where it is asked for (tile.h: register tiles and work-groups; winograd.h, exploration.h, passes.h and
// launches.h: what passes make of a term; storage.h: layouts of inputs and outputs); a definition that no record knows,
// and a record that does not fit the profile, leave the estimate as it is. Every choice gives the same result, within
// the rules that the compilation allows.
//
// A record belongs to a term, whatever model it stands in: parameters count by their places, not by their names.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/program/program.h"
#include "lowering/tiling/knobs.h"

namespace hoist {

/// What a record is found by: the form of a definition's term, and the numbers in it. Definitions of one structure
/// compute the same for other sizes.
struct TuningTask {
  std::string structure;         ///< a hash of the term's text without its numbers
  std::vector<int64_t> numbers;  ///< those of the text, in order

  bool operator==(const TuningTask&) const = default;
  auto operator<=>(const TuningTask&) const = default;
};
TuningTask tuning_task(Expr term);

/// A knob's name: records and derivations may have one that it had before.
std::string present_knob_name(const std::string& recorded);

/// The knobs of a task, empty where nothing is known. Asked of every definition by each pass that makes a choice, and
/// before it is stored.
using TuningRecords = std::function<KnobValues(const TuningTask& task)>;

/// The definition's knobs; records "choose-knobs".
void take_knobs(Program& program, Definition& definition, const KnobValues& knobs);
/// What records say of each definition, before storage is chosen.
void choose_knobs(Program& program, const TuningRecords& records);

}  // namespace hoist
