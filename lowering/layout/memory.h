// Placement of intermediate arrays in the arena: arrays whose lifetimes overlap get disjoint ranges, the others may
// share.
#pragma once

#include <cstdint>
#include <vector>

namespace hoist {

struct Lifetime {
  int64_t bytes = 0;
  int first = 0, last = 0;  ///< steps, inclusive
  int64_t offset = 0;       ///< set by place_arrays: a multiple of `alignment`, in bytes
};

/// Greedy by size: large arrays first, each at the lowest offset that is free during its lifetime. Returns the arena's
/// bytes. With `reuse` false no two arrays share a byte.
int64_t place_arrays(std::vector<Lifetime>& arrays, int64_t alignment, bool reuse);

}  // namespace hoist
