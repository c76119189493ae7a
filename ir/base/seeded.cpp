#include "ir/base/seeded.h"

#include <algorithm>
#include <cmath>

#include "ir/base/extremes.h"
#include "ir/base/special_values.h"

namespace hoist {
namespace {

constexpr uint64_t counter_step = 0x9E3779B97F4A7C15u;

uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace

uint64_t next_random(uint64_t& state) { return mix(state += counter_step); }

Domain domain_of_type(Scalar scalar, Domain domain) {
  const ScalarRow& type = row(scalar);
  if (type.is_float) return domain;
  const int bits = scalar == Scalar::boolean ? 1 : type.bits - (type.is_signed ? 1 : 0);
  const double past = std::ldexp(1.0, bits);
  return {std::clamp(domain.low, type.is_signed ? -past : 0, past - 1),
          std::clamp(domain.high, type.is_signed ? -past : 0, past - 1)};
}

uint64_t seeded_bits(Scalar scalar, uint64_t seed, uint32_t parameter, double low, double high, int64_t index) {
  const Domain domain = domain_of_type(scalar, {low, high});
  low = domain.low, high = domain.high;
  const uint64_t start = mix(seed + (uint64_t{parameter} + 1) * counter_step);
  const uint64_t bits = mix(start + (static_cast<uint64_t>(index) + 1) * counter_step);
  const double u = static_cast<double>(bits >> 11) * 0x1p-53;
  // volatile prevents a fused multiply-add, which would give other bits.
  volatile double scaled = u * (is_float(scalar) ? high - low : high - low + 1);
  if (is_float(scalar)) return bits_from_float(scalar, low + scaled);
  auto whole = static_cast<uint64_t>(scaled);
  if (whole > 0 && static_cast<double>(whole) > high - low) --whole;
  return low < 0 ? static_cast<uint64_t>(static_cast<int64_t>(low)) + whole : static_cast<uint64_t>(low) + whole;
}

std::optional<uint64_t> seeded_extreme(Scalar scalar, uint64_t seed, uint32_t parameter, int64_t index,
                                       const Extremes& extremes) {
  constexpr double numbers[] = {nan_value, infinity, -infinity, -0.0, 1e-40, -1e-40, 1e30, -1e30};
  if (!is_float(scalar) || row(scalar).bits < 16 || extremes.one_in == 0) return std::nullopt;
  const uint64_t start = mix(seed + (uint64_t{parameter} + 1) * counter_step + 1);
  const uint64_t random = mix(start + (static_cast<uint64_t>(index) + 1) * counter_step);
  const uint64_t number = random >> 61U;
  if ((random & (extremes.one_in - 1)) != 0 || ((extremes.which >> number) & 1U) == 0) return std::nullopt;
  return bits_from_float(scalar, numbers[number]);
}

Tensor seeded_tensor(Scalar scalar, std::vector<int64_t> shape, uint64_t seed, uint32_t parameter, double low,
                     double high) {
  Tensor out(scalar, std::move(shape));
  const int64_t size = out.size();
  for (int64_t i = 0; i < size; ++i) {
    const uint64_t bits = seeded_bits(scalar, seed, parameter, low, high, i);
    if (is_float(scalar))
      out.set_float(i, float_from_bits(scalar, bits));
    else
      out.set_integer(i, static_cast<int64_t>(bits));
  }
  return out;
}

}  // namespace hoist
