#include "ir/operators/dynamic/dynamic_arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace hoist::operators {

const std::string& input_name(const ExtentComposer& c, size_t i) { return c.call().inputs[i]; }

DynamicArray operand(ExtentComposer& c, size_t i) { return {input_name(c, i), extents_of(c, input_name(c, i))}; }

Scalar scalar_of(const ExtentComposer& c, const std::string& value) { return leaf_of(c.type(value))->scalar; }

Shape room_of(const ExtentComposer& c, const std::string& value) {
  Shape out;
  for (const Nat& size : sizes_of(c.type(value))) out.push_back(size.value());
  return out;
}

Shape upper_bounds(const ShapeValues& extents) {
  Shape out;
  for (const ShapeValue& extent : extents) out.push_back(extent.high);
  return out;
}

bool are_all_known(const ShapeValues& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](const ShapeValue& n) { return n.is_known(); });
}

std::string call(ExtentComposer& c, const std::string& operation, std::vector<std::string> inputs,
                 Attributes attributes) {
  return c.add_bounded(operation, std::move(attributes), std::move(inputs))[0];
}

std::string counting_up(ExtentComposer& c, int64_t count) {
  return c.once(fmt::format("positions {}", count), [&] {
    const auto number = [](int64_t n) { return Tensor::of(Scalar::i64, {}, std::vector<int64_t>{n}); };
    return call(c, "Range", {}, {{"start", number(0)}, {"limit", number(count)}, {"delta", number(1)}});
  });
}

ShapeValue range_length(ExtentComposer& c, const ShapeValue& start, const ShapeValue& end, int64_t step) {
  const int64_t stride = std::abs(step);
  const ShapeValue distance = greatest(c, step > 0 ? difference(c, end, start) : difference(c, start, end), exactly(0));
  return quotient(c, sum(c, distance, exactly(stride - 1)), exactly(stride));
}

std::string range_of(ExtentComposer& c, const ShapeValue& start, int64_t step, int64_t count) {
  std::string all = counting_up(c, count);
  if (step != 1) all = call(c, "Mul", {all, constant_number(c, Scalar::i64, step)});
  if (start != exactly(0)) all = call(c, "Add", {all, scalar_value(c, start)});
  return all;
}

std::string along(ExtentComposer& c, const std::string& list, size_t dimensions_after) {
  if (dimensions_after == 0) return list;
  std::vector<int64_t> axes;
  for (size_t i = 1; i <= dimensions_after; ++i) axes.push_back(static_cast<int64_t>(i));
  return call(c, "Unsqueeze", {list}, {{"axes", axes}});
}

namespace {

// The mask of valid elements along these dimensions, in a shape that broadcasts to the array's; "" if all are valid.
std::string counting_elements(ExtentComposer& c, const DynamicArray& x, const std::set<int64_t>& dimensions) {
  const Shape room = room_of(c, x.value);
  std::string all;
  for (const int64_t d : dimensions) {
    const ShapeValue& extent = x.extents[static_cast<size_t>(d)];
    if (extent.is_known()) continue;
    const int64_t most = room[static_cast<size_t>(d)];
    const size_t behind = room.size() - 1 - static_cast<size_t>(d);
    const std::string own = c.once(fmt::format("{} of {} before {} dimensions", extent.value, most, behind), [&] {
      return along(c, call(c, "Less", {counting_up(c, most), extent.value}), behind);
    });
    all = all.empty() ? own : call(c, "And", {all, own});
  }
  return all;
}

}  // namespace

std::set<int64_t> all_dimensions(const DynamicArray& x) {
  std::set<int64_t> out;
  for (size_t d = 0; d < x.extents.size(); ++d) out.insert(static_cast<int64_t>(d));
  return out;
}

std::string filled(ExtentComposer& c, const DynamicArray& x, const std::set<int64_t>& dimensions,
                   const std::string& filler) {
  const std::string counting = counting_elements(c, x, dimensions);
  return counting.empty() ? x.value : call(c, "Where", {counting, x.value, filler});
}

std::string extreme_number(ExtentComposer& c, Scalar scalar, bool lowest) {
  if (is_float(scalar)) {
    const double infinity = std::numeric_limits<double>::infinity();
    return c.once(fmt::format("{} {}", lowest ? "lowest" : "highest", row(scalar).name), [&] {
      return c.constant(Tensor::of(scalar, {}, std::vector<double>{lowest ? -infinity : infinity}));
    });
  }
  if (scalar == Scalar::boolean) return constant_number(c, scalar, lowest ? 0 : 1);
  const ScalarRow& kind = row(scalar);
  const uint64_t sign = uint64_t{1} << (kind.bits - 1);
  const uint64_t value = kind.is_signed ? (lowest ? ~sign + 1 : sign - 1) : (lowest ? 0 : sign + (sign - 1));
  return constant_number(c, scalar, static_cast<int64_t>(value));
}

Result<int64_t> axis_of(const ExtentComposer& c, const std::string& name, int64_t otherwise, size_t rank) {
  return normalise_axis(integer_of(c.call(), name, otherwise), static_cast<int64_t>(rank));
}

bool reads_dynamic(const ExtentComposer& c) {
  const auto& inputs = c.call().inputs;
  return std::any_of(inputs.begin(), inputs.end(), [&](const std::string& name) { return !c.counts(name).empty(); });
}

Attributes attributes_without(const ExtentComposer& c, std::initializer_list<const char*> names) {
  Attributes out = c.call().attributes;
  for (const char* name : names) out.erase(name);
  return out;
}

DynamicArray taken_along(ExtentComposer& c, const DynamicArray& x, size_t axis, const std::string& places,
                         const ShapeValue& extent) {
  DynamicArray out{call(c, "Gather", {x.value, places}, {{"axis", static_cast<int64_t>(axis)}}), x.extents};
  out.extents[axis] = extent;
  return out;
}

std::string places_from_start(ExtentComposer& c, const std::string& places, const std::string& n) {
  const Scalar scalar = scalar_of(c, places);
  const std::string count = scalar == Scalar::i64 ? n : call(c, "Cast", {n}, {{"to", int64_t{6}}});
  const std::string below = call(c, "Less", {places, constant_number(c, scalar, 0)});
  return call(c, "Where", {below, call(c, "Add", {places, count}), places});
}

Result<std::optional<ShapeValues>> deciding_numbers(ExtentComposer& c, const std::string& name, size_t i) {
  // Starts and ends beyond these bounds mean "to the end".
  constexpr int64_t farthest = int64_t{1} << 61;
  std::optional<ShapeValues> numbers;
  if (const auto list = known_list(c, c.call(), name, i)) {
    numbers.emplace();
    for (const int64_t number : *list) numbers->push_back(exactly(std::clamp(number, -farthest, farthest)));
  } else if (c.has(i)) {
    HOIST_TRY(numbers, numbers_from_data(c, input_name(c, i)));
  }
  return numbers;
}

Result<Nothing> check_capacity(const ShapeValues& extents) {
  for (const ShapeValue& extent : extents) {
    if (extent.high < 0) return fault(fmt::format("an extent would be {}", extent.high));
  }
  return check_bounds(extents);
}

}  // namespace hoist::operators
