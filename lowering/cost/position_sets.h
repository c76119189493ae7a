// The positions on which scalars of a term depend, as sets of loops: variables, quotients and remainders. Interned, so
// that equal sets are equal numbers.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/evaluate/evaluate_index.h"

namespace hoist {

using PositionSet = int;  ///< 0 is the empty set

class PositionSets {
 public:
  /// `scalars` has the set of each scalar, on which computed positions depend.
  PositionSets(Indices& indices, const std::vector<PositionSet>& scalars) : indices_(indices), scalars_(scalars) {}

  PositionSet united(PositionSet a, PositionSet b);
  PositionSet of(IndexId index);
  PositionSet of(const std::vector<IndexId>& path);
  /// The loops inside `around` that repeat a scalar with these positions: the loops that it depends on, and all loops
  /// outside the innermost of them; loop-invariant code is moved out of all other loops. Unrolled loops and vectors
  /// (`spread`) run inside folds and repeat nothing.
  PositionSet repeating(PositionSet own, PositionSet around, PositionSet spread);
  /// The number of combinations of the positions, saturated. Positions that follow from common variables, or from
  /// common quotients and remainders, have at most as many combinations as these.
  int64_t combinations(PositionSet set);

 private:
  PositionSet interned(std::vector<AtomId> atoms);
  PositionSet of_atom(AtomId id);
  // The variables that determine a position, with the number of their distinct values.
  const std::map<AtomId, int64_t>& variables_of(AtomId id);
  // The positions that determine a position: those inside the argument of a quotient or remainder if not all of them
  // are variables, else the position itself; with the number of their values.
  std::map<AtomId, int64_t> bases_of(AtomId id);
  // Loops are opened in the order of their variables.
  AtomId order_of(AtomId id) { return variables_of(id).rbegin()->first; }

  Indices& indices_;
  const std::vector<PositionSet>& scalars_;
  std::vector<std::vector<AtomId>> sets_ = {{}};
  std::map<std::vector<AtomId>, PositionSet> numbers_ = {{{}, 0}};
  std::map<std::pair<PositionSet, PositionSet>, PositionSet> unions_;
  std::unordered_map<IndexId, PositionSet> of_indices_;
  std::unordered_map<PositionSet, int64_t> combinations_;
  std::unordered_map<AtomId, std::map<AtomId, int64_t>> variables_;
};

}  // namespace hoist
