// How hashes of parts become one of the whole. For tables in memory: nothing that is written depends on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace hoist {

/// The hash of what `h` stands for followed by `v`.
constexpr uint64_t mixed(uint64_t h, uint64_t v) { return (h ^ v) * 0x9E3779B97F4A7C15u + (h >> 29); }

/// For tables whose keys are a term and a number, such as how many variables are bound around the term.
struct PlaceHash {
  template <class Term>
  size_t operator()(const std::pair<Term, int64_t>& place) const {
    return mixed(place.first->serial, static_cast<uint64_t>(place.second));
  }
};

}  // namespace hoist
