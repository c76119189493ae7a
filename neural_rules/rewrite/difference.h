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

/// Input `slot` of the layer reads `after` instead of `before`.
struct ChangedInput {
  std::string layer;
  size_t slot = 0;
  std::string before, after;  ///< value names in the old and in the new program
};

struct ProgramDifference {
  std::vector<NamedCall> added;             ///< added layers in order, with names of the new program
  std::map<std::string, Tensor> constants;  ///< constants that the old program lacks or has with other content
  std::vector<ChangedInput> inputs;         ///< changed inputs, in the order of layers
  std::vector<NamedCall> replaced;          ///< layers whose operator or attributes changed, in their new form
  std::set<std::string> same;               ///< values that both programs have under the same name

  bool empty() const { return added.empty() && inputs.empty() && replaced.empty(); }
};

/// Removed layers are not reported: a rewrite leaves them without consumers.
ProgramDifference difference(const Program& before, const Program& after);

}  // namespace hoist
