// Sums and products of counts, saturated at the largest integer.
#pragma once

#include <cstdint>
#include <limits>

namespace hoist {

inline int64_t saturated_sum(int64_t a, int64_t b) {
  int64_t out = 0;
  return __builtin_add_overflow(a, b, &out) ? std::numeric_limits<int64_t>::max() : out;
}

inline int64_t saturated_product(int64_t a, int64_t b) {
  int64_t out = 0;
  return __builtin_mul_overflow(a, b, &out) ? std::numeric_limits<int64_t>::max() : out;
}

}  // namespace hoist
