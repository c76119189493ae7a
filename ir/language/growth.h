// How an array grows until its elements are a multiple of a number: one dimension of it does, since only the end of a
// dimension can be left empty.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

namespace hoist {

struct Growth {
  size_t dimension = 0;
  int64_t multiple = 1;  ///< of which the dimension becomes one
  int64_t elements = 1;  ///< of the array then
};

/// That with the fewest elements; the shape has at least one dimension, and no extent is below 1.
inline Growth least_growth(const std::vector<int64_t>& shape, int64_t multiple) {
  int64_t all = 1;
  for (const int64_t n : shape) all *= n;
  Growth least;
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t others = all / shape[i], of = multiple / std::gcd(multiple, others);
    const int64_t elements = (shape[i] + of - 1) / of * of * others;
    if (i == 0 || elements < least.elements) least = {i, of, elements};
  }
  return least;
}

}  // namespace hoist
