// Which elements of its array a kernel writes: what lies inside the open borders around its term. The rest of the array
// belongs to others (a border of zeros, other parts of a concatenation).
#pragma once

#include <cstdint>
#include <vector>

#include "ir/expression.h"

namespace hoist {

struct Region {
  std::vector<int64_t> array;   ///< shape of the whole array
  std::vector<int64_t> before;  ///< elements before the region, per dimension
  std::vector<int64_t> shape;   ///< of the region

  int64_t size() const { return element_count(shape); }
  /// The flat position in the array of the region's flat position.
  int64_t position(int64_t flat) const;
  bool contains(int64_t position) const;  ///< a flat position of the array
};

/// Of a term whose type is an array of scalars with constant extents (or a scalar).
Region written_region(Expr term);

}  // namespace hoist
