#include "ir/operators/dynamic/dynamic_extents.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/operators/dynamic/dynamic_arrays.h"

namespace hoist {

ExtentMeaning extent_meaning(std::string_view domain, std::string_view operation) {
  if (!domain.empty() && domain != "ai.onnx") return nullptr;
  for (const auto family : {operators::dynamic_shapes(), operators::dynamic_parts(), operators::dynamic_sums(),
                            operators::dynamic_choices(), operators::dynamic_sizes()}) {
    const auto found =
        std::find_if(family.begin(), family.end(), [&](const auto& row) { return row.operation == operation; });
    if (found != family.end()) return found->meaning;
  }
  return nullptr;
}

std::string slice_capacity(ExtentComposer& c, const std::string& value, size_t axis, int64_t from, int64_t count) {
  if (from == 0 && count == operators::room_of(c, value)[axis]) return value;
  return operators::call(c, "Slice", {value},
                         {{"starts", std::vector<int64_t>{from}},
                          {"ends", std::vector<int64_t>{from + count}},
                          {"axes", std::vector<int64_t>{static_cast<int64_t>(axis)}}});
}

Result<Nothing> choose_value(ExtentComposer& c, size_t number, const std::string& condition, const std::string& yes,
                             const std::string& no) {
  using namespace operators;
  DynamicArray a{yes, extents_of(c, yes)}, b{no, extents_of(c, no)};
  if (scalar_of(c, yes) != scalar_of(c, no) || a.extents.size() != b.extents.size())
    return fault(
        fmt::format("one branch has the result {}, the other {}", hoist::text(c.type(yes)), hoist::text(c.type(no))),
        "the values that decide between them have to be known at compile time (--value)");
  ShapeValues extents;
  for (size_t d = 0; d < a.extents.size(); ++d) {
    const ShapeValue &p = a.extents[d], &q = b.extents[d];
    if (p == q) {
      extents.push_back(p);
      continue;
    }
    ShapeValue chosen{std::min(p.low, q.low), std::max(p.high, q.high)};
    const std::string one = scalar_value(c, p), other = scalar_value(c, q);
    chosen.value = c.once(fmt::format("{} or {} as {} says", one, other, condition), [&] {
      return call(c, "Where", {condition, one, other});
    });
    c.say_numbers(chosen.value, {chosen});
    extents.push_back(chosen);
  }
  HOIST_TRY_VOID(check_bounds(extents));
  // The result has the capacity for either branch.
  const Shape room_a = room_of(c, yes), room_b = room_of(c, no);
  const auto no_room = [](const Shape& room) { return product(room) == 0; };
  if (no_room(room_a) || no_room(room_b)) {
    const DynamicArray& there = no_room(room_a) ? b : a;
    const Shape room = room_of(c, there.value);
    for (size_t d = 0; d < room.size(); ++d) extents[d].high = std::min(extents[d].high, room[d]);
    c.give(number, there.value, extents);
    return Nothing{};
  }
  const auto widened = [&](const std::string& value, const Shape& room) {
    Shape amounts(2 * room.size(), 0);
    for (size_t d = 0; d < room.size(); ++d) amounts[room.size() + d] = std::max(room_a[d], room_b[d]) - room[d];
    return std::all_of(amounts.begin(), amounts.end(), [](int64_t n) { return n == 0; })
               ? value
               : call(c, "Pad", {value}, {{"pads", amounts}});
  };
  c.give(number, call(c, "Where", {condition, widened(yes, room_a), widened(no, room_b)}), extents);
  return Nothing{};
}

}  // namespace hoist
