// The change of a program by a rewrite: the layers and constants that it added, and the layers with changed inputs. Not
// a general comparison: layers of both programs are matched by their names, and a layer whose outputs have new names (a
// pooling that moves quantised elements) counts as new.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/program/program_builder.h"

namespace hoist {

/// Input `slot` of the layer reads `after` where `before` was read.
struct ChangedInput {
  std::string layer;
  size_t slot = 0;
  std::string before, after;  ///< value names of the program before and of the one after
};

struct ProgramDifference {
  std::vector<NamedCall> added;             ///< in their order; names of the program after
  std::map<std::string, Tensor> constants;  ///< that the program before has not, or has with other content
  std::vector<ChangedInput> inputs;         ///< in the order of layers
  std::vector<NamedCall> replaced;          ///< layers that have another operator or attributes now, as they are now
  std::set<std::string> same;               ///< values that both have, under the same name

  bool empty() const { return added.empty() && inputs.empty() && replaced.empty(); }
};

/// Layers that are gone are not reported: a rewrite leaves no consumer of theirs.
ProgramDifference difference(const Program& before, const Program& after);

}  // namespace hoist
