// Proves that a term reads and writes inside its arrays. Views cannot leave their arrays: their types contain the
// number of elements, and make() checks the sizes; `scatter` drops updates outside its base. This leaves the
// data-dependent positions of `index`: each is followed through the term as a range of integers (Cousot and Cousot
// 1977, intervals). An access that the ranges do not prove is not an error, only unproved. Not needed by the
// interpreter, which checks each position. The range of a whole term, floats included, bounds the capacity of arrays
// with dynamic shapes.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "ir/language/expression.h"

namespace hoist {

/// The least and the greatest possible value of an integer.
struct IntegerRange {
  int64_t low = 0, high = 0;
  bool operator==(const IntegerRange&) const = default;
};

/// A position that is not proved to be inside its array.
struct UnprovedPosition {
  Expr position = nullptr;  ///< the position, with the enclosing variables as parameters
  IntegerRange range;       ///< the range of the position
  int64_t size = 0;         ///< of the array: positions 0 .. size - 1 are inside
};

/// The unproved positions of a term with constant sizes. `known` has the ranges of the elements of integer parameters,
/// such as tables; elements of other parameters may have any value of their type.
std::vector<UnprovedPosition> unproved_positions(Expr term, const std::map<std::string, IntegerRange>& known = {});

/// The least and the greatest possible value of a scalar. NaN is possible for every range.
struct NumberRange {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
};

/// The range of all elements of a term that is a scalar or an array of scalars, given the ranges of its parameters'
/// elements. For constant sizes.
NumberRange range_of_elements(Expr term, const std::function<NumberRange(Expr parameter)>& known);

}  // namespace hoist
