// Arithmetic on the integers of extents (data_extents.h): known values are computed immediately, and each other integer
// is made once, by a call, so that equal integers are one value. Only for ir/operators.
#pragma once

#include "ir/operators/dynamic/data_extents.h"

namespace hoist::operators {

WholeNumber exactly(int64_t value);
/// One number of that type, made once.
std::string constant_number(ExtentComposer& c, Scalar scalar, int64_t value);
/// The value that holds it, an i64 scalar.
std::string scalar_value(ExtentComposer& c, const WholeNumber& number);

WholeNumber sum(ExtentComposer& c, const WholeNumber& a, const WholeNumber& b);
WholeNumber difference(ExtentComposer& c, const WholeNumber& a, const WholeNumber& b);
WholeNumber product(ExtentComposer& c, const WholeNumber& a, const WholeNumber& b);
WholeNumber least(ExtentComposer& c, const WholeNumber& a, const WholeNumber& b);
WholeNumber greatest(ExtentComposer& c, const WholeNumber& a, const WholeNumber& b);
/// For a number from 0 on and a divisor from 1 on.
WholeNumber quotient(ExtentComposer& c, const WholeNumber& a, const WholeNumber& b);
WholeNumber remainder(ExtentComposer& c, const WholeNumber& a, const WholeNumber& b);
WholeNumber product(ExtentComposer& c, const WholeNumbers& factors);

/// The capacity of arrays with data-dependent extents has this limit.
inline constexpr int64_t most_bounded_elements = int64_t{1} << 28;
/// That an array of these extents does not take more room.
Result<Nothing> check_bounds(const WholeNumbers& extents);

/// How long a value is along each dimension.
WholeNumbers extents_of(ExtentComposer& c, const std::string& value);
/// Those numbers as a value, [n]i64.
std::string list_value(ExtentComposer& c, const WholeNumbers& numbers);

/// An attribute of a call, or `otherwise`.
int64_t integer_of(const NamedCall& call, const std::string& name, int64_t otherwise);
/// A list from an attribute, or from a known input; nothing if it is absent or unknown.
std::optional<std::vector<int64_t>> known_list(ExtentComposer& c, const NamedCall& call, const std::string& name,
                                               size_t input);

}  // namespace hoist::operators
