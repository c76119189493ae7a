#include "ir/operators/data_extents.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "ir/operators/support.h"
#include "ir/operators/whole_numbers.h"
#include "ir/program/program_builder.h"

namespace hoist {
namespace operators {
namespace {

using Done = Result<bool>;

/// An array and how much of it counts. Calls are made as though all of it did.
struct Bounded {
  std::string value;
  WholeNumbers extents;
};

const std::string& input_name(const ExtentComposer& c, size_t i) { return c.call().inputs[i]; }

Bounded operand(ExtentComposer& c, size_t i) { return {input_name(c, i), extents_of(c, input_name(c, i))}; }

Scalar scalar_of(const ExtentComposer& c, const std::string& value) { return leaf_of(c.type(value))->scalar; }

// How much room an array has.
Shape room_of(const ExtentComposer& c, const std::string& value) {
  Shape out;
  for (const Nat& size : sizes_of(c.type(value))) out.push_back(size.value());
  return out;
}

Shape bounds_of(const WholeNumbers& extents) {
  Shape out;
  for (const WholeNumber& extent : extents) out.push_back(extent.high);
  return out;
}

bool all_known(const WholeNumbers& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](const WholeNumber& n) { return n.is_known(); });
}

std::string call(ExtentComposer& c, const std::string& operation, std::vector<std::string> inputs,
                 Attributes attributes = {}) {
  return c.add_bounded(operation, std::move(attributes), std::move(inputs))[0];
}

std::string constant_number(ExtentComposer& c, Scalar scalar, int64_t value) {
  return c.once(fmt::format("number {} {}", row(scalar).name, value),
                [&] { return c.constant(Tensor::of(scalar, {}, std::vector<int64_t>{value})); });
}

// 0, 1, ... as i64.
std::string positions(ExtentComposer& c, int64_t count) {
  return c.once(fmt::format("positions {}", count), [&] {
    const auto number = [](int64_t n) { return Tensor::of(Scalar::i64, {}, std::vector<int64_t>{n}); };
    return call(c, "Range", {}, {{"start", number(0)}, {"limit", number(count)}, {"delta", number(1)}});
  });
}

// A list along one dimension of an array: with dimensions of extent 1 behind it.
std::string along(ExtentComposer& c, const std::string& list, size_t dimensions_behind) {
  if (dimensions_behind == 0) return list;
  std::vector<int64_t> axes;
  for (size_t i = 1; i <= dimensions_behind; ++i) axes.push_back(static_cast<int64_t>(i));
  return call(c, "Unsqueeze", {list}, {{"axes", axes}});
}

// Which elements count along these dimensions, in a shape that broadcasts to the array's; "" where all do.
std::string counting_elements(ExtentComposer& c, const Bounded& x, const std::set<int64_t>& dimensions) {
  const Shape room = room_of(c, x.value);
  std::string all;
  for (const int64_t d : dimensions) {
    const WholeNumber& extent = x.extents[static_cast<size_t>(d)];
    if (extent.is_known()) continue;
    const int64_t most = room[static_cast<size_t>(d)];
    const size_t behind = room.size() - 1 - static_cast<size_t>(d);
    const std::string own = c.once(fmt::format("{} of {} before {} dimensions", extent.value, most, behind), [&] {
      return along(c, call(c, "Less", {positions(c, most), extent.value}), behind);
    });
    all = all.empty() ? own : call(c, "And", {all, own});
  }
  return all;
}

std::set<int64_t> all_dimensions(const Bounded& x) {
  std::set<int64_t> out;
  for (size_t d = 0; d < x.extents.size(); ++d) out.insert(static_cast<int64_t>(d));
  return out;
}

// The array with another element where one along these dimensions does not count.
std::string filled(ExtentComposer& c, const Bounded& x, const std::set<int64_t>& dimensions,
                   const std::string& filler) {
  const std::string counting = counting_elements(c, x, dimensions);
  return counting.empty() ? x.value : call(c, "Where", {counting, x.value, filler});
}

// The least or the greatest element that a type has.
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

// Whether data decide an extent of one of the call's operands.
bool reads_counted(const ExtentComposer& c) {
  const auto& inputs = c.call().inputs;
  return std::any_of(inputs.begin(), inputs.end(), [&](const std::string& name) { return !c.counts(name).empty(); });
}

// The call's attributes, less those that the composition has used up.
Attributes attributes_without(const ExtentComposer& c, std::initializer_list<const char*> names) {
  Attributes out = c.call().attributes;
  for (const char* name : names) out.erase(name);
  return out;
}

// ---- Positions ---------------------------------------------------------------------------------------------------
// The elements of the array at these places along an axis.
Bounded taken_along(ExtentComposer& c, const Bounded& x, size_t axis, const std::string& places,
                    const WholeNumber& extent) {
  Bounded out{call(c, "Gather", {x.value, places}, {{"axis", static_cast<int64_t>(axis)}}), x.extents};
  out.extents[axis] = extent;
  return out;
}

// The first so many elements that there is room for.
std::string cut_to(ExtentComposer& c, const std::string& value, size_t axis, int64_t from, int64_t count) {
  const int64_t room = room_of(c, value)[axis];
  if (from == 0 && count == room) return value;
  return call(c, "Slice", {value},
              {{"starts", std::vector<int64_t>{from}},
               {"ends", std::vector<int64_t>{from + count}},
               {"axes", std::vector<int64_t>{static_cast<int64_t>(axis)}}});
}

// A place that counts from the end where it is below 0.
WholeNumber from_start(ExtentComposer& c, const WholeNumber& place, const WholeNumber& n) {
  if (place.low >= 0) return place;
  if (place.high < 0) return sum(c, place, n);
  const WholeNumber moved = sum(c, place, n);
  WholeNumber out{std::min<int64_t>(moved.low, 0), std::max(place.high, moved.high)};
  const std::string one = scalar_value(c, place), other = scalar_value(c, moved);
  out.value = c.once(fmt::format("{} or from the end of {}", one, scalar_value(c, n)), [&] {
    return call(c, "Where", {call(c, "Less", {one, constant_number(c, Scalar::i64, 0)}), other, one});
  });
  c.say_numbers(out.value, {out});
  return out;
}

WholeNumber clamped(ExtentComposer& c, const WholeNumber& n, const WholeNumber& low, const WholeNumber& high) {
  return greatest(c, least(c, n, high), low);
}

// As ONNX cuts: what lies outside is brought inside.
Bounded sliced(ExtentComposer& c, const Bounded& x, size_t axis, WholeNumber start, WholeNumber end, int64_t step) {
  const WholeNumber n = x.extents[axis];
  const int64_t room = room_of(c, x.value)[axis];
  step = std::clamp<int64_t>(step, -room - 1, room + 1);
  const WholeNumber low = exactly(step > 0 ? 0 : -1);
  const WholeNumber high = step > 0 ? n : difference(c, n, exactly(1));
  start = clamped(c, from_start(c, start, n), low, high);
  end = clamped(c, from_start(c, end, n), low, high);
  const int64_t stride = std::abs(step);
  const WholeNumber distance =
      greatest(c, step > 0 ? difference(c, end, start) : difference(c, start, end), exactly(0));
  WholeNumber length = quotient(c, sum(c, distance, exactly(stride - 1)), exactly(stride));
  length.high = std::min(length.high, room);
  if (start == exactly(0) && step == 1 && length == n) return x;
  if (start.is_known() && step == 1) {
    const int64_t from = std::min(start.low, room);
    length.high = std::min(length.high, room - from);
    Bounded out{cut_to(c, x.value, axis, from, length.high), x.extents};
    out.extents[axis] = length;
    return out;
  }
  if (length.high == 0 || room == 0) {
    Bounded out{cut_to(c, x.value, axis, 0, 0), x.extents};
    out.extents[axis] = exactly(0);
    return out;
  }
  std::string places = positions(c, length.high);
  if (step != 1) places = call(c, "Mul", {places, constant_number(c, Scalar::i64, step)});
  if (start != exactly(0)) places = call(c, "Add", {places, scalar_value(c, start)});
  // What does not count may lie outside; a position below 0 would count from the end.
  places = call(c, "Max", {places, constant_number(c, Scalar::i64, 0)});
  return taken_along(c, x, axis, places, length);
}

// Places from data, of an array whose extent n counts: those below 0 count from where it ends.
std::string places_from_start(ExtentComposer& c, const std::string& places, const std::string& n) {
  const Scalar scalar = scalar_of(c, places);
  const std::string count = scalar == Scalar::i64 ? n : call(c, "Cast", {n}, {{"to", int64_t{6}}});
  const std::string below = call(c, "Less", {places, constant_number(c, scalar, 0)});
  return call(c, "Where", {below, call(c, "Add", {places, count}), places});
}

// ---- Shapes as numbers -------------------------------------------------------------------------------------------
Done shape_of_counted(ExtentComposer& c) {
  if (!reads_counted(c)) return false;
  const WholeNumbers extents = operand(c, 0).extents;
  const auto rank = static_cast<int64_t>(extents.size());
  const auto place = [&](const char* name, int64_t otherwise) {
    const int64_t at = integer_of(c.call(), name, otherwise);
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const int64_t start = place("start", 0), end = std::max(start, place("end", rank));
  c.give(0, list_value(c, WholeNumbers(extents.begin() + start, extents.begin() + end)));
  return true;
}

Done size_of_counted(ExtentComposer& c) {
  if (!reads_counted(c)) return false;
  c.give(0, scalar_value(c, product(c, operand(c, 0).extents)));
  return true;
}

// The numbers of an input that decides a shape; nothing where they are known, or no numbers at all.
Result<std::optional<WholeNumbers>> deciding_numbers(ExtentComposer& c, size_t i) {
  std::optional<WholeNumbers> none;
  if (!c.has(i)) return none;
  HOIST_TRY(std::optional<WholeNumbers> numbers, c.numbers(input_name(c, i)));
  return numbers;
}

Result<Nothing> check_room(const WholeNumbers& extents) {
  for (const WholeNumber& extent : extents) {
    if (extent.high < 0) return fault(fmt::format("an extent would be {}", extent.high));
  }
  return check_bounds(extents);
}

Done filled_shape(ExtentComposer& c) {
  HOIST_TRY(const auto numbers, deciding_numbers(c, 0));
  if (!numbers || all_known(*numbers)) return false;
  HOIST_TRY_VOID(check_room(*numbers));
  Attributes attributes = c.call().attributes;
  attributes["input"] = bounds_of(*numbers);
  c.give(0, call(c, "ConstantOfShape", {}, attributes), *numbers);
  return true;
}

Done counted_range(ExtentComposer& c) {
  WholeNumbers ends;
  for (size_t i = 0; i < 3; ++i) {
    HOIST_TRY(const auto numbers, deciding_numbers(c, i));
    if (!numbers || numbers->size() != 1) return false;
    ends.push_back((*numbers)[0]);
  }
  const WholeNumber &start = ends[0], &limit = ends[1], &delta = ends[2];
  if (all_known(ends) || !delta.is_known() || delta.low == 0) return false;
  const int64_t stride = std::abs(delta.low);
  const WholeNumber distance =
      greatest(c, delta.low > 0 ? difference(c, limit, start) : difference(c, start, limit), exactly(0));
  const WholeNumber length = quotient(c, sum(c, distance, exactly(stride - 1)), exactly(stride));
  HOIST_TRY_VOID(check_room({length}));
  std::string all = positions(c, length.high);
  if (delta.low != 1) all = call(c, "Mul", {all, scalar_value(c, delta)});
  if (start != exactly(0)) all = call(c, "Add", {all, scalar_value(c, start)});
  if (scalar_of(c, input_name(c, 0)) == Scalar::i32) all = call(c, "Cast", {all}, {{"to", int64_t{6}}});
  c.give(0, all, {length});
  return true;
}

// ---- Other shapes of the same elements -----------------------------------------------------------------------------
// Whether all that counts stands side by side from the first element on: before the one dimension that data decide
// there are none but of extent 1. Gives that dimension.
std::optional<size_t> leading_count(const WholeNumbers& extents) {
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

int64_t known_product(const WholeNumbers& extents) {
  int64_t out = 1;
  for (const WholeNumber& extent : extents) out *= extent.is_known() ? extent.low : 1;
  return out;
}

// Whether dimensions of the same counts stand between as many elements on both sides.
bool same_groups(const WholeNumbers& from, const WholeNumbers& to) {
  const auto groups = [](const WholeNumbers& extents) {
    std::vector<std::pair<std::string, int64_t>> out = {{"", 1}};
    for (const WholeNumber& extent : extents) {
      if (extent.is_known())
        out.back().second *= extent.low;
      else
        out.emplace_back(extent.value, 1);
    }
    return out;
  };
  return groups(from) == groups(to);
}

// Element by element: where the one at each place of the new shape lies in the old one.
Result<Bounded> moved_together(ExtentComposer& c, const Bounded& x, const WholeNumbers& to) {
  const Shape room = room_of(c, x.value), bounds = bounds_of(to);
  const auto combined = [&](const std::string& operation, const std::string& list, const WholeNumber& n) {
    if (n == exactly(1) && (operation == "Mul" || operation == "Div")) return list;
    return call(c, operation, {list, scalar_value(c, n)});
  };
  const auto added = [&](const std::string& total, const std::string& term) {
    return total.empty() ? term : call(c, "Add", {total, term});
  };
  // The number of each element among those that count.
  const std::string all = positions(c, product(bounds));
  std::string number;
  for (size_t d = 0; d < to.size(); ++d) {
    const int64_t stride = product(Shape(bounds.begin() + static_cast<std::ptrdiff_t>(d) + 1, bounds.end()));
    std::string place = combined("Div", all, exactly(std::max<int64_t>(stride, 1)));
    if (d > 0) place = combined("Mod", place, exactly(std::max<int64_t>(bounds[d], 1)));
    number = added(
        number,
        combined("Mul", place, product(c, WholeNumbers(to.begin() + static_cast<std::ptrdiff_t>(d) + 1, to.end()))));
  }
  if (number.empty()) number = all;
  std::string from;
  for (size_t d = 0; d < room.size(); ++d) {
    const auto behind = static_cast<std::ptrdiff_t>(d) + 1;
    const WholeNumber stride =
        greatest(c, product(c, WholeNumbers(x.extents.begin() + behind, x.extents.end())), exactly(1));
    std::string place = combined("Div", number, stride);
    if (d > 0) place = combined("Mod", place, greatest(c, x.extents[d], exactly(1)));
    from = added(from, combined("Mul", place, exactly(product(Shape(room.begin() + behind, room.end())))));
  }
  const std::string flat = call(c, "Reshape", {x.value}, {{"shape", Shape{product(room)}}});
  const std::string taken = from.empty() ? flat : call(c, "Gather", {flat, from}, {{"axis", int64_t{0}}});
  return Bounded{call(c, "Reshape", {taken}, {{"shape", bounds}, {"allowzero", int64_t{1}}}), to};
}

Result<Bounded> reshaped(ExtentComposer& c, const Bounded& x, WholeNumbers to) {
  HOIST_TRY_VOID(check_room(to));
  const Shape room = room_of(c, x.value);
  if (same_groups(x.extents, to)) {
    // Bounds go with their dimensions.
    size_t next = 0;
    for (WholeNumber& extent : to) {
      if (extent.is_known()) continue;
      while (x.extents[next].is_known()) ++next;
      extent.high = room[next++];
    }
    return Bounded{call(c, "Reshape", {x.value}, {{"shape", bounds_of(to)}, {"allowzero", int64_t{1}}}), to};
  }
  const auto leads = leading_count(x.extents), led = leading_count(to);
  const int64_t row = known_product(to);
  if (leads && led && row > 0 && product(room) > 0) {
    WholeNumber& rows = to[*led];
    rows.high = std::min(rows.high, product(room) / row);
    std::string flat = call(c, "Reshape", {x.value}, {{"shape", Shape{product(room)}}});
    flat = cut_to(c, flat, 0, 0, rows.high * row);
    return Bounded{call(c, "Reshape", {flat}, {{"shape", bounds_of(to)}, {"allowzero", int64_t{1}}}), to};
  }
  if (product(room) == 0) {
    return fault(fmt::format("{} has no elements, and data decide another shape", hoist::text(c.type(x.value))));
  }
  return moved_together(c, x, to);
}

// The extents that numbers name: 0 keeps one, and -1 takes what is left.
Result<WholeNumbers> wanted_extents(ExtentComposer& c, const WholeNumbers& from, WholeNumbers to, bool keep_zeros) {
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
  // What stands on both sides cancels.
  WholeNumbers all = from, others;
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
  std::erase_if(all, [&](const WholeNumber& n) {
    if (n.is_known()) known *= n.low;
    return n.is_known();
  });
  if (divisor == 0) return fault("no extent fills rows of no elements");
  if (known % divisor == 0) known /= divisor, divisor = 1;
  const WholeNumber total = product(c, product(c, all), exactly(known));
  const WholeNumber rows = greatest(c, product(c, product(c, others), exactly(divisor)), exactly(1));
  to[*open] = quotient(c, total, rows);
  return to;
}

Done reshaped_call(ExtentComposer& c) {
  std::optional<WholeNumbers> wanted;
  if (const auto list = known_list(c, c.call(), "shape", 1)) {
    wanted.emplace();
    for (const int64_t extent : *list) wanted->push_back(exactly(extent));
  } else {
    HOIST_TRY(wanted, deciding_numbers(c, 1));
  }
  if (!wanted || (!reads_counted(c) && all_known(*wanted))) return false;
  const Bounded x = operand(c, 0);
  HOIST_TRY(const WholeNumbers to, wanted_extents(c, x.extents, *wanted, integer_of(c.call(), "allowzero", 0) != 0));
  HOIST_TRY(const Bounded out, reshaped(c, x, to));
  c.give(0, out.value, out.extents);
  return true;
}

Done flattened_call(ExtentComposer& c) {
  if (!reads_counted(c)) return false;
  const Bounded x = operand(c, 0);
  const auto rank = static_cast<int64_t>(x.extents.size());
  int64_t axis = integer_of(c.call(), "axis", 1);
  if (axis < -rank || axis > rank) return false;
  if (axis < 0) axis += rank;
  const auto middle = x.extents.begin() + axis;
  HOIST_TRY(const Bounded out, reshaped(c, x,
                                        {product(c, WholeNumbers(x.extents.begin(), middle)),
                                         product(c, WholeNumbers(middle, x.extents.end()))}));
  c.give(0, out.value, out.extents);
  return true;
}

// The array as long along a dimension as `to` says, of which it has that many or one, which is repeated.
Bounded repeated_along(ExtentComposer& c, const Bounded& x, size_t axis, const WholeNumber& to) {
  const std::string last = scalar_value(c, greatest(c, difference(c, x.extents[axis], exactly(1)), exactly(0)));
  return taken_along(c, x, axis, call(c, "Min", {positions(c, to.high), last}), to);
}

Done expanded_call(ExtentComposer& c) {
  std::optional<WholeNumbers> wanted;
  if (const auto list = known_list(c, c.call(), "shape", 1)) {
    wanted.emplace();
    for (const int64_t extent : *list) wanted->push_back(exactly(extent));
  } else {
    HOIST_TRY(wanted, deciding_numbers(c, 1));
  }
  if (!wanted || (!reads_counted(c) && all_known(*wanted))) return false;
  Bounded x = operand(c, 0);
  WholeNumbers to = *wanted;
  while (to.size() < x.extents.size()) to.insert(to.begin(), exactly(1));
  const size_t more = to.size() - x.extents.size();
  for (size_t d = 0; d < x.extents.size(); ++d) {
    WholeNumber& extent = to[more + d];
    const WholeNumber own = x.extents[d];
    const bool stays = extent == exactly(1) || extent == own || (own.is_known() && own.low != 1);
    if (stays)
      extent = own;
    else if (own != exactly(1))
      x = repeated_along(c, x, d, extent);
  }
  HOIST_TRY_VOID(check_room(to));
  Shape bounds = bounds_of(to);
  const Shape room = room_of(c, x.value);
  for (size_t d = 0; d < room.size(); ++d) {
    if (!to[more + d].is_known() && room[d] != 1) bounds[more + d] = room[d];
  }
  c.give(0, call(c, "Expand", {x.value}, {{"shape", bounds}}), to);
  return true;
}

Done tiled_call(ExtentComposer& c) {
  std::optional<WholeNumbers> repeats;
  if (const auto list = known_list(c, c.call(), "repeats", 1)) {
    repeats.emplace();
    for (const int64_t number : *list) repeats->push_back(exactly(number));
  } else {
    HOIST_TRY(repeats, deciding_numbers(c, 1));
  }
  if (!repeats || (!reads_counted(c) && all_known(*repeats))) return false;
  Bounded x = operand(c, 0);
  if (repeats->size() != x.extents.size()) return false;
  for (size_t d = 0; d < x.extents.size(); ++d) {
    const WholeNumber n = x.extents[d], times = (*repeats)[d], all = product(c, n, times);
    if (times == exactly(1)) continue;
    HOIST_TRY_VOID(check_room({all}));
    const std::string place = positions(c, all.high);
    const std::string length = scalar_value(c, greatest(c, n, exactly(1)));
    x = taken_along(c, x, d, call(c, "Mod", {place, length}), all);
  }
  HOIST_TRY_VOID(check_room(x.extents));
  c.give(0, x.value, x.extents);
  return true;
}

// ---- Parts -------------------------------------------------------------------------------------------------------
Done sliced_call(ExtentComposer& c) {
  std::array<std::optional<WholeNumbers>, 2> ends;
  const char* names[] = {"starts", "ends"};
  for (size_t k = 0; k < 2; ++k) {
    if (const auto list = known_list(c, c.call(), names[k], k + 1)) {
      ends[k].emplace();
      for (const int64_t place : *list)
        ends[k]->push_back(exactly(std::clamp<int64_t>(place, -(int64_t{1} << 61), int64_t{1} << 61)));
    } else {
      HOIST_TRY(ends[k], deciding_numbers(c, k + 1));
    }
    if (!ends[k]) return false;
  }
  const auto& [starts, stops] = ends;
  if (!reads_counted(c) && all_known(*starts) && all_known(*stops)) return false;
  const size_t count = starts->size();
  const auto steps = known_list(c, c.call(), "steps", 4), axes = known_list(c, c.call(), "axes", 3);
  if ((c.has(4) && !steps) || (c.has(3) && !axes)) return false;
  Bounded x = operand(c, 0);
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
  const Bounded x = operand(c, 0);
  HOIST_TRY(const int64_t axis, axis_of(c, "axis", 0, x.extents.size()));
  const WholeNumber n = x.extents[static_cast<size_t>(axis)];
  std::optional<WholeNumbers> lengths;
  if (const auto list = known_list(c, c.call(), "split", 1)) {
    lengths.emplace();
    for (const int64_t length : *list) lengths->push_back(exactly(length));
  } else {
    HOIST_TRY(lengths, deciding_numbers(c, 1));
  }
  if (!reads_counted(c) && (!lengths || all_known(*lengths))) return false;
  if (!lengths) {
    if (c.has(1)) return false;
    const auto results = static_cast<int64_t>(c.call().outputs.size());
    const int64_t parts = integer_of(c.call(), "num_outputs", results);
    if (parts < 1 || parts < results) return fault(fmt::format("{} parts for {} results", parts, results));
    const WholeNumber each = quotient(c, sum(c, n, exactly(parts - 1)), exactly(parts));
    lengths = WholeNumbers(static_cast<size_t>(parts), each);
  }
  if (lengths->size() < c.call().outputs.size()) return fault("there are more results than parts");
  WholeNumber from = exactly(0);
  for (size_t i = 0; i < c.call().outputs.size(); ++i) {
    const WholeNumber to = sum(c, from, (*lengths)[i]);
    const Bounded part = sliced(c, x, static_cast<size_t>(axis), from, to, 1);
    c.give(i, part.value, part.extents);
    from = to;
  }
  return true;
}

Done joined_call(ExtentComposer& c) {
  if (!reads_counted(c)) return false;
  std::vector<Bounded> parts;
  for (size_t i = 0; i < c.call().inputs.size(); ++i) parts.push_back(operand(c, i));
  HOIST_TRY(const int64_t named, axis_of(c, "axis", 1, parts[0].extents.size()));
  const auto axis = static_cast<size_t>(named);
  for (const Bounded& part : parts) {
    if (part.extents.size() != parts[0].extents.size()) return false;
  }
  // The parts as they are, side by side; what does not count of each is skipped. Other dimensions have room for as many
  // as all parts have.
  WholeNumbers extents = parts[0].extents;
  Shape room = room_of(c, parts[0].value);
  for (const Bounded& part : parts) {
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
  for (Bounded& part : parts) {
    for (size_t d = 0; d < room.size(); ++d) {
      if (d == axis) continue;
      if (room_of(c, part.value)[d] < room[d])
        return fault(fmt::format("{} is too short along dimension {}", part.value, d));
      part.value = cut_to(c, part.value, d, 0, room[d]);
    }
    values.push_back(part.value);
  }
  Bounded out{call(c, "Concat", values, {{"axis", named}}), extents};
  WholeNumber end = exactly(0);
  std::string skipped;
  const int64_t all = room_of(c, out.value)[axis];
  for (size_t i = 0; i < parts.size(); ++i) {
    end = sum(c, end, parts[i].extents[axis]);
    const WholeNumber gap = difference(c, exactly(room_of(c, parts[i].value)[axis]), parts[i].extents[axis]);
    if (i + 1 == parts.size() || gap == exactly(0)) continue;
    const std::string behind = call(c, "GreaterOrEqual", {positions(c, all), scalar_value(c, end)});
    const std::string own = call(c, "Where", {behind, scalar_value(c, gap), constant_number(c, Scalar::i64, 0)});
    skipped = skipped.empty() ? own : call(c, "Add", {skipped, own});
  }
  out.extents[axis] = end;
  HOIST_TRY_VOID(check_room(out.extents));
  if (!skipped.empty()) out = taken_along(c, out, axis, call(c, "Add", {positions(c, all), skipped}), end);
  c.give(0, out.value, out.extents);
  return true;
}

Done padded_call(ExtentComposer& c) {
  if (!reads_counted(c)) return false;
  const Bounded x = operand(c, 0);
  const auto amounts = known_list(c, c.call(), "pads", 1);
  const auto axes = known_list(c, c.call(), "axes", 3);
  if (!amounts || (c.has(3) && !axes)) return false;
  const size_t named = axes ? axes->size() : x.extents.size();
  if (amounts->size() != 2 * named) return false;
  const auto mode = c.call().attributes.find("mode");
  const auto* text = mode == c.call().attributes.end() ? nullptr : std::get_if<std::string>(&mode->second);
  const bool constant = text == nullptr || *text == "constant";
  Bounded out = x;
  std::set<int64_t> behind;
  for (size_t i = 0; i < named; ++i) {
    HOIST_TRY(const int64_t axis,
              normalise_axis(axes ? (*axes)[i] : static_cast<int64_t>(i), static_cast<int64_t>(x.extents.size())));
    const int64_t before = (*amounts)[i], after = (*amounts)[i + named];
    WholeNumber& extent = out.extents[static_cast<size_t>(axis)];
    if (before == 0 && after == 0) continue;
    if (extent.is_known()) {
      extent = exactly(std::max<int64_t>(extent.low + before + after, 0));
      continue;
    }
    if (!constant || before < 0 || after < 0) return false;
    extent = sum(c, extent, exactly(before));
    if (after > 0) behind.insert(axis);
  }
  std::vector<std::string> inputs = {x.value};
  const bool has_filler = c.has(2);
  if (has_filler) inputs = {x.value, "", input_name(c, 2)};
  Attributes attributes = attributes_without(c, {"pads", "axes"});
  attributes["pads"] = *amounts;
  if (axes) attributes["axes"] = *axes;
  out.value = call(c, "Pad", inputs, attributes);
  if (!behind.empty()) {
    const std::string filler = has_filler ? call(c, "Reshape", {input_name(c, 2)}, {{"shape", Shape{1}}})
                                          : constant_number(c, scalar_of(c, x.value), 0);
    out.value = filled(c, out, behind, filler);
  }
  for (size_t i = 0; i < named; ++i) {
    HOIST_TRY(const int64_t axis,
              normalise_axis(axes ? (*axes)[i] : static_cast<int64_t>(i), static_cast<int64_t>(x.extents.size())));
    WholeNumber& extent = out.extents[static_cast<size_t>(axis)];
    if (!extent.is_known()) extent = sum(c, extent, exactly((*amounts)[i + named]));
  }
  HOIST_TRY_VOID(check_room(out.extents));
  c.give(0, out.value, out.extents);
  return true;
}

// ---- Elements at places ------------------------------------------------------------------------------------------
Done gathered_call(ExtentComposer& c) {
  if (!reads_counted(c)) return false;
  const Bounded x = operand(c, 0), places = operand(c, 1);
  HOIST_TRY(const int64_t axis, axis_of(c, "axis", 0, x.extents.size()));
  const WholeNumber n = x.extents[static_cast<size_t>(axis)];
  HOIST_TRY(const Tensor* known, c.known(places.value));
  std::string from = places.value;
  bool below = known == nullptr && !n.is_known();
  for (int64_t i = 0; !n.is_known() && known != nullptr && i < known->size(); ++i)
    below = below || known->integer_at(i) < 0;
  if (below) from = places_from_start(c, from, n.value);
  WholeNumbers extents(x.extents.begin(), x.extents.begin() + axis);
  extents.insert(extents.end(), places.extents.begin(), places.extents.end());
  extents.insert(extents.end(), x.extents.begin() + axis + 1, x.extents.end());
  c.give(0, call(c, "Gather", {x.value, from}, {{"axis", axis}}), extents);
  return true;
}

Done gathered_elements_call(ExtentComposer& c) {
  if (!reads_counted(c)) return false;
  Bounded x = operand(c, 0), places = operand(c, 1);
  HOIST_TRY(const int64_t axis, axis_of(c, "axis", 0, x.extents.size()));
  if (places.extents.size() != x.extents.size()) return false;
  const WholeNumber n = x.extents[static_cast<size_t>(axis)];
  std::string from = n.is_known() ? places.value : places_from_start(c, places.value, n.value);
  // Places reach no further than the data along other dimensions.
  const Shape room = room_of(c, x.value);
  for (size_t d = 0; d < room.size(); ++d) {
    if (static_cast<int64_t>(d) == axis || room_of(c, from)[d] <= room[d]) continue;
    from = cut_to(c, from, d, 0, room[d]);
    places.extents[d].high = std::min(places.extents[d].high, room[d]);
  }
  c.give(0, call(c, "GatherElements", {x.value, from}, {{"axis", axis}}), places.extents);
  return true;
}

// Rows of positions, those below 0 from the ends of the array's dimensions from `batch` on.
std::string rows_from_start(ExtentComposer& c, const std::string& rows, const Bounded& x, size_t batch) {
  const auto count = static_cast<size_t>(room_of(c, rows).back());
  const WholeNumbers ends(x.extents.begin() + static_cast<std::ptrdiff_t>(batch),
                          x.extents.begin() + static_cast<std::ptrdiff_t>(batch + count));
  return all_known(ends) ? rows : places_from_start(c, rows, list_value(c, ends));
}

Done gathered_rows_call(ExtentComposer& c) {
  const Bounded x = operand(c, 0), rows = operand(c, 1);
  if (!reads_counted(c)) return false;
  const int64_t batch = integer_of(c.call(), "batch_dims", 0);
  if (rows.extents.empty() || !rows.extents.back().is_known() || batch < 0) return false;
  const int64_t count = rows.extents.back().low;
  if (count < 1 || batch + count > std::ssize(x.extents) || batch >= std::ssize(rows.extents)) return false;
  for (int64_t d = 0; d < batch; ++d) {
    if (room_of(c, x.value)[static_cast<size_t>(d)] != room_of(c, rows.value)[static_cast<size_t>(d)]) return false;
  }
  WholeNumbers extents(rows.extents.begin(), rows.extents.end() - 1);
  extents.insert(extents.end(), x.extents.begin() + batch + count, x.extents.end());
  const std::string from = rows_from_start(c, rows.value, x, static_cast<size_t>(batch));
  c.give(0, call(c, "GatherND", {x.value, from}, c.call().attributes), extents);
  return true;
}

// What does not count of the places goes nowhere.
Done scattered_elements_call(ExtentComposer& c) {
  if (!reads_counted(c)) return false;
  const Bounded x = operand(c, 0);
  Bounded places = operand(c, 1);
  const Bounded updates = operand(c, 2);
  HOIST_TRY(const int64_t axis, axis_of(c, "axis", 0, x.extents.size()));
  if (places.extents.size() != x.extents.size() || updates.extents.size() != x.extents.size()) return false;
  const WholeNumber n = x.extents[static_cast<size_t>(axis)];
  if (!n.is_known()) places.value = places_from_start(c, places.value, n.value);
  const int64_t outside = room_of(c, x.value)[static_cast<size_t>(axis)];
  std::string from = filled(c, places, all_dimensions(places), constant_number(c, scalar_of(c, places.value), outside));
  std::string values = updates.value;
  const Shape room = room_of(c, x.value);
  for (size_t d = 0; d < room.size(); ++d) {
    const int64_t most = static_cast<int64_t>(d) == axis ? std::numeric_limits<int64_t>::max() : room[d];
    const int64_t fits = std::min({room_of(c, from)[d], room_of(c, values)[d], most});
    from = cut_to(c, from, d, 0, fits);
    values = cut_to(c, values, d, 0, fits);
  }
  c.give(0, call(c, "ScatterElements", {x.value, from, values}, c.call().attributes), x.extents);
  return true;
}

Done scattered_rows_call(ExtentComposer& c) {
  if (!reads_counted(c)) return false;
  const Bounded x = operand(c, 0), updates = operand(c, 2);
  Bounded rows = operand(c, 1);
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
      from = cut_to(c, from, d, 0, fits);
      values = cut_to(c, values, d, 0, fits);
    } else if (of_array >= room.size() || room_of(c, values)[d] != room[of_array]) {
      return false;
    }
  }
  c.give(0, call(c, "ScatterND", {x.value, from, values}, c.call().attributes), x.extents);
  return true;
}

// ---- Reductions --------------------------------------------------------------------------------------------------
// What leaves a reduction as it is.
std::string neutral_of(ExtentComposer& c, const std::string& operation, Scalar scalar) {
  if (operation == "ReduceMax" || operation == "ReduceLogSumExp") return extreme_number(c, scalar, true);
  if (operation == "ReduceMin") return extreme_number(c, scalar, false);
  return constant_number(c, scalar, operation == "ReduceProd" ? 1 : 0);
}

Done reduced_call(ExtentComposer& c) {
  if (!reads_counted(c)) return false;
  Bounded x = operand(c, 0);
  const auto rank = static_cast<int64_t>(x.extents.size());
  const auto named = known_list(c, c.call(), "axes", 1);
  if (c.has(1) && !named) return false;
  std::set<int64_t> axes;
  if (named && !named->empty()) {
    HOIST_TRY(const Shape normal, normalise_axes(*named, rank));
    axes.insert(normal.begin(), normal.end());
  } else if (integer_of(c.call(), "noop_with_empty_axes", 0) == 0) {
    axes = all_dimensions(x);
  }
  const bool keeps = integer_of(c.call(), "keepdims", 1) != 0;
  WholeNumbers extents, reduced;
  for (int64_t d = 0; d < rank; ++d) {
    const WholeNumber& own = x.extents[static_cast<size_t>(d)];
    if (axes.count(d) == 0)
      extents.push_back(own);
    else if (reduced.push_back(own); keeps)
      extents.push_back(exactly(1));
  }
  std::string operation = c.call().operation;
  const Scalar scalar = scalar_of(c, x.value);
  const bool means = operation == "ReduceMean" && !all_known(reduced);
  const bool narrow = means && wide_float(scalar) != scalar;
  if (narrow) x.value = call(c, "Cast", {x.value}, {{"to", int64_t{1}}});
  const Scalar formed = narrow ? Scalar::f32 : scalar;
  if (means) operation = "ReduceSum";
  Attributes attributes = attributes_without(c, {"axes"});
  attributes["axes"] = Shape(axes.begin(), axes.end());
  std::string out = call(c, operation, {filled(c, x, axes, neutral_of(c, operation, formed))}, attributes);
  if (means) {
    const std::string count = scalar_value(c, product(c, reduced));
    out = call(c, "Div", {out, call(c, "CastLike", {count, out})});
    if (narrow) out = call(c, "CastLike", {out, input_name(c, 0)});
  }
  c.give(0, out, extents);
  return true;
}

Done place_call(ExtentComposer& c) {
  if (!reads_counted(c)) return false;
  const Bounded x = operand(c, 0);
  HOIST_TRY(const int64_t axis, axis_of(c, "axis", 0, x.extents.size()));
  if (!x.extents[static_cast<size_t>(axis)].is_known() && integer_of(c.call(), "select_last_index", 0) != 0)
    return fault("the last of equal elements is asked for, of as many as data decide");
  const bool largest = c.call().operation == "ArgMax";
  const std::string all = filled(c, x, {axis}, extreme_number(c, scalar_of(c, x.value), largest));
  WholeNumbers extents = x.extents;
  if (integer_of(c.call(), "keepdims", 1) != 0)
    extents[static_cast<size_t>(axis)] = exactly(1);
  else
    extents.erase(extents.begin() + axis);
  c.give(0, call(c, c.call().operation, {all}, c.call().attributes), extents);
  return true;
}

Done softmax_call(ExtentComposer& c) {
  const Bounded x = operand(c, 0);
  if (!reads_counted(c) || c.version() < 13) return false;
  HOIST_TRY(const int64_t axis, axis_of(c, "axis", -1, x.extents.size()));
  const std::string all = filled(c, x, {axis}, extreme_number(c, scalar_of(c, x.value), true));
  c.give(0, call(c, c.call().operation, {all}, c.call().attributes), x.extents);
  return true;
}

Done running_call(ExtentComposer& c) {
  if (!reads_counted(c)) return false;
  const Bounded x = operand(c, 0);
  const bool backwards = integer_of(c.call(), "reverse", 0) != 0;
  const int64_t neutral = c.call().operation == "CumProd" ? 1 : 0;
  const std::string all =
      backwards ? filled(c, x, all_dimensions(x), constant_number(c, scalar_of(c, x.value), neutral)) : x.value;
  std::vector<std::string> inputs = c.call().inputs;
  inputs[0] = all;
  c.give(0, call(c, c.call().operation, inputs, c.call().attributes), x.extents);
  return true;
}

Done multiplied_call(ExtentComposer& c) {
  const Bounded a = operand(c, 0), b = operand(c, 1);
  const size_t p = a.extents.size(), q = b.extents.size();
  if (!reads_counted(c) || p < 2 || q < 2) return false;
  // As many of the sum as both have.
  const int64_t room = std::min(room_of(c, a.value)[p - 1], room_of(c, b.value)[q - 2]);
  const std::string zero = constant_number(c, scalar_of(c, a.value), 0);
  const auto last = static_cast<int64_t>(p) - 1, before_last = static_cast<int64_t>(q) - 2;
  const std::string left = cut_to(c, filled(c, a, {last}, zero), p - 1, 0, room);
  const std::string right = cut_to(c, filled(c, b, {before_last}, zero), q - 2, 0, room);
  WholeNumbers extents(std::max(p, q), exactly(1));
  for (size_t d = 0; d + 2 < extents.size(); ++d) {
    for (const Bounded* side : {&a, &b}) {
      const size_t missing = extents.size() - side->extents.size();
      if (d >= missing && side->extents[d - missing] != exactly(1)) extents[d] = side->extents[d - missing];
    }
  }
  extents[extents.size() - 2] = a.extents[p - 2];
  extents.back() = b.extents[q - 1];
  c.give(0, call(c, "MatMul", {left, right}), extents);
  return true;
}

// ---- Choosing ----------------------------------------------------------------------------------------------------
Done positions_call(ExtentComposer& c) {
  if (!reads_counted(c)) return false;
  const Bounded x = operand(c, 0);
  const std::string all = filled(c, x, all_dimensions(x), constant_number(c, scalar_of(c, x.value), 0));
  const std::string found = call(c, "NonZero", {all});
  c.give(0, found, extents_of(c, found));
  return true;
}

Done compressed_call(ExtentComposer& c) {
  if (!reads_counted(c)) return false;
  Bounded x = operand(c, 0);
  Bounded keeps = operand(c, 1);
  const bool flat = c.call().attributes.count("axis") == 0;
  if (flat && x.extents.size() != 1) {
    HOIST_TRY(x, reshaped(c, x, {product(c, x.extents)}));
  }
  HOIST_TRY(const int64_t axis, flat ? Result<int64_t>(0) : axis_of(c, "axis", 0, x.extents.size()));
  const auto along_axis = static_cast<size_t>(axis);
  if (keeps.extents.size() != 1) return false;
  const std::string no = constant_number(c, Scalar::boolean, 0);
  const int64_t room = std::min(room_of(c, keeps.value)[0], room_of(c, x.value)[along_axis]);
  const std::string wanted = filled(c, keeps, {0}, no);
  Bounded both{cut_to(c, wanted, 0, 0, room), {x.extents[along_axis]}};
  const std::string found = call(c, "Compress", {x.value, filled(c, both, {0}, no)}, {{"axis", axis}});
  WholeNumbers extents = x.extents;
  extents[along_axis] = extents_of(c, found)[along_axis];
  c.give(0, found, extents);
  return true;
}

Done largest_call(ExtentComposer& c) {
  const Bounded x = operand(c, 0);
  HOIST_TRY(const int64_t named, axis_of(c, "axis", -1, x.extents.size()));
  const auto axis = static_cast<size_t>(named);
  const int64_t room = room_of(c, x.value)[axis];
  std::optional<WholeNumbers> wanted;
  if (const auto list = known_list(c, c.call(), "k", 1)) {
    if (list->size() != 1) return false;
    wanted = {exactly((*list)[0])};
  } else {
    HOIST_TRY(wanted, deciding_numbers(c, 1));
  }
  if (x.extents[axis].is_known() && (!wanted || all_known(*wanted))) {
    if (!reads_counted(c)) return false;
    if (!wanted) return false;
  }
  if (!wanted && c.has(1)) {
    const std::string number =
        call(c, "Cast", {call(c, "Reshape", {input_name(c, 1)}, {{"shape", Shape{}}})}, {{"to", int64_t{7}}});
    wanted = {WholeNumber{0, room, number}};
  }
  if (!wanted || wanted->size() != 1) return false;
  WholeNumber k = (*wanted)[0];
  if (k.is_known() && (k.low < 0 || k.low > room))
    return fault(fmt::format("k is {}, axis {} has at most {} elements", k.low, axis, room));
  k.high = std::min(k.high, room);
  const bool largest = integer_of(c.call(), "largest", 1) != 0;
  const std::string all = filled(c, x, {named}, extreme_number(c, scalar_of(c, x.value), largest));
  Attributes attributes = attributes_without(c, {"k"});
  attributes["k"] = Shape{k.high};
  const std::vector<std::string> found = c.add_bounded("TopK", attributes, {all}, 2);
  WholeNumbers extents = x.extents;
  extents[axis] = k;
  c.give(0, found[0], extents);
  c.give(1, found[1], extents);
  return true;
}

// A picture for each region: those of regions that do not count are those of no area at all.
Done regions_call(ExtentComposer& c) {
  if (!c.counts(input_name(c, 0)).empty() || !reads_counted(c)) return false;
  for (size_t i = 1; i < c.call().inputs.size(); ++i) {
    if (!c.has(i) || room_of(c, input_name(c, i)).empty()) return false;
  }
  const Bounded regions = operand(c, 1);
  std::vector<std::string> inputs = c.call().inputs;
  WholeNumber n = regions.extents[0];
  int64_t room = std::numeric_limits<int64_t>::max();
  for (size_t i = 1; i < inputs.size(); ++i) {
    room = std::min(room, room_of(c, inputs[i])[0]);
    if (n.is_known()) n = operand(c, i).extents[0];
  }
  for (size_t i = 1; i < inputs.size(); ++i) {
    Bounded own = operand(c, i);
    own.extents[0] = n;
    inputs[i] = cut_to(c, filled(c, own, {0}, constant_number(c, scalar_of(c, own.value), 0)), 0, 0, room);
  }
  const std::string pictures = call(c, c.call().operation, inputs, c.call().attributes);
  WholeNumbers extents = extents_of(c, pictures);
  extents[0] = n;
  c.give(0, pictures, extents);
  return true;
}

// Boxes that do not count stand behind all others: they have no number for a score. They have no area either, so that
// they neither meet a box nor take its place, and are left out of what is chosen.
Done suppressed_call(ExtentComposer& c) {
  if (!reads_counted(c)) return false;
  const Bounded boxes = operand(c, 0), scores = operand(c, 1);
  if (boxes.extents.size() != 3 || scores.extents.size() != 3) return false;
  if (!boxes.extents[0].is_known() || !scores.extents[0].is_known() || !scores.extents[1].is_known())
    return fault("data decide how many images or classes there are");
  WholeNumber n = boxes.extents[1].is_known() ? scores.extents[2] : boxes.extents[1];
  const int64_t room = std::min(room_of(c, boxes.value)[1], room_of(c, scores.value)[2]);
  const std::string zero = constant_number(c, scalar_of(c, boxes.value), 0);
  const std::string none = c.once("no number", [&] {
    return c.constant(Tensor::of(Scalar::f32, {}, std::vector<double>{std::numeric_limits<double>::quiet_NaN()}));
  });
  std::vector<std::string> inputs = c.call().inputs;
  inputs[0] = filled(c, {cut_to(c, boxes.value, 1, 0, room), {boxes.extents[0], n, boxes.extents[2]}}, {1}, zero);
  inputs[1] = filled(c, {cut_to(c, scores.value, 2, 0, room), {scores.extents[0], scores.extents[1], n}}, {2}, none);
  const std::string found = call(c, "NonMaxSuppression", inputs, c.call().attributes);
  if (c.counts(found).empty()) {
    c.give(0, found);
    return true;
  }
  const std::string column = c.add("Gather", {{"axis", int64_t{1}}}, {found, constant_number(c, Scalar::i64, 2)})[0];
  const std::string count = c.add("Less", {}, {column, n.value})[0];
  const std::string kept = c.add("Compress", {{"axis", int64_t{0}}}, {found, count})[0];
  c.give(0, kept, extents_of(c, kept));
  return true;
}

struct ExtentMeaningRow {
  std::string_view operation;
  ExtentMeaning meaning;
};

constexpr auto meanings = std::to_array<ExtentMeaningRow>({
    {"ArgMax", place_call},
    {"ArgMin", place_call},
    {"Compress", compressed_call},
    {"Concat", joined_call},
    {"ConstantOfShape", filled_shape},
    {"CumProd", running_call},
    {"CumSum", running_call},
    {"Expand", expanded_call},
    {"Flatten", flattened_call},
    {"Gather", gathered_call},
    {"GatherElements", gathered_elements_call},
    {"GatherND", gathered_rows_call},
    {"Hardmax", softmax_call},
    {"LogSoftmax", softmax_call},
    {"MatMul", multiplied_call},
    {"NonMaxSuppression", suppressed_call},
    {"NonZero", positions_call},
    {"RoiAlign", regions_call},
    {"MaxRoiPool", regions_call},
    {"Pad", padded_call},
    {"Range", counted_range},
    {"ReduceL1", reduced_call},
    {"ReduceL2", reduced_call},
    {"ReduceLogSum", reduced_call},
    {"ReduceLogSumExp", reduced_call},
    {"ReduceMax", reduced_call},
    {"ReduceMean", reduced_call},
    {"ReduceMin", reduced_call},
    {"ReduceProd", reduced_call},
    {"ReduceSum", reduced_call},
    {"ReduceSumSquare", reduced_call},
    {"Reshape", reshaped_call},
    {"ScatterElements", scattered_elements_call},
    {"ScatterND", scattered_rows_call},
    {"Shape", shape_of_counted},
    {"Size", size_of_counted},
    {"Slice", sliced_call},
    {"Softmax", softmax_call},
    {"Split", split_call},
    {"Tile", tiled_call},
    {"TopK", largest_call},
});

}  // namespace
}  // namespace operators

