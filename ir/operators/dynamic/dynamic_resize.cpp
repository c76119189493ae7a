// Resize of images with data-dependent extents of the input or the output: along such an axis positions and weights are
// computed at run time, from fractions of integers, and so are exact up to the division of a weight.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/operators/definitions/precision.h"
#include "ir/operators/dynamic/dynamic_arrays.h"

namespace hoist::operators {
namespace {

double number_of(const NamedCall& call, const std::string& name, double otherwise) {
  const auto found = call.attributes.find(name);
  const auto* value = found == call.attributes.end() ? nullptr : std::get_if<double>(&found->second);
  return value == nullptr ? otherwise : *value;
}

/// Calls on lists of i64 numbers, one for each element of an axis.
class Lists {
 public:
  explicit Lists(ExtentComposer& c) : c_(c) {}

  std::string of(const ShapeValue& n) { return scalar_value(c_, n); }
  std::string combined(const std::string& operation, const std::string& list, const ShapeValue& n) {
    const bool same = (n == exactly(1) && operation != "Add" && operation != "Sub") ||
                      (n == exactly(0) && (operation == "Add" || operation == "Sub"));
    return same ? list : call(c_, operation, {list, of(n)});
  }
  std::string clamped(const std::string& list, const ShapeValue& high) {
    return call(c_, "Max", {call(c_, "Min", {list, of(high)}), of(exactly(0))});
  }
  /// Rounded down, for fractions above -2.
  std::string quotient(const std::string& list, const ShapeValue& divisor) {
    const ShapeValue twice = product(c_, divisor, exactly(2));
    return combined("Sub", combined("Div", combined("Add", list, twice), divisor), exactly(2));
  }

 private:
  ExtentComposer& c_;
};

/// The position of each output element along an axis among the input elements: numerators over one denominator.
struct Fractions {
  std::string numerators;
  ShapeValue denominator;
};

Result<Fractions> places_of(ExtentComposer& c, const std::string& mode, const ShapeValue& before,
                            const ShapeValue& behind) {
  Lists lists(c);
  const std::string each = counting_up(c, behind.high);
  const auto at_least_one = [&](const ShapeValue& n) { return greatest(c, n, exactly(1)); };
  if (mode == "asymmetric") return Fractions{lists.combined("Mul", each, before), at_least_one(behind)};
  if (mode == "align_corners") {
    const auto less_one = [&](const ShapeValue& n) { return greatest(c, difference(c, n, exactly(1)), exactly(0)); };
    const ShapeValue last = less_one(behind);
    return Fractions{lists.combined("Mul", each, less_one(before)), at_least_one(last)};
  }
  if (mode != "half_pixel" && mode != "half_pixel_symmetric" && mode != "pytorch_half_pixel")
    return fault(
        fmt::format("its size depends on data, and coordinate_transformation_mode {} needs a known size", mode));
  const std::string middle = lists.combined("Add", lists.combined("Mul", each, exactly(2)), exactly(1));
  Fractions out{lists.combined("Sub", lists.combined("Mul", middle, before), behind),
                at_least_one(product(c, behind, exactly(2)))};
  // A single output element is half an element before the first input element.
  if (mode == "pytorch_half_pixel" && behind.low < 2) {
    const std::string one = call(c, "Less", {lists.of(behind), lists.of(exactly(2))});
    out.numerators = call(c, "Where", {one, lists.of(exactly(-1)), out.numerators});
  }
  return out;
}

Result<std::string> nearest_places(ExtentComposer& c, const std::string& rounding, const Fractions& at) {
  Lists lists(c);
  const ShapeValue& whole = at.denominator;
  const ShapeValue twice = product(c, whole, exactly(2)), less_one = difference(c, whole, exactly(1));
  const std::string halves = lists.combined("Mul", at.numerators, exactly(2));
  if (rounding == "floor") return lists.quotient(at.numerators, whole);
  if (rounding == "ceil") return lists.quotient(lists.combined("Add", at.numerators, less_one), whole);
  if (rounding == "round_prefer_ceil") return lists.quotient(lists.combined("Add", halves, whole), twice);
  if (rounding != "round_prefer_floor") return fault("nearest_mode " + rounding + " is not supported");
  return lists.quotient(lists.combined("Add", halves, less_one), twice);
}

/// Calls on lists of floats.
class Weights {
 public:
  Weights(ExtentComposer& c, Scalar scalar) : c_(c), scalar_(scalar) {}

