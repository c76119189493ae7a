// Infinity and NaN as doubles, for all code that computes with bounds.
#pragma once

#include <limits>

namespace hoist {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

}  // namespace hoist
