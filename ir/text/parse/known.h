// Known values in an operator's definition: attribute values, element types, lengths. A term may use them in place of a
// literal; arithmetic on known values is evaluated once, in 64 bits, before types are known, and a select with a known
// condition becomes one of its branches. Only operators' definitions have such names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/language/pattern.h"
#include "ir/language/scalar.h"

namespace hoist {

/// An omitted operand or attribute.
struct Absent {};

/// The largest or smallest value of the type required by the context, such as minus infinity or 0u8.
struct Extreme {
  bool highest = false;
};

using Known = std::variant<Absent, int64_t, double, std::string, std::vector<int64_t>, Scalar, Extreme>;

/// Applies a function to known values, or returns null if it does not accept them. Results of integers are integers,
/// except for division; on 64-bit overflow they become floats. floor and ceil give integers. Comparisons, of lists too,
/// give 0 or 1.
std::optional<Known> apply_known(Function function, const std::vector<Known>& arguments);

/// The truth value of a condition, or null if the value is not a number.
std::optional<bool> truth_of(const Known& value);
std::optional<double> number_of(const Known& value);

}  // namespace hoist
