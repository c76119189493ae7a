// Growing an array until its number of elements is a multiple of a given number. Exactly one dimension grows, since
// only the end of a dimension can be padding.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

namespace hoist {

struct Growth {
  size_t dimension = 0;
  int64_t multiple = 1;  ///< the dimension's extent becomes a multiple of this
  int64_t elements = 1;  ///< elements of the grown array
};

/// The growth with the fewest elements. The shape has at least one dimension, and all extents are at least 1.
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
