// What the equation of an Einsum says, once its operands' extents are known. Only for who takes a sum of products
// apart: the operator's definition, and the pass that makes several of one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/result.h"

namespace hoist {

/// A dimension's name: the code of its letter, or a negative number where it stands under an ellipsis, the last one -1.
using EinsumLabels = std::vector<int>;

struct Einsum {
  std::vector<EinsumLabels> operands;  ///< of every operand's dimensions; one that occurs twice is a diagonal
  EinsumLabels result;                 ///< all others are summed over
  std::map<int, int64_t> extents;      ///< an operand may have 1 instead
};

/// Errors: an equation that is none, that has other operands than there are or that names what is not there, and
/// extents that disagree.
Result<Einsum> parse_einsum(std::string equation, const std::vector<std::vector<int64_t>>& shapes);

}  // namespace hoist
