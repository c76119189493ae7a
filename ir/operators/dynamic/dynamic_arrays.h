// Common code of the rows of dynamic_extents.h: arrays with their actual lengths, calls over their full capacity, and
// the rows of each family. Only for ir/operators.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "ir/operators/definitions/support.h"
#include "ir/operators/dynamic/shape_values.h"
#include "ir/program/program_builder.h"

namespace hoist::operators {

/// True if other calls replaced the composer's.
using Done = Result<bool>;

/// An array and its valid extents. Calls process the full capacity.
struct DynamicArray {
  std::string value;
  ShapeValues extents;
};

const std::string& input_name(const ExtentComposer& c, size_t i);
DynamicArray operand(ExtentComposer& c, size_t i);
/// True if one of the call's operands has a data-dependent extent.
bool reads_dynamic(const ExtentComposer& c);
Scalar scalar_of(const ExtentComposer& c, const std::string& value);
/// The capacity of an array.
Shape room_of(const ExtentComposer& c, const std::string& value);
Shape upper_bounds(const ShapeValues& extents);
bool are_all_known(const ShapeValues& numbers);
/// Checks that an array of these extents is possible and within the limit of the capacity.
Result<Nothing> check_capacity(const ShapeValues& extents);
std::set<int64_t> all_dimensions(const DynamicArray& x);

/// The axis that the attribute gives, normalised to 0 or more.
Result<int64_t> axis_of(const ExtentComposer& c, const std::string& name, int64_t otherwise, size_t rank);
/// The call's attributes, without the ones that the composition has used.
Attributes attributes_without(const ExtentComposer& c, std::initializer_list<const char*> names);
/// The integers that decide a shape, from an attribute of this name or an input; nothing if both are absent.
Result<std::optional<ShapeValues>> deciding_numbers(ExtentComposer& c, const std::string& name, size_t i);

/// A call over the full capacity of its operands.
std::string call(ExtentComposer& c, const std::string& operation, std::vector<std::string> inputs,
                 Attributes attributes = {});
/// The minimum or maximum of a type.
std::string extreme_number(ExtentComposer& c, Scalar scalar, bool lowest);
/// 0, 1, ... as i64.
std::string counting_up(ExtentComposer& c, int64_t count);
/// The length of the range from `start` to before `end` with a step other than 0.
ShapeValue range_length(ExtentComposer& c, const ShapeValue& start, const ShapeValue& end, int64_t step);
/// The first `count` numbers of such a range, as i64.
std::string range_of(ExtentComposer& c, const ShapeValue& start, int64_t step, int64_t count);
/// A list along one dimension of an array, with trailing dimensions of extent 1.
std::string along(ExtentComposer& c, const std::string& list, size_t dimensions_after);
/// The array with `filler` in place of the elements that are invalid along these dimensions.
std::string filled(ExtentComposer& c, const DynamicArray& x, const std::set<int64_t>& dimensions,
                   const std::string& filler);
/// The elements of the array at these positions along an axis.
DynamicArray taken_along(ExtentComposer& c, const DynamicArray& x, size_t axis, const std::string& places,
                         const ShapeValue& extent);
/// Data-dependent positions in an array with the actual extent n; negative positions count from the end.
std::string places_from_start(ExtentComposer& c, const std::string& places, const std::string& n);
/// The same elements in another shape.
Result<DynamicArray> reshaped(ExtentComposer& c, const DynamicArray& x, ShapeValues to);

/// Composes a call whose first dimension is a batch of independent images.
Done images_call(ExtentComposer& c);

struct ExtentMeaningRow {
  std::string_view operation;
  ExtentMeaning meaning;
};
std::span<const ExtentMeaningRow> dynamic_shapes();
std::span<const ExtentMeaningRow> dynamic_parts();
std::span<const ExtentMeaningRow> dynamic_sums();
std::span<const ExtentMeaningRow> dynamic_choices();
std::span<const ExtentMeaningRow> dynamic_sizes();

}  // namespace hoist::operators
