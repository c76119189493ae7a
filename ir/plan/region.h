// The elements of an array that hold a value. The elements around them belong to other values (a border of zeros, other
// parts of a concatenation) or are undefined (padding to whole vectors).
#pragma once

#include <cstdint>
#include <vector>

#include "ir/language/tensor.h"

namespace hoist {

struct Region {
  std::vector<int64_t> array;   ///< shape of the whole array
  std::vector<int64_t> before;  ///< elements before the region, per dimension
  std::vector<int64_t> shape;   ///< shape of the region

  int64_t size() const { return element_count(shape); }
  bool is_whole() const { return shape == array; }
  /// True if the region contains all of the other one of the same array.
  bool contains(const Region& other) const;
  /// True if the two regions of the same array overlap.
  bool overlaps(const Region& other) const;
  bool operator==(const Region&) const = default;
  /// The flat position in the array of a flat position in the region.
  int64_t position(int64_t flat) const;
};

/// Up to `count` distinct positions in the array, all inside the region; deterministic for a seed.
std::vector<int64_t> sample_positions(const Region& region, int64_t count, uint64_t seed);

}  // namespace hoist
