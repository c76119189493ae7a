// What operators mean for arrays of which data decide how long they are. Such an array is bounded: its type says how
// long it is at most, a count, an i64 scalar of the program, how many of the elements along a dimension mean something,
// and these stand first. An operator whose definition only carries elements along needs nothing here, since its counts
// follow from the definition (ProgramBuilder). For each of the others a row of the table says which calls over bounded
// arrays give the same: they replace what lies beyond the counts by what does not matter, move elements together, and
// compute the counts of the results. No kernel ever sees anything but bounded arrays and numbers.
//
// Shapes as numbers are followed as well: each is known, or a value of the program between two bounds, from which the
// extents of what is made with them get theirs.
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

/// A whole number that extents are made of: known, or what a value of the program says, between two bounds.
struct WholeNumber {
  int64_t low = 0, high = 0;
  std::string value = {};  ///< an i64 scalar; "" where the number is known, low and high being the same

  bool is_known() const { return value.empty(); }
  bool operator==(const WholeNumber&) const = default;
};
using WholeNumbers = std::vector<WholeNumber>;

/// A composition that knows of counts. What add() makes may read counted values as any call does.
class ExtentComposer : public Composer {
 public:
  using Composer::give;

  /// The elements of a value, in order, where they are numbers that shapes are made of.
  virtual Result<std::optional<WholeNumbers>> numbers(const std::string& value) = 0;
  virtual void say_numbers(const std::string& value, const WholeNumbers& numbers) = 0;
  /// In which all elements of a tensor of numbers lie.
  virtual NumberRange range(const std::string& value) = 0;
  /// The call that gives a value by itself, as a call of the program; nothing where none does.
  virtual std::optional<NamedCall> maker(const std::string& value) const = 0;
  /// A call for which all that its operands have room for counts.
  virtual std::vector<std::string> add_bounded(const std::string& operation, Attributes attributes,
                                               std::vector<std::string> inputs, size_t results = 1) = 0;
  /// The value that was made for the key before, else what `make` gives.
  virtual std::string once(const std::string& key, const std::function<std::string()>& make) = 0;
  /// What a result of the call is, of which so many elements along each dimension count.
  virtual void give(size_t result, const std::string& value, const WholeNumbers& extents) = 0;
};

/// What the call is over arrays whose extents data decide; false where its definition says all there is to say.
using ExtentMeaning = Result<bool> (*)(ExtentComposer& composer);
/// Null where an operator has no row: then its definition decides alone.
ExtentMeaning extent_meaning(std::string_view domain, std::string_view operation);

/// The elements of a short list of whole numbers, or of one: those that nothing but data say are values between the
/// bounds that are known of them, which no run leaves. Nothing where the value is none such.
Result<std::optional<WholeNumbers>> numbers_from_data(ExtentComposer& composer, const std::string& value);
/// Whether numbers in this range bound an array whose extents they are.
bool decides_extents(const NumberRange& range);

/// So many elements of a value along an axis, of those that there is room for.
std::string cut_room(ExtentComposer& composer, const std::string& value, size_t axis, int64_t from, int64_t count);

/// The elements of what a call gives, where it makes numbers of numbers.
Result<std::optional<WholeNumbers>> numbers_of_call(ExtentComposer& composer, const NamedCall& call);

/// The result `number` of the composer's call: one of two values of the program, as a condition says, which may be of
/// different extents. Errors: other element types or ranks.
Result<Nothing> choose_value(ExtentComposer& composer, size_t number, const std::string& condition,
                             const std::string& yes, const std::string& no);

}  // namespace hoist
