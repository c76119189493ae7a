// Arithmetic on the integers of extents (dynamic_extents.h): known values are computed immediately, and each other
// integer is computed by one call, so that equal integers are one value. Only for ir/operators.
#pragma once

#include "ir/operators/dynamic/dynamic_extents.h"

namespace hoist::operators {

ShapeValue exactly(int64_t value);
/// A constant scalar of that type, made once.
std::string constant_number(ExtentComposer& c, Scalar scalar, int64_t value);
/// The integer as a value of the program, an i64 scalar.
std::string scalar_value(ExtentComposer& c, const ShapeValue& number);

ShapeValue sum(ExtentComposer& c, const ShapeValue& a, const ShapeValue& b);
ShapeValue difference(ExtentComposer& c, const ShapeValue& a, const ShapeValue& b);
ShapeValue product(ExtentComposer& c, const ShapeValue& a, const ShapeValue& b);
ShapeValue least(ExtentComposer& c, const ShapeValue& a, const ShapeValue& b);
ShapeValue greatest(ExtentComposer& c, const ShapeValue& a, const ShapeValue& b);
/// The quotient of a number of at least 0 and a divisor of at least 1.
ShapeValue quotient(ExtentComposer& c, const ShapeValue& a, const ShapeValue& b);
ShapeValue remainder(ExtentComposer& c, const ShapeValue& a, const ShapeValue& b);
ShapeValue product(ExtentComposer& c, const ShapeValues& factors);

/// The limit of the capacity of arrays with data-dependent extents.
inline constexpr int64_t most_bounded_elements = int64_t{1} << 28;
/// Checks that an array of these extents is within that limit.
Result<Nothing> check_bounds(const ShapeValues& extents);

/// The extent of a value along each dimension.
ShapeValues extents_of(ExtentComposer& c, const std::string& value);
/// The integers as a value, [n]i64.
std::string list_value(ExtentComposer& c, const ShapeValues& numbers);

/// An attribute of a call, or `otherwise`.
int64_t integer_of(const NamedCall& call, const std::string& name, int64_t otherwise);
std::string text_of(const NamedCall& call, const std::string& name, const std::string& otherwise);
/// A list from an attribute, or from a known input; nothing if it is absent or unknown.
std::optional<std::vector<int64_t>> known_list(ExtentComposer& c, const NamedCall& call, const std::string& name,
                                               size_t input);

}  // namespace hoist::operators
