// Operators about shapes over arrays with data-dependent extents: shapes as elements, arrays known from a shape, and
// other shapes of the same elements.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "ir/operators/dynamic/dynamic_arrays.h"

namespace hoist::operators {
namespace {

// ---- Shapes as numbers -------------------------------------------------------------------------------------------
Done shape_of_dynamic(ExtentComposer& c) {
  if (!reads_dynamic(c)) return false;
  const ShapeValues extents = operand(c, 0).extents;
  const auto rank = static_cast<int64_t>(extents.size());
  const auto place = [&](const char* name, int64_t otherwise) {
    const int64_t at = integer_of(c.call(), name, otherwise);
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const int64_t start = place("start", 0), end = std::max(start, place("end", rank));
  c.give(0, list_value(c, ShapeValues(extents.begin() + start, extents.begin() + end)));
  return true;
}

Done size_of_dynamic(ExtentComposer& c) {
  if (!reads_dynamic(c)) return false;
  c.give(0, scalar_value(c, product(c, operand(c, 0).extents)));
  return true;
}

Done filled_shape(ExtentComposer& c) {
  HOIST_TRY(const auto numbers, deciding_numbers(c, "input", 0));
  if (!numbers || are_all_known(*numbers)) return false;
  HOIST_TRY_VOID(check_capacity(*numbers));
  ShapeValues extents;
  for (const ShapeValue& number : *numbers) extents.push_back(greatest(c, number, exactly(0)));
  Attributes attributes = c.call().attributes;
  attributes["input"] = upper_bounds(extents);
  c.give(0, call(c, "ConstantOfShape", {}, attributes), extents);
  return true;
}

Done dynamic_range(ExtentComposer& c) {
  ShapeValues ends;
  for (size_t i = 0; i < 3; ++i) {
    HOIST_TRY(const auto numbers, deciding_numbers(c, "", i));
    if (!numbers || numbers->size() != 1) return false;
    ends.push_back((*numbers)[0]);
  }
  const ShapeValue &start = ends[0], &limit = ends[1], &delta = ends[2];
  if (are_all_known(ends) || !delta.is_known() || delta.low == 0) return false;
  const ShapeValue length = range_length(c, start, limit, delta.low);
  HOIST_TRY_VOID(check_capacity({length}));
  std::string all = range_of(c, start, delta.low, length.high);
  if (scalar_of(c, input_name(c, 0)) == Scalar::i32) all = call(c, "Cast", {all}, {{"to", int64_t{6}}});
  c.give(0, all, {length});
  return true;
}

// ---- Other shapes of the same elements -----------------------------------------------------------------------------
// True if the valid elements are contiguous from the first element on: all dimensions before the only data-dependent
// one have extent 1. Returns that dimension.
std::optional<size_t> leading_count(const ShapeValues& extents) {
  std::optional<size_t> found;
  for (size_t d = 0; d < extents.size(); ++d) {
    if (extents[d].is_known()) {
      if (!found && extents[d].low != 1) return std::nullopt;
      continue;
    }
    if (found) return std::nullopt;
    found = d;
  }
  return found;
}

int64_t known_product(const ShapeValues& extents) {
  int64_t out = 1;
  for (const ShapeValue& extent : extents) out *= extent.is_known() ? extent.low : 1;
  return out;
}

// True if on both sides the same data-dependent dimensions are followed by equally many elements.
bool same_groups(const ShapeValues& from, const ShapeValues& to) {
  const auto groups = [](const ShapeValues& extents) {
    std::vector<std::pair<std::string, int64_t>> out = {{"", 1}};
    for (const ShapeValue& extent : extents) {
      if (extent.is_known())
        out.back().second *= extent.low;
      else
        out.emplace_back(extent.value, 1);
    }
    return out;
  };
  return groups(from) == groups(to);
}

// Moves element by element: computes for each position in the new shape the position in the old shape.
Result<DynamicArray> moved_together(ExtentComposer& c, const DynamicArray& x, const ShapeValues& to) {
  const Shape room = room_of(c, x.value), bounds = upper_bounds(to);
  const auto combined = [&](const std::string& operation, const std::string& list, const ShapeValue& n) {
    if (n == exactly(1) && (operation == "Mul" || operation == "Div")) return list;
    return call(c, operation, {list, scalar_value(c, n)});
  };
  const auto added = [&](const std::string& total, const std::string& term) {
    return total.empty() ? term : call(c, "Add", {total, term});
  };
  // The index of each element among the valid ones.
  const std::string all = counting_up(c, product(bounds));
  std::string number;
  for (size_t d = 0; d < to.size(); ++d) {
    const int64_t stride = product(Shape(bounds.begin() + static_cast<std::ptrdiff_t>(d) + 1, bounds.end()));
    std::string place = combined("Div", all, exactly(std::max<int64_t>(stride, 1)));
    if (d > 0) place = combined("Mod", place, exactly(std::max<int64_t>(bounds[d], 1)));
    number = added(
        number,
        combined("Mul", place, product(c, ShapeValues(to.begin() + static_cast<std::ptrdiff_t>(d) + 1, to.end()))));
  }
  if (number.empty()) number = all;
  std::string from;
  for (size_t d = 0; d < room.size(); ++d) {
    const auto behind = static_cast<std::ptrdiff_t>(d) + 1;
    const ShapeValue stride =
        greatest(c, product(c, ShapeValues(x.extents.begin() + behind, x.extents.end())), exactly(1));
    std::string place = combined("Div", number, stride);
    if (d > 0) place = combined("Mod", place, greatest(c, x.extents[d], exactly(1)));
    from = added(from, combined("Mul", place, exactly(product(Shape(room.begin() + behind, room.end())))));
  }
  const std::string flat = call(c, "Reshape", {x.value}, {{"shape", Shape{product(room)}}});
  const std::string taken = from.empty() ? flat : call(c, "Gather", {flat, from}, {{"axis", int64_t{0}}});
  return DynamicArray{call(c, "Reshape", {taken}, {{"shape", bounds}, {"allowzero", int64_t{1}}}), to};
}

}  // namespace

Result<DynamicArray> reshaped(ExtentComposer& c, const DynamicArray& x, ShapeValues to) {
  HOIST_TRY_VOID(check_capacity(to));
  const Shape room = room_of(c, x.value);
  if (same_groups(x.extents, to)) {
    // A dimension that moves keeps its bound.
    size_t next = 0;
    for (ShapeValue& extent : to) {
      if (extent.is_known()) continue;
      while (x.extents[next].is_known()) ++next;
      extent.high = room[next++];
    }
    return DynamicArray{call(c, "Reshape", {x.value}, {{"shape", upper_bounds(to)}, {"allowzero", int64_t{1}}}), to};
  }
  const auto leads = leading_count(x.extents), led = leading_count(to);
  const int64_t row = known_product(to);
  if (leads && led && row > 0 && product(room) > 0) {
    ShapeValue& rows = to[*led];
    rows.high = std::min(rows.high, product(room) / row);
    std::string flat = call(c, "Reshape", {x.value}, {{"shape", Shape{product(room)}}});
    flat = slice_capacity(c, flat, 0, 0, rows.high * row);
    return DynamicArray{call(c, "Reshape", {flat}, {{"shape", upper_bounds(to)}, {"allowzero", int64_t{1}}}), to};
  }
  if (product(room) == 0) {
    return fault(fmt::format("{} has no elements, and its new shape depends on data", hoist::text(c.type(x.value))));
  }
  return moved_together(c, x, to);
}

namespace {

// The extents of a shape operand: 0 keeps an extent, and -1 is the remaining extent.
Result<ShapeValues> wanted_extents(ExtentComposer& c, const ShapeValues& from, ShapeValues to, bool keep_zeros) {
  std::optional<size_t> open;
  for (size_t d = 0; d < to.size(); ++d) {
    if (to[d] == exactly(0) && !keep_zeros) {
      if (d >= from.size()) return fault(fmt::format("extent {} of the new shape is 0, and the input has none", d));
      to[d] = from[d];
    } else if (to[d] == exactly(-1)) {
      if (open) return fault("the new shape leaves two extents open");
      open = d;
    } else if (to[d].low < 0) {
      if (to[d].high < 0) return fault(fmt::format("extent {} of the new shape is below 0", d));
      to[d].low = 0;
    }
  }
  if (!open) return to;
  // Factors on both sides cancel.
  ShapeValues all = from, others;
  int64_t known = 1, divisor = 1;
  for (size_t d = 0; d < to.size(); ++d) {
    if (d == *open) continue;
    const auto same = std::find(all.begin(), all.end(), to[d]);
    if (same != all.end() && !to[d].is_known()) {
      all.erase(same);
    } else if (to[d].is_known()) {
      if (__builtin_mul_overflow(divisor, to[d].low, &divisor)) return fault("the new shape has too many elements");
    } else {
      others.push_back(to[d]);
    }
  }
  std::erase_if(all, [&](const ShapeValue& n) {
    if (n.is_known()) known *= n.low;
    return n.is_known();
  });
  if (divisor == 0) return fault("the open extent is undetermined, because the other extents include 0");
  if (known % divisor == 0) known /= divisor, divisor = 1;
  const ShapeValue total = product(c, product(c, all), exactly(known));
  const ShapeValue rows = greatest(c, product(c, product(c, others), exactly(divisor)), exactly(1));
  to[*open] = quotient(c, total, rows);
  return to;
}

Done reshaped_call(ExtentComposer& c) {
  HOIST_TRY(const auto wanted, deciding_numbers(c, "shape", 1));
  if (!wanted || (!reads_dynamic(c) && are_all_known(*wanted))) return false;
  const DynamicArray x = operand(c, 0);
  HOIST_TRY(const ShapeValues to, wanted_extents(c, x.extents, *wanted, integer_of(c.call(), "allowzero", 0) != 0));
  HOIST_TRY(const DynamicArray out, reshaped(c, x, to));
  c.give(0, out.value, out.extents);
  return true;
}

Done flattened_call(ExtentComposer& c) {
  if (!reads_dynamic(c)) return false;
  const DynamicArray x = operand(c, 0);
  const auto rank = static_cast<int64_t>(x.extents.size());
  int64_t axis = integer_of(c.call(), "axis", 1);
  if (axis < -rank || axis > rank) return false;
  if (axis < 0) axis += rank;
  const auto middle = x.extents.begin() + axis;
  HOIST_TRY(const DynamicArray out, reshaped(c, x,
                                             {product(c, ShapeValues(x.extents.begin(), middle)),
                                              product(c, ShapeValues(middle, x.extents.end()))}));
  c.give(0, out.value, out.extents);
  return true;
}

// The array with the extent `to` along a dimension; it has this extent already, or one element, which is repeated.
DynamicArray repeated_along(ExtentComposer& c, const DynamicArray& x, size_t axis, const ShapeValue& to) {
  const std::string last = scalar_value(c, greatest(c, difference(c, x.extents[axis], exactly(1)), exactly(0)));
  return taken_along(c, x, axis, call(c, "Min", {counting_up(c, to.high), last}), to);
}

Done expanded_call(ExtentComposer& c) {
  HOIST_TRY(const auto wanted, deciding_numbers(c, "shape", 1));
  if (!wanted || (!reads_dynamic(c) && are_all_known(*wanted))) return false;
  DynamicArray x = operand(c, 0);
  ShapeValues to = *wanted;
  while (to.size() < x.extents.size()) to.insert(to.begin(), exactly(1));
  const size_t more = to.size() - x.extents.size();
  for (size_t d = 0; d < x.extents.size(); ++d) {
    ShapeValue& extent = to[more + d];
    const ShapeValue own = x.extents[d];
    const bool stays = extent == exactly(1) || extent == own || (own.is_known() && own.low != 1);
    if (stays)
      extent = own;
    else if (own != exactly(1))
      x = repeated_along(c, x, d, extent);
  }
  HOIST_TRY_VOID(check_capacity(to));
  Shape bounds = upper_bounds(to);
  const Shape room = room_of(c, x.value);
  for (size_t d = 0; d < room.size(); ++d) {
    if (!to[more + d].is_known() && room[d] != 1) bounds[more + d] = room[d];
  }
  c.give(0, call(c, "Expand", {x.value}, {{"shape", bounds}}), to);
  return true;
}

Done tiled_call(ExtentComposer& c) {
  HOIST_TRY(const auto repeats, deciding_numbers(c, "repeats", 1));
  if (!repeats || (!reads_dynamic(c) && are_all_known(*repeats))) return false;
  DynamicArray x = operand(c, 0);
  if (repeats->size() != x.extents.size()) return false;
  for (size_t d = 0; d < x.extents.size(); ++d) {
    const ShapeValue n = x.extents[d], times = (*repeats)[d], all = product(c, n, times);
    if (times == exactly(1)) continue;
    HOIST_TRY_VOID(check_capacity({all}));
    const std::string place = counting_up(c, all.high);
    const std::string length = scalar_value(c, greatest(c, n, exactly(1)));
    x = taken_along(c, x, d, call(c, "Mod", {place, length}), all);
  }
  HOIST_TRY_VOID(check_capacity(x.extents));
  c.give(0, x.value, x.extents);
  return true;
}

constexpr auto rows_of_shapes = std::to_array<ExtentMeaningRow>({
    {"ConstantOfShape", filled_shape},
    {"Expand", expanded_call},
    {"Flatten", flattened_call},
    {"Range", dynamic_range},
    {"Reshape", reshaped_call},
    {"Shape", shape_of_dynamic},
    {"Size", size_of_dynamic},
    {"Tile", tiled_call},
});

}  // namespace

std::span<const ExtentMeaningRow> dynamic_shapes() { return rows_of_shapes; }

}  // namespace hoist::operators
