// Knobs of ordered factors, for search landscapes: the largest spaces that a kernel's knobs span.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/base/result.h"
#include "lowering/tiling/knobs.h"

namespace hoist {

/// A knob whose values are all lists of `parts` positive factors, in order, with `extent` as product.
inline Knob factors_knob(const std::string& name, int64_t extent, size_t parts) {
  HOIST_CHECK(extent >= 1 && parts >= 1, "the factors of " + std::to_string(extent));
  // Equal prime factors are interchangeable: the copies of each prime are distributed in every way once.
  std::set<std::vector<int64_t>> values = {std::vector<int64_t>(parts, 1)};
  std::vector<int64_t> primes;
  for (int64_t prime = 2, rest = extent; rest > 1; ++prime) {
    for (; rest % prime == 0; rest /= prime) primes.push_back(prime);
  }
  for (const int64_t prime : primes) {
    std::set<std::vector<int64_t>> longer;
    for (const auto& value : values)
      for (size_t i = 0; i < parts; ++i) {
        auto next = value;
        next[i] *= prime;
        longer.insert(std::move(next));
      }
    values = std::move(longer);
  }
  return {name, Knob::Kind::factors, {values.begin(), values.end()}};
}

}  // namespace hoist
