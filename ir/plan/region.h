// Which elements of an array hold a value; what lies around them belongs to others (a border of zeros, other parts of a
// concatenation) or may hold anything (padding to whole vectors).
#pragma once

#include <cstdint>
#include <vector>

#include "ir/language/tensor.h"

namespace hoist {

struct Region {
  std::vector<int64_t> array;   ///< shape of the whole array
  std::vector<int64_t> before;  ///< elements before the region, per dimension
  std::vector<int64_t> shape;   ///< of the region

  int64_t size() const { return element_count(shape); }
  bool is_whole() const { return shape == array; }
  /// Whether both, of one array, have an element in common.
  bool overlaps(const Region& other) const;
  bool operator==(const Region&) const = default;
  /// The flat position in the array of the region's flat position.
  int64_t position(int64_t flat) const;
};

/// Up to `count` different positions in the array, all of them inside the region; the same for the same seed.
std::vector<int64_t> sample_positions(const Region& region, int64_t count, uint64_t seed);

}  // namespace hoist
