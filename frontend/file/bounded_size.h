// The size that a file claims for a tensor, checked before anything is allocated or multiplied.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/language/scalar.h"

namespace hoist {

inline constexpr size_t maximum_rank = 64;

/// The bytes of a tensor of this shape, or nothing if an extent is negative, there are more than 64 axes, or the
/// product of the extents (empty ones counted as 1) exceeds `maximum_bytes`. A shape with a result is safe for
/// element_count and byte_size.
std::optional<int64_t> bounded_byte_size(Scalar scalar, const std::vector<int64_t>& shape, int64_t maximum_bytes);

/// "[2, 3]", cut short after 16 axes.
std::string shape_text(const std::vector<int64_t>& shape);

}  // namespace hoist
