// Extreme numbers in the place of seeded ones (seeded.h), the same on every machine and in C and C++.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/language/tensor.h"

namespace hoist {

/// Extreme numbers among seeded ones: about one number in `one_in`, a power of two; 0 for none. Bit k of `which` allows
/// number k of NaN, infinity, minus infinity, -0, 1e-40, -1e-40, 1e30 and -1e30.
struct Extremes {
  uint64_t one_in = 0;
  uint8_t which = 0;
};

/// The bits of the extreme number that replaces a seeded one; nothing if the seeded number is kept. With mix and s of
/// seeded_bits and r = mix(mix(seed + (parameter + 1) * s + 1) + (index + 1) * s), an element is replaced if r is a
/// multiple of `one_in`; the three highest bits of r select the number, which is rounded to the type. Integers and
/// floats of fewer than 16 bits are never replaced.
std::optional<uint64_t> seeded_extreme(Scalar scalar, uint64_t seed, uint32_t parameter, int64_t index,
                                       const Extremes& extremes);

}  // namespace hoist
