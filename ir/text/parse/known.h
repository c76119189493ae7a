// What a definition of an operator knows while it is made: the values of attributes, element types, lengths. A term may
// use them wherever it may use a number; arithmetic on them alone is done once, in 64 bits, before any type is known,
// and a select on a known condition is the branch that it picks. Only definitions of operators have such names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/language/pattern.h"
#include "ir/language/scalar.h"

namespace hoist {

/// An operand or attribute that the call leaves out.
struct Absent {};

/// The largest or the smallest value of whatever type it meets: minus infinity, 0u8.
struct Extreme {
  bool highest = false;
};

using Known = std::variant<Absent, int64_t, double, std::string, std::vector<int64_t>, Scalar, Extreme>;

/// Whole numbers stay whole but in a division, and become floats where they leave 64 bits; floor and ceil make numbers
/// whole. Null where the function does not take these values. Comparisons give 0 or 1, of lists too.
std::optional<Known> apply_known(Function function, const std::vector<Known>& arguments);

/// Whether a condition holds; null where the value is no number.
std::optional<bool> truth_of(const Known& value);
std::optional<double> number_of(const Known& value);

}  // namespace hoist
