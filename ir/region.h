// Which elements of an array hold a value; what lies around them belongs to others (a border of zeros, other parts of a
// concatenation) or may hold anything (rounding to whole vectors).
#pragma once

#include <cstdint>
#include <vector>

#include "ir/tensor.h"

namespace hoist {

struct Region {
  std::vector<int64_t> array;   ///< shape of the whole array
  std::vector<int64_t> before;  ///< elements before the region, per dimension
  std::vector<int64_t> shape;   ///< of the region

  int64_t size() const { return element_count(shape); }
  /// The flat position in the array of the region's flat position.
  int64_t position(int64_t flat) const;
};

}  // namespace hoist