  std::string number(double value) {
    return c_.once(fmt::format("number {} {}", row(scalar_).name, value),
                   [&] { return c_.constant(Tensor::of(scalar_, {}, std::vector<double>{value})); });
  }
  std::string with(const std::string& operation, const std::string& a, const std::string& b) {
    return call(c_, operation, {a, b});
  }
  /// c[0] + x (c[1] + x (c[2] + ...)).
  std::string polynomial(const std::string& x, const std::vector<double>& coefficients) {
    std::string out = number(coefficients.back());
    for (size_t i = coefficients.size() - 1; i-- > 0;) out = with("Add", with("Mul", out, x), number(coefficients[i]));
    return out;
  }

 private:
  ExtentComposer& c_;
  Scalar scalar_;
};

// The weights of the elements around a position, in order; the position is at distance `t` after the element below it.
std::vector<std::string> weights_of(ExtentComposer& c, bool cubic, const std::string& t, Scalar scalar) {
  Weights weights(c, scalar);
  const std::string rest = weights.with("Sub", weights.number(1), t);
  if (!cubic) return {rest, t};
  const double a = number_of(c.call(), "cubic_coeff_a", -0.75);
  const auto near = [&](const std::string& x) { return weights.polynomial(x, {1, 0, -(a + 3), a + 2}); };
  // The same for elements at a distance of 1 + x.
  const auto far = [&](const std::string& x) { return weights.polynomial(x, {0, a, -2 * a, a}); };
  return {far(t), near(t), near(rest), far(rest)};
}

// The image with another extent along an axis.
Result<DynamicArray> resized_along(ExtentComposer& c, const DynamicArray& x, size_t axis, const ShapeValue& extent) {
  const NamedCall& named = c.call();
  Lists lists(c);
  const ShapeValue last = difference(c, x.extents[axis], exactly(1));
  HOIST_TRY(const Fractions at,
            places_of(c, text_of(named, "coordinate_transformation_mode", "half_pixel"), x.extents[axis], extent));
  const std::string mode = text_of(named, "mode", "nearest");
  if (mode == "nearest") {
    HOIST_TRY(const std::string places, nearest_places(c, text_of(named, "nearest_mode", "round_prefer_floor"), at));
    return taken_along(c, x, axis, lists.clamped(places, last), extent);
  }
  const bool cubic = mode == "cubic";
  const Scalar within = scalar_of(c, x.value);
  const std::string one = Weights(c, within).number(1);
  const auto as_float = [&](const std::string& list) { return call(c, "CastLike", {list, one}); };
  const std::string first = lists.quotient(at.numerators, at.denominator);
  const std::string behind = call(c, "Sub", {at.numerators, lists.combined("Mul", first, at.denominator)});
  const std::string t = call(c, "Div", {as_float(behind), as_float(lists.of(at.denominator))});
  std::vector<std::string> weights = weights_of(c, cubic, t, within), places;
  for (size_t k = 0; k < weights.size(); ++k)
    places.push_back(lists.combined("Add", first, exactly(static_cast<int64_t>(k) - (cubic ? 1 : 0))));
  if (integer_of(named, "exclude_outside", 0) != 0) {
    std::string total;
    for (size_t k = 0; k < weights.size(); ++k) {
      const std::string is_there = call(c, "Equal", {places[k], lists.clamped(places[k], last)});
      weights[k] = call(c, "Where", {is_there, weights[k], Weights(c, within).number(0)});
      total = total.empty() ? weights[k] : call(c, "Add", {total, weights[k]});
    }
    for (std::string& weight : weights) weight = call(c, "Div", {weight, total});
  }
  const size_t dimensions_after = x.extents.size() - 1 - axis;
  std::vector<int64_t> ones;
  for (size_t i = 1; i <= dimensions_after; ++i) ones.push_back(static_cast<int64_t>(i));
  DynamicArray out;
  std::string sum;
  for (size_t k = 0; k < weights.size(); ++k) {
    out = taken_along(c, x, axis, lists.clamped(places[k], last), extent);
    if (!ones.empty()) weights[k] = call(c, "Unsqueeze", {weights[k]}, {{"axes", ones}});
    const std::string part = call(c, "Mul", {out.value, weights[k]});
    sum = sum.empty() ? part : call(c, "Add", {sum, part});
  }
  out.value = sum;
  return out;
}

// The new extent of each axis, if sizes state it; nothing if only scales do, which have to be known.
Result<std::optional<ShapeValues>> wanted_extents(ExtentComposer& c, const DynamicArray& x) {
  HOIST_TRY(const auto sizes, deciding_numbers(c, "sizes", 3));
  const std::optional<ShapeValues> none;
  if (!sizes || sizes->empty()) return none;
  const size_t rank = x.extents.size();
  std::vector<int64_t> axes;
  for (size_t d = 0; d < rank; ++d) axes.push_back(static_cast<int64_t>(d));
  if (const auto named = known_list(c, c.call(), "axes", c.call().inputs.size())) {
    HOIST_TRY(axes, normalise_axes(*named, static_cast<int64_t>(rank)));
    if (!std::is_sorted(named->begin(), named->end()) || axes.size() != named->size()) return none;
  }
  if (sizes->size() != axes.size()) return none;
  ShapeValues out = x.extents;
  for (size_t i = 0; i < axes.size(); ++i) out[static_cast<size_t>(axes[i])] = greatest(c, (*sizes)[i], exactly(0));
  return std::optional(out);
}

// The values in the type of `original`; integers are truncated.
std::string converted_back(ExtentComposer& c, const std::string& values, const std::string& original) {
  const Scalar within = scalar_of(c, values);
  if (is_float(scalar_of(c, original))) return call(c, "CastLike", {values, original});
  Weights numbers(c, within);
  const std::string slack = numbers.number(truncation_slack(within));
  const std::string is_negative = call(c, "Less", {values, numbers.number(0)});
  const std::string moved =
      call(c, "Where", {is_negative, call(c, "Sub", {values, slack}), call(c, "Add", {values, slack})});
  return call(c, "CastLike", {moved, original});
}

Done resized_call(ExtentComposer& c) {
  DynamicArray x = operand(c, 0);
  HOIST_TRY(const auto wanted, wanted_extents(c, x));
  if (!wanted) return images_call(c);
  if (!reads_dynamic(c) && are_all_known(*wanted)) return false;
  HOIST_TRY_VOID(check_capacity(*wanted));
  if (text_of(c.call(), "keep_aspect_ratio_policy", "stretch") != "stretch")
    return fault("its size depends on data, and keep_aspect_ratio_policy then has to be stretch");
  // Resizes the axes with known extents in one call, then each other axis.
  Shape sizes = room_of(c, x.value);
  std::vector<size_t> others;
  bool any = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const ShapeValue &before = x.extents[d], &behind = (*wanted)[d];
    if (before == behind) continue;
    if (before.is_known() && behind.is_known())
      sizes[d] = behind.low, any = true;
    else
      others.push_back(d);
  }
  if (!others.empty() && integer_of(c.call(), "antialias", 0) != 0)
    return fault("its size depends on data, and so does the number of elements that antialias combines");
  const std::string original = x.value;
  const Scalar scalar = scalar_of(c, original);
  const bool moves = text_of(c.call(), "mode", "nearest") == "nearest";
  const Scalar within = moves ? scalar : interpolation_scalar(scalar);
  if (within != scalar) x.value = call(c, "CastLike", {x.value, Weights(c, within).number(1)});
  if (any) {
    Attributes attributes = attributes_without(c, {"axes"});
    attributes["sizes"] = sizes;
    x.value = call(c, "Resize", {x.value}, attributes);
    for (size_t d = 0; d < sizes.size(); ++d) {
      if ((*wanted)[d].is_known() && x.extents[d].is_known()) x.extents[d] = (*wanted)[d];
    }
  }
  for (const size_t axis : others) {
    HOIST_TRY(x, resized_along(c, x, axis, (*wanted)[axis]));
  }
  if (within != scalar) x.value = converted_back(c, x.value, original);
  c.give(0, x.value, x.extents);
  return true;
}

constexpr auto rows_of_sizes = std::to_array<ExtentMeaningRow>({{"Resize", resized_call}});

}  // namespace

std::span<const ExtentMeaningRow> dynamic_sizes() { return rows_of_sizes; }

}  // namespace hoist::operators
