// Whether a term reads and writes inside its arrays. Views cannot leave them: their types say how many elements there
// are, and make() checks the sizes; `scatter` leaves out what would go elsewhere. What is left are the positions that
// data decide, of `index`: each is followed through the term as a range of whole numbers (Cousot and Cousot 1977,
// intervals). What the ranges do not show is not wrong, only unproved. Not for positions that the interpreter has at
// hand: it checks each one. The range of a whole term, floats included, says how much room there has to be where data
// decide how long an array is.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "ir/language/expression.h"

namespace hoist {

/// Least and greatest of the whole numbers that something may be.
struct IntegerRange {
  int64_t low = 0, high = 0;
  bool operator==(const IntegerRange&) const = default;
};

/// A position that is not shown to lie in its array.
struct UnprovedPosition {
  Expr position = nullptr;  ///< with the variables around it as parameters
  IntegerRange range;       ///< that it is known to lie in
  int64_t size = 0;         ///< of the array: 0 .. size - 1 would be inside
};

/// For a term with constant sizes. `known` are ranges of integer parameters' elements, of tables say; others may be
/// whatever their type holds.
std::vector<UnprovedPosition> unproved_positions(Expr term, const std::map<std::string, IntegerRange>& known = {});

/// Least and greatest of the numbers that something may be. NaN may be there whatever the range.
struct NumberRange {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
};

/// In which all elements of a term lie that is a number or an array of numbers, by what `known` says of its parameters'
/// elements. For constant sizes.
NumberRange range_of_elements(Expr term, const std::function<NumberRange(Expr parameter)>& known);

}  // namespace hoist
