// Operators that move elements of arrays with data-dependent extents: slices, concatenations, elements at positions.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "ir/operators/dynamic/dynamic_arrays.h"

namespace hoist::operators {
namespace {

// A position that counts from the end if it is negative.
ShapeValue from_start(ExtentComposer& c, const ShapeValue& place, const ShapeValue& n) {
  if (place.low >= 0) return place;
  if (place.high < 0) return sum(c, place, n);
  const ShapeValue moved = sum(c, place, n);
  ShapeValue out{std::min<int64_t>(moved.low, 0), std::max(place.high, moved.high)};
  const std::string one = scalar_value(c, place), other = scalar_value(c, moved);
  out.value = c.once(fmt::format("{} or from the end of {}", one, scalar_value(c, n)), [&] {
    return call(c, "Where", {call(c, "Less", {one, constant_number(c, Scalar::i64, 0)}), other, one});
  });
  c.say_numbers(out.value, {out});
  return out;
}

ShapeValue clamped(ExtentComposer& c, const ShapeValue& n, const ShapeValue& low, const ShapeValue& high) {
  return greatest(c, least(c, n, high), low);
}

// As in ONNX, a position out of range is clamped.
DynamicArray sliced(ExtentComposer& c, const DynamicArray& x, size_t axis, ShapeValue start, ShapeValue end,
                    int64_t step) {
  const ShapeValue n = x.extents[axis];
  const int64_t room = room_of(c, x.value)[axis];
  step = std::clamp<int64_t>(step, -room - 1, room + 1);
  const ShapeValue low = exactly(step > 0 ? 0 : -1);
  const ShapeValue high = step > 0 ? n : difference(c, n, exactly(1));
  start = clamped(c, from_start(c, start, n), low, high);
  end = clamped(c, from_start(c, end, n), low, high);
  ShapeValue length = range_length(c, start, end, step);
  length.high = std::min(length.high, room);
  if (start == exactly(0) && step == 1 && length == n) return x;
  if (start.is_known() && step == 1) {
    const int64_t from = std::min(start.low, room);
    length.high = std::min(length.high, room - from);
    DynamicArray out{slice_capacity(c, x.value, axis, from, length.high), x.extents};
    out.extents[axis] = length;
    return out;
  }
  if (length.high == 0 || room == 0) {
    DynamicArray out{slice_capacity(c, x.value, axis, 0, 0), x.extents};
    out.extents[axis] = exactly(0);
    return out;
  }
  // Positions beyond the actual length may be out of range; a position below 0 would count from the end.
  const std::string places =
      call(c, "Max", {range_of(c, start, step, length.high), constant_number(c, Scalar::i64, 0)});
  return taken_along(c, x, axis, places, length);
}

// ---- Parts -------------------------------------------------------------------------------------------------------
Done sliced_call(ExtentComposer& c) {
  HOIST_TRY(const auto starts, deciding_numbers(c, "starts", 1));
  HOIST_TRY(const auto stops, deciding_numbers(c, "ends", 2));
  if (!starts || !stops) return false;
  if (!reads_dynamic(c) && are_all_known(*starts) && are_all_known(*stops)) return false;
  const size_t count = starts->size();
  const auto steps = known_list(c, c.call(), "steps", 4), axes = known_list(c, c.call(), "axes", 3);
  if ((c.has(4) && !steps) || (c.has(3) && !axes)) return false;
  DynamicArray x = operand(c, 0);
  if (stops->size() != count || (steps && steps->size() != count) || (axes && axes->size() != count) ||
      (!axes && count > x.extents.size()))
    return fault(fmt::format("starts and ends have {} and {} values", count, stops->size()));
  for (size_t i = 0; i < count; ++i) {
    const int64_t step = steps ? (*steps)[i] : 1;
    if (step == 0) return fault("a step is 0");
    HOIST_TRY(const int64_t axis,
              normalise_axis(axes ? (*axes)[i] : static_cast<int64_t>(i), static_cast<int64_t>(x.extents.size())));
    x = sliced(c, x, static_cast<size_t>(axis), (*starts)[i], (*stops)[i], step);
  }
  c.give(0, x.value, x.extents);
  return true;
}

Done split_call(ExtentComposer& c) {
  const DynamicArray x = operand(c, 0);
  HOIST_TRY(const int64_t axis, axis_of(c, "axis", 0, x.extents.size()));
  const ShapeValue n = x.extents[static_cast<size_t>(axis)];
  HOIST_TRY(std::optional<ShapeValues> lengths, deciding_numbers(c, "split", 1));
  if (!reads_dynamic(c) && (!lengths || are_all_known(*lengths))) return false;
  if (!lengths) {
    if (c.has(1)) return false;
    const auto results = static_cast<int64_t>(c.call().outputs.size());
    const int64_t parts = integer_of(c.call(), "num_outputs", results);
    if (parts < 1 || parts < results) return fault(fmt::format("{} parts for {} results", parts, results));
    const ShapeValue each = quotient(c, sum(c, n, exactly(parts - 1)), exactly(parts));
    lengths = ShapeValues(static_cast<size_t>(parts), each);
  }
  if (lengths->size() < c.call().outputs.size()) return fault("there are more results than parts");
  ShapeValue from = exactly(0);
  for (size_t i = 0; i < c.call().outputs.size(); ++i) {
    const ShapeValue to = sum(c, from, (*lengths)[i]);
    const DynamicArray part = sliced(c, x, static_cast<size_t>(axis), from, to, 1);
    c.give(i, part.value, part.extents);
    from = to;
  }
  return true;
}

Done joined_call(ExtentComposer& c) {
  if (!reads_dynamic(c)) return false;
  std::vector<DynamicArray> parts;
  for (size_t i = 0; i < c.call().inputs.size(); ++i) parts.push_back(operand(c, i));
  if (std::any_of(parts.begin(), parts.end(), [](const DynamicArray& part) { return part.extents.size() != 1; }))
    std::erase_if(parts, [](const DynamicArray& part) { return part.extents == ShapeValues{exactly(0)}; });
  HOIST_TRY(const int64_t named, axis_of(c, "axis", 1, parts[0].extents.size()));
  const auto axis = static_cast<size_t>(named);
  for (const DynamicArray& part : parts) {
    if (part.extents.size() != parts[0].extents.size()) return false;
  }
  // The parts at full capacity, concatenated; elements beyond each part's actual length are skipped. Other dimensions
  // have the largest capacity of all parts.
  ShapeValues extents = parts[0].extents;
  Shape room = room_of(c, parts[0].value);
  for (const DynamicArray& part : parts) {
    const Shape own = room_of(c, part.value);
    for (size_t d = 0; d < own.size(); ++d) {
      if (d == axis) continue;
      room[d] = std::min(room[d], own[d]);
      if (part.extents[d].is_known()) extents[d] = part.extents[d];
    }
  }
  for (size_t d = 0; d < room.size(); ++d) {
    if (d == axis) continue;
    if (extents[d].is_known()) room[d] = extents[d].low;
    extents[d].high = std::min(extents[d].high, room[d]);
  }
  std::vector<std::string> values;
  for (DynamicArray& part : parts) {
    for (size_t d = 0; d < room.size(); ++d) {
      if (d == axis) continue;
      if (room_of(c, part.value)[d] < room[d])
        return fault(fmt::format("{} is too short along dimension {}", part.value, d));
      part.value = slice_capacity(c, part.value, d, 0, room[d]);
    }
    values.push_back(part.value);
  }
  DynamicArray out{call(c, "Concat", values, {{"axis", named}}), extents};
  ShapeValue end = exactly(0);
  std::string skipped;
  const int64_t all = room_of(c, out.value)[axis];
  for (size_t i = 0; i < parts.size(); ++i) {
    end = sum(c, end, parts[i].extents[axis]);
    const ShapeValue gap = difference(c, exactly(room_of(c, parts[i].value)[axis]), parts[i].extents[axis]);
    if (i + 1 == parts.size() || gap == exactly(0)) continue;
    const std::string behind = call(c, "GreaterOrEqual", {counting_up(c, all), scalar_value(c, end)});
    const std::string own = call(c, "Where", {behind, scalar_value(c, gap), constant_number(c, Scalar::i64, 0)});
    skipped = skipped.empty() ? own : call(c, "Add", {skipped, own});
  }
  out.extents[axis] = end;
  HOIST_TRY_VOID(check_capacity(out.extents));
  if (!skipped.empty()) out = taken_along(c, out, axis, call(c, "Add", {counting_up(c, all), skipped}), end);
  c.give(0, out.value, out.extents);
  return true;
}

// The positions in an array of n elements that the given positions read in a mode of Pad; positions may be negative.
std::string padding_places(ExtentComposer& c, const std::string& mode, const std::string& places, const ShapeValue& n) {
  const ShapeValue last = greatest(c, difference(c, n, exactly(1)), exactly(0));
  if (mode == "wrap") return call(c, "Mod", {places, scalar_value(c, greatest(c, n, exactly(1)))});
  if (mode == "reflect") {  // periodic; one period runs to the last element and back
    const std::string period = scalar_value(c, greatest(c, product(c, last, exactly(2)), exactly(1)));
    const std::string place = call(c, "Mod", {places, period});
    // The smaller one is at most the last position; index ranges follow each of the two alone.
    const std::string nearer = call(c, "Min", {place, call(c, "Sub", {period, place})});
    return call(c, "Min", {nearer, scalar_value(c, last)});
  }
  return call(c, "Min", {call(c, "Max", {places, constant_number(c, Scalar::i64, 0)}), scalar_value(c, last)});
}

// Pads along one dimension by amounts that the data determine; negative amounts crop first. An array without elements
// has no element to read; then all elements are the filler.
DynamicArray padded_by_data(ExtentComposer& c, DynamicArray x, size_t axis, const ShapeValue& before,
                            const ShapeValue& after, const std::string& mode, const std::string& filler) {
  const ShapeValue none = exactly(0);
  const ShapeValue end = greatest(c, sum(c, x.extents[axis], least(c, after, none)), none);
  x = sliced(c, x, axis, greatest(c, difference(c, none, before), none), end, 1);
  const ShapeValue n = x.extents[axis], front = greatest(c, before, none);
  const ShapeValue extent = sum(c, sum(c, n, front), greatest(c, after, none));
  const Shape room = room_of(c, x.value);
  if (room[axis] == 0) {
    Shape bounds = room;
    bounds[axis] = extent.high;
    x.value = call(c, "Expand", {filler}, {{"shape", bounds}});
    x.extents[axis] = extent;
    return x;
  }
  const std::string places = call(c, "Sub", {counting_up(c, extent.high), scalar_value(c, front)});
  DynamicArray out = taken_along(c, x, axis, padding_places(c, mode, places, n), extent);
  if (mode != "constant") return out;
  const std::string inside = call(c, "And",
                                  {call(c, "GreaterOrEqual", {places, constant_number(c, Scalar::i64, 0)}),
                                   call(c, "Less", {places, scalar_value(c, n)})});
  out.value = call(c, "Where", {along(c, inside, room.size() - 1 - axis), out.value, filler});
  return out;
}

Done padded_call(ExtentComposer& c) {
  HOIST_TRY(const auto amounts, deciding_numbers(c, "pads", 1));
  if (!amounts || (!reads_dynamic(c) && are_all_known(*amounts))) return false;
  const auto axes = known_list(c, c.call(), "axes", 3);
  if (c.has(3) && !axes) return false;
  DynamicArray out = operand(c, 0);
  const size_t named = axes ? axes->size() : out.extents.size();
  if (amounts->size() != 2 * named) return false;
  const std::string mode = text_of(c.call(), "mode", "constant");
  const bool has_filler = c.has(2);
  const auto filler = [&] {
    return has_filler ? call(c, "Reshape", {input_name(c, 2)}, {{"shape", Shape{1}}})
                      : constant_number(c, scalar_of(c, out.value), 0);
  };
  // Amounts that are known, at least at the front, are a Pad of the arrays at capacity.
  const size_t rank = out.extents.size();
  Shape fixed(2 * rank, 0);
  ShapeValues added(rank, exactly(0));  // after the last element
  std::set<int64_t> behind;
  for (size_t i = 0; i < named; ++i) {
    HOIST_TRY(const int64_t axis,
              normalise_axis(axes ? (*axes)[i] : static_cast<int64_t>(i), static_cast<int64_t>(rank)));
    const auto d = static_cast<size_t>(axis);
    const ShapeValue &before = (*amounts)[i], &after = (*amounts)[i + named];
    const ShapeValue& extent = out.extents[d];
    if (before == exactly(0) && after == exactly(0)) continue;
    const bool all_known = extent.is_known() && before.is_known() && after.is_known();
    if (!all_known && (mode != "constant" || !before.is_known() || before.low < 0 || after.low < 0)) {
      out = padded_by_data(c, out, d, before, after, mode, filler());
      continue;
    }
    if (!extent.is_known() && after.high > 0) behind.insert(axis);
    fixed[d] = before.low;
    fixed[d + rank] = after.high;
    added[d] = after;
  }
  Attributes attributes = attributes_without(c, {"pads", "axes"});
  attributes["pads"] = fixed;
  std::vector<std::string> inputs = {out.value};
  if (has_filler) inputs = {out.value, "", input_name(c, 2)};
  if (std::any_of(fixed.begin(), fixed.end(), [](int64_t n) { return n != 0; }))
    out.value = call(c, "Pad", inputs, attributes);
  for (size_t d = 0; d < rank; ++d) out.extents[d] = sum(c, out.extents[d], exactly(fixed[d]));
  if (!behind.empty()) out.value = filled(c, out, behind, filler());
  for (size_t d = 0; d < rank; ++d) {
    if (fixed[d + rank] != 0) out.extents[d] = greatest(c, sum(c, out.extents[d], added[d]), exactly(0));
  }
  HOIST_TRY_VOID(check_capacity(out.extents));
  c.give(0, out.value, out.extents);
  return true;
}

// ---- Elements at places ------------------------------------------------------------------------------------------
Done gathered_call(ExtentComposer& c) {
  if (!reads_dynamic(c)) return false;
  const DynamicArray x = operand(c, 0), places = operand(c, 1);
  HOIST_TRY(const int64_t axis, axis_of(c, "axis", 0, x.extents.size()));
  const ShapeValue n = x.extents[static_cast<size_t>(axis)];
  HOIST_TRY(const Tensor* known, c.known(places.value));
  const auto any_below = [](const Tensor& all) {
    const std::vector<int64_t> numbers = all.as_integers();
    return std::any_of(numbers.begin(), numbers.end(), [](int64_t place) { return place < 0; });
  };
  const bool counts_from_end = !n.is_known() && (known == nullptr || any_below(*known));
  const std::string from = counts_from_end ? places_from_start(c, places.value, n.value) : places.value;
  ShapeValues extents(x.extents.begin(), x.extents.begin() + axis);
  extents.insert(extents.end(), places.extents.begin(), places.extents.end());
  extents.insert(extents.end(), x.extents.begin() + axis + 1, x.extents.end());
  c.give(0, call(c, "Gather", {x.value, from}, {{"axis", axis}}), extents);
  return true;
}

Done gathered_elements_call(ExtentComposer& c) {
  if (!reads_dynamic(c)) return false;
  DynamicArray x = operand(c, 0), places = operand(c, 1);
  HOIST_TRY(const int64_t axis, axis_of(c, "axis", 0, x.extents.size()));
  if (places.extents.size() != x.extents.size()) return false;
  const ShapeValue n = x.extents[static_cast<size_t>(axis)];
  std::string from = n.is_known() ? places.value : places_from_start(c, places.value, n.value);
  // Along other dimensions the positions do not extend beyond the data.
  const Shape room = room_of(c, x.value);
  for (size_t d = 0; d < room.size(); ++d) {
    if (static_cast<int64_t>(d) == axis || room_of(c, from)[d] <= room[d]) continue;
    from = slice_capacity(c, from, d, 0, room[d]);
    places.extents[d].high = std::min(places.extents[d].high, room[d]);
  }
  c.give(0, call(c, "GatherElements", {x.value, from}, {{"axis", axis}}), places.extents);
  return true;
}

// Rows of positions in the dimensions from `batch` on; negative positions count from the end.
std::string rows_from_start(ExtentComposer& c, const std::string& rows, const DynamicArray& x, size_t batch) {
  const auto count = static_cast<size_t>(room_of(c, rows).back());
  const ShapeValues ends(x.extents.begin() + static_cast<std::ptrdiff_t>(batch),
                         x.extents.begin() + static_cast<std::ptrdiff_t>(batch + count));
  return are_all_known(ends) ? rows : places_from_start(c, rows, list_value(c, ends));
}

Done gathered_rows_call(ExtentComposer& c) {
  const DynamicArray x = operand(c, 0), rows = operand(c, 1);
  if (!reads_dynamic(c)) return false;
  const int64_t batch = integer_of(c.call(), "batch_dims", 0);
  if (rows.extents.empty() || !rows.extents.back().is_known() || batch < 0) return false;
  const int64_t count = rows.extents.back().low;
  if (count < 1 || batch + count > std::ssize(x.extents) || batch >= std::ssize(rows.extents)) return false;
  for (int64_t d = 0; d < batch; ++d) {
    if (room_of(c, x.value)[static_cast<size_t>(d)] != room_of(c, rows.value)[static_cast<size_t>(d)]) return false;
  }
  ShapeValues extents(rows.extents.begin(), rows.extents.end() - 1);
  extents.insert(extents.end(), x.extents.begin() + batch + count, x.extents.end());
  const std::string from = rows_from_start(c, rows.value, x, static_cast<size_t>(batch));
  c.give(0, call(c, "GatherND", {x.value, from}, c.call().attributes), extents);
  return true;
}

// Positions beyond the actual length write nothing.
Done scattered_elements_call(ExtentComposer& c) {
  if (!reads_dynamic(c)) return false;
  const DynamicArray x = operand(c, 0);
  DynamicArray places = operand(c, 1);
  const DynamicArray updates = operand(c, 2);
  HOIST_TRY(const int64_t axis, axis_of(c, "axis", 0, x.extents.size()));
  if (places.extents.size() != x.extents.size() || updates.extents.size() != x.extents.size()) return false;
  const ShapeValue n = x.extents[static_cast<size_t>(axis)];
  if (!n.is_known()) places.value = places_from_start(c, places.value, n.value);
  const int64_t outside = room_of(c, x.value)[static_cast<size_t>(axis)];
  std::string from = filled(c, places, all_dimensions(places), constant_number(c, scalar_of(c, places.value), outside));
  std::string values = updates.value;
  const Shape room = room_of(c, x.value);
  for (size_t d = 0; d < room.size(); ++d) {
    const int64_t most = static_cast<int64_t>(d) == axis ? std::numeric_limits<int64_t>::max() : room[d];
    const int64_t fits = std::min({room_of(c, from)[d], room_of(c, values)[d], most});
    from = slice_capacity(c, from, d, 0, fits);
    values = slice_capacity(c, values, d, 0, fits);
  }
  c.give(0, call(c, "ScatterElements", {x.value, from, values}, c.call().attributes), x.extents);
  return true;
}

Done scattered_rows_call(ExtentComposer& c) {
  if (!reads_dynamic(c)) return false;
  const DynamicArray x = operand(c, 0), updates = operand(c, 2);
  DynamicArray rows = operand(c, 1);
  if (rows.extents.empty() || !rows.extents.back().is_known()) return false;
  const int64_t count = rows.extents.back().low;
  if (count < 1 || count > std::ssize(x.extents)) return false;
  rows.value = rows_from_start(c, rows.value, x, 0);
  const Shape room = room_of(c, x.value);
  const int64_t outside = *std::max_element(room.begin(), room.begin() + count);
  std::set<int64_t> leading;
  for (int64_t d = 0; d + 1 < std::ssize(rows.extents); ++d) leading.insert(d);
  std::string from = filled(c, rows, leading, constant_number(c, scalar_of(c, rows.value), outside));
  std::string values = updates.value;
  for (size_t d = 0; d < room_of(c, values).size(); ++d) {
    const bool of_rows = leading.count(static_cast<int64_t>(d)) != 0;
    const size_t of_array = d - leading.size() + static_cast<size_t>(count);
    if (of_rows) {
      const int64_t fits = std::min(room_of(c, from)[d], room_of(c, values)[d]);
      from = slice_capacity(c, from, d, 0, fits);
      values = slice_capacity(c, values, d, 0, fits);
    } else if (of_array >= room.size() || room_of(c, values)[d] != room[of_array]) {
      return false;
    }
  }
  c.give(0, call(c, "ScatterND", {x.value, from, values}, c.call().attributes), x.extents);
  return true;
}

// Rows beyond the extent of the cache are written to unused capacity. A circular cache wraps at its extent.
Done scattered_cache_call(ExtentComposer& c) {
  if (!reads_dynamic(c)) return false;
  const DynamicArray cache = operand(c, 0), update = operand(c, 1);
  HOIST_TRY(const int64_t axis, axis_of(c, "axis", -2, cache.extents.size()));
  const auto d = static_cast<size_t>(axis);
  const bool wraps = text_of(c.call(), "mode", "linear") == "circular";
  if (update.extents.size() != cache.extents.size() || !update.extents[d].is_known() ||
      (wraps && !cache.extents[d].is_known()))
    return false;
  Shape expected = room_of(c, cache.value);
  expected[d] = update.extents[d].low;
  if (room_of(c, update.value) != expected) return false;
  std::vector<std::string> inputs = {cache.value, update.value};
  if (c.has(2)) inputs.push_back(input_name(c, 2));
  c.give(0, call(c, "TensorScatter", inputs, c.call().attributes), cache.extents);
  return true;
}

constexpr auto rows_of_parts = std::to_array<ExtentMeaningRow>({
    {"Concat", joined_call},
    {"Gather", gathered_call},
    {"GatherElements", gathered_elements_call},
    {"GatherND", gathered_rows_call},
    {"Pad", padded_call},
    {"ScatterElements", scattered_elements_call},
    {"ScatterND", scattered_rows_call},
    {"Slice", sliced_call},
    {"Split", split_call},
    {"TensorScatter", scattered_cache_call},
});

}  // namespace

std::span<const ExtentMeaningRow> dynamic_parts() { return rows_of_parts; }

}  // namespace hoist::operators
