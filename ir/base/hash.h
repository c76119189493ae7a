// Combines the hashes of parts into a hash of the whole. For tables in memory: no output depends on these values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace hoist {

/// The combination of the hash `h` with the value `v`.
constexpr uint64_t mixed(uint64_t h, uint64_t v) { return (h ^ v) * 0x9E3779B97F4A7C15u + (h >> 29); }

/// For tables whose keys are a term and an integer, such as the number of variables bound around the term.
struct PlaceHash {
  template <class Term>
  size_t operator()(const std::pair<Term, int64_t>& place) const {
    return mixed(place.first->serial, static_cast<uint64_t>(place.second));
  }
};

}  // namespace hoist
