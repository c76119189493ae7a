// Arithmetic on the integers of extents (dynamic_extents.h): known values are computed immediately, and each other
// integer is made once, by a call, so that equal integers are one value. Only for ir/operators.
#pragma once

#include "ir/operators/dynamic/dynamic_extents.h"

namespace hoist::operators {

ShapeValue exactly(int64_t value);
/// One number of that type, made once.
std::string constant_number(ExtentComposer& c, Scalar scalar, int64_t value);
/// The value that holds it, an i64 scalar.
std::string scalar_value(ExtentComposer& c, const ShapeValue& number);

ShapeValue sum(ExtentComposer& c, const ShapeValue& a, const ShapeValue& b);
ShapeValue difference(ExtentComposer& c, const ShapeValue& a, const ShapeValue& b);
ShapeValue product(ExtentComposer& c, const ShapeValue& a, const ShapeValue& b);
ShapeValue least(ExtentComposer& c, const ShapeValue& a, const ShapeValue& b);
ShapeValue greatest(ExtentComposer& c, const ShapeValue& a, const ShapeValue& b);
/// For a number from 0 on and a divisor from 1 on.
ShapeValue quotient(ExtentComposer& c, const ShapeValue& a, const ShapeValue& b);
ShapeValue remainder(ExtentComposer& c, const ShapeValue& a, const ShapeValue& b);
ShapeValue product(ExtentComposer& c, const ShapeValues& factors);

/// The capacity of arrays with data-dependent extents has this limit.
inline constexpr int64_t most_bounded_elements = int64_t{1} << 28;
/// That an array of these extents does not take more room.
Result<Nothing> check_bounds(const ShapeValues& extents);

/// How long a value is along each dimension.
ShapeValues extents_of(ExtentComposer& c, const std::string& value);
/// Those numbers as a value, [n]i64.
std::string list_value(ExtentComposer& c, const ShapeValues& numbers);

/// An attribute of a call, or `otherwise`.
int64_t integer_of(const NamedCall& call, const std::string& name, int64_t otherwise);
/// A list from an attribute, or from a known input; nothing if it is absent or unknown.
std::optional<std::vector<int64_t>> known_list(ExtentComposer& c, const NamedCall& call, const std::string& name,
                                               size_t input);

}  // namespace hoist::operators
