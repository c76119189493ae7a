// Seeded test data that is the same on every machine and in both languages: the self-check of a bundle draws a kernel's
// inputs with it in C (backends/runtime), and whoever computes the expected values draws them with it here. A
// counter-based generator, so any element can be made alone. Not for anything that needs good randomness.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/language/tensor.h"

namespace hoist {

/// What seeded values are drawn from, uniformly; integers inclusive.
struct Domain {
  double low = -1, high = 1;
};

/// The part of the domain that the scalar type can hold; seeded values are drawn from that.
Domain domain_of_type(Scalar scalar, Domain domain);

/// Element `index` of parameter `parameter` (a kernel's parameter or a model's input, counted from 0): the value that
/// the scalar type's bits stand for. With mix = the finaliser of splitmix64 and s = 0x9E3779B97F4A7C15, the upper 53
/// bits of mix(mix(seed + (parameter + 1) * s) + (index + 1) * s) make u in [0, 1). Floats are low + u * (high - low),
/// in double, rounded half to even into the type; integers and bool are low + floor(u * (high - low + 1)).
uint64_t seeded_bits(Scalar scalar, uint64_t seed, uint32_t parameter, double low, double high, int64_t index);

/// A whole tensor of them.
Tensor seeded_tensor(Scalar scalar, std::vector<int64_t> shape, uint64_t seed, uint32_t parameter, double low,
                     double high);

/// The next of a sequence of numbers that are the same everywhere, for tests and samples: splitmix64.
uint64_t next_random(uint64_t& state);

}  // namespace hoist
