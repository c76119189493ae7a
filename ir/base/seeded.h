// Seeded test data, identical on every machine and in C and C++: the self-check of a bundle generates a kernel's inputs
// in C (backends/runtime), and the compiler generates the same inputs here for the expected values. The generator is
// counter-based, so that each element can be computed independently. Not for uses that need good randomness.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/language/tensor.h"

namespace hoist {

/// The interval from which seeded values are drawn uniformly; inclusive for integers.
struct Domain {
  double low = -1, high = 1;
};

/// The part of the domain that the scalar type can represent.
Domain domain_of_type(Scalar scalar, Domain domain);

/// Element `index` of parameter `parameter` (a kernel's parameter or a model's input, counted from 0), as the bits of
/// the scalar type. With mix = the finaliser of splitmix64 and s = 0x9E3779B97F4A7C15, the upper 53 bits of
/// mix(mix(seed + (parameter + 1) * s) + (index + 1) * s) make u in [0, 1). Floats are low + u * (high - low), in
/// double, rounded half to even into the type; integers and bool are low + floor(u * (high - low + 1)).
uint64_t seeded_bits(Scalar scalar, uint64_t seed, uint32_t parameter, double low, double high, int64_t index);

Tensor seeded_tensor(Scalar scalar, std::vector<int64_t> shape, uint64_t seed, uint32_t parameter, double low,
                     double high);

/// Advances `state` and returns the next value of splitmix64. For tests and samples: the sequence is the same on every
/// machine.
uint64_t next_random(uint64_t& state);

}  // namespace hoist
