// The pass "recompute": values that are read long after their computation are computed again before the late read, so
// that their memory is free in between. The copy has the term, the storage and the tile of the original, and with them
// the same kernel and the same bits. Arrays with a border are filled once and stay outside of the arena; arrays of
// equal form take turns.
#pragma once

#include <string>
#include <vector>

#include "lowering/passes/pass.h"
#include "lowering/plan/lowered_model.h"

namespace hoist {

/// A value that is computed again.
struct Recomputation {
  std::string value, layer;
  std::string before;  ///< the value of the first definition that reads the copy
  int64_t bytes = 0;   ///< of its array
  double cost = 0;     ///< operations and elements of the second computation
};

/// The recomputations among the steps to a program, in their order.
std::vector<Recomputation> recomputations(const Program& program, const std::vector<ProgramStep>& steps);

bool limits_memory(const PassOptions& options);
/// Errors: the limit is below the least memory that was found.
Result<Nothing> recompute(LoweredModel& model, const PassOptions& options);
Result<Nothing> replay_recompute(Program& program, Definition& definition, const ProgramStep& step);

}  // namespace hoist
