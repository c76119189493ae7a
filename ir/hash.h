// How hashes of parts become one of the whole. For tables in memory: nothing that is written depends on it.
#pragma once

#include <cstdint>

namespace hoist {

/// The hash of what `h` stands for followed by `v`.
constexpr uint64_t mixed(uint64_t h, uint64_t v) { return (h ^ v) * 0x9E3779B97F4A7C15u + (h >> 29); }

}  // namespace hoist