ExtentMeaning extent_meaning(std::string_view domain, std::string_view operation) {
  if (!domain.empty() && domain != "ai.onnx") return nullptr;
  const auto found = std::find_if(operators::meanings.begin(), operators::meanings.end(),
                                  [&](const auto& row) { return row.operation == operation; });
  return found == operators::meanings.end() ? nullptr : found->meaning;
}

Result<Nothing> choose_value(ExtentComposer& c, size_t number, const std::string& condition, const std::string& yes,
                             const std::string& no) {
  using namespace operators;
  Bounded a{yes, extents_of(c, yes)}, b{no, extents_of(c, no)};
  if (scalar_of(c, yes) != scalar_of(c, no) || a.extents.size() != b.extents.size())
    return fault(fmt::format("one branch gives {}, the other {}", hoist::text(c.type(yes)), hoist::text(c.type(no))),
                 "what decides between them has to be known at compile time (--value)");
  WholeNumbers extents;
  for (size_t d = 0; d < a.extents.size(); ++d) {
    const WholeNumber &p = a.extents[d], &q = b.extents[d];
    if (p == q) {
      extents.push_back(p);
      continue;
    }
    WholeNumber chosen{std::min(p.low, q.low), std::max(p.high, q.high)};
    const std::string one = scalar_value(c, p), other = scalar_value(c, q);
    chosen.value = c.once(fmt::format("{} or {} as {} says", one, other, condition), [&] {
      return call(c, "Where", {condition, one, other});
    });
    c.say_numbers(chosen.value, {chosen});
    extents.push_back(chosen);
  }
  HOIST_TRY_VOID(check_bounds(extents));
  // Room for either.
  const Shape room_a = room_of(c, yes), room_b = room_of(c, no);
  const auto no_room = [](const Shape& room) { return product(room) == 0; };
  if (no_room(room_a) || no_room(room_b)) {
    const Bounded& there = no_room(room_a) ? b : a;
    const Shape room = room_of(c, there.value);
    for (size_t d = 0; d < room.size(); ++d) extents[d].high = std::min(extents[d].high, room[d]);
    c.give(number, there.value, extents);
    return Nothing{};
  }
  const auto widened = [&](const std::string& value, const Shape& room) {
    Shape amounts(2 * room.size(), 0);
    for (size_t d = 0; d < room.size(); ++d) amounts[room.size() + d] = std::max(room_a[d], room_b[d]) - room[d];
    return product(Shape(amounts)) == 0 && std::all_of(amounts.begin(), amounts.end(), [](int64_t n) { return n == 0; })
               ? value
               : call(c, "Pad", {value}, {{"pads", amounts}});
  };
  c.give(number, call(c, "Where", {condition, widened(yes, room_a), widened(no, room_b)}), extents);
  return Nothing{};
}

}  // namespace hoist
