// Sizes for evaluation outside of this folder: as operations of a stack machine, and their bounds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/language/nat.h"

namespace hoist {

/// A constant or a name pushes a value; every other operation replaces the two topmost values by its result. Bundles
/// store the kinds as numbers, and the runtime has the same order (HOIST_SIZE_CONSTANT to HOIST_SIZE_MAXIMUM).
struct SizeOperation {
  enum Kind : uint8_t { constant, name, add, multiply, floor_division, remainder, minimum, maximum } kind = constant;
  int64_t value = 0;      ///< of a constant
  std::string text = {};  ///< of a name

  bool operator==(const SizeOperation&) const = default;
};

/// The size as operations that leave its value on the stack. Equal sizes have equal operations, in every process.
std::vector<SizeOperation> operations_of(const Nat& n);

/// An upper bound, from the ranges of the names; exact for a polynomial with positive coefficients.
int64_t upper_bound(const Nat& n);

}  // namespace hoist
