// The meaning of operators for arrays with data-dependent extents. Such an array has a bounded dynamic dimension: its
// type states the capacity; an i64 scalar of the program, the count, states how many elements along the dimension are
// valid; the valid elements come first. An operator whose definition only carries elements along needs nothing here,
// because its counts follow from the definition (ProgramBuilder). For each of the others a row of the table gives
// equivalent calls over arrays at capacity: they replace elements beyond the counts by neutral ones, move elements
// together, and compute the counts of the results. Kernels only read arrays at capacity and scalars.
//
// Shapes as integers are tracked as well: each is known, or a value of the program between two bounds, which are the
// bounds of the extents that it determines.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/operators/definitions/composition.h"
#include "ir/properties/index_ranges.h"

namespace hoist {

/// An integer of a shape: known, or a value of the program between two bounds.
struct ShapeValue {
  int64_t low = 0, high = 0;
  std::string value = {};  ///< an i64 scalar; "" if the integer is known, and then low equals high

  bool is_known() const { return value.empty(); }
  bool operator==(const ShapeValue&) const = default;
};
using ShapeValues = std::vector<ShapeValue>;

/// A composition with counts. Calls of add() may read values with counts like any call.
class ExtentComposer : public Composer {
 public:
  using Composer::give;

  /// The elements of a value, in order, if they are integers for shapes.
  virtual Result<std::optional<ShapeValues>> numbers(const std::string& value) = 0;
  virtual void say_numbers(const std::string& value, const ShapeValues& numbers) = 0;
  /// The range of all elements of a numeric tensor.
  virtual NumberRange range(const std::string& value) = 0;
  /// The call that computes only this value, as a call of the program; nothing if there is none.
  virtual std::optional<NamedCall> maker(const std::string& value) const = 0;
  /// Adds a call that processes the operands' full capacity and ignores their counts.
  virtual std::vector<std::string> add_bounded(const std::string& operation, Attributes attributes,
                                               std::vector<std::string> inputs, size_t results = 1) = 0;
  /// The value made earlier for the key, or the result of `make`.
  virtual std::string once(const std::string& key, const std::function<std::string()>& make) = 0;
  /// A result of the call, and its number of valid elements along each dimension.
  virtual void give(size_t result, const std::string& value, const ShapeValues& extents) = 0;
};

/// The composition of the call over arrays with data-dependent extents; false if its definition suffices.
using ExtentMeaning = Result<bool> (*)(ExtentComposer& composer);
/// Null if the operator has no row, so that its definition suffices.
ExtentMeaning extent_meaning(std::string_view domain, std::string_view operation);

/// The elements of a short list of integers, or of one integer: data-dependent elements are values between known bounds
/// that every run respects. Nothing if the value is not such a list.
Result<std::optional<ShapeValues>> numbers_from_data(ExtentComposer& composer, const std::string& value);
/// True if integers in this range may be the extents of an array.
bool decides_extents(const NumberRange& range);

/// The given number of elements of a value along an axis, out of its capacity.
std::string slice_capacity(ExtentComposer& composer, const std::string& value, size_t axis, int64_t from,
                           int64_t count);

/// The elements of a call's result, if it computes integers from integers.
Result<std::optional<ShapeValues>> numbers_of_call(ExtentComposer& composer, const NamedCall& call);

/// The result `number` of the composer's call: one of two values of the program, selected by a condition; their extents
/// may differ. Errors: other element types or ranks.
Result<Nothing> choose_value(ExtentComposer& composer, size_t number, const std::string& condition,
                             const std::string& yes, const std::string& no);

}  // namespace hoist
