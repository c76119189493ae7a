// Operators on any number of arrays or parts, by positions known at compile time; movement.op has the others.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/operators/definitions/support.h"
#include "ir/operators/families.h"

namespace hoist::operators {
namespace {

Lowered lower_concat(const OperatorContext& c) {
  HOIST_TRY_VOID(check_same_element(c));
  HOIST_TRY(int64_t named, integer_attribute(c, "axis", 1));
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    if (c.inputs[i] == nullptr) return fault(fmt::format("input {} is missing", i));
  }
  return concatenation(c.inputs, named);
}

Expr slice_at(int64_t axis, int64_t start, int64_t count, Expr x, int64_t step = 1) {
  return map_at(
      static_cast<int>(axis), [&](Expr row) { return slice(start, count, row, step); }, x);
}

Lowered lower_split(const OperatorContext& c) {
  HOIST_TRY(int64_t named, integer_attribute(c, "axis", 0));
  HOIST_TRY(int64_t axis, normalise_axis(named, rank_of(c.inputs[0])));
  HOIST_TRY(auto given, integers_of(c, "split", 1));
  HOIST_TRY(int64_t parts, integer_attribute(c, "num_outputs", c.call.results));
  int64_t n = extents(c.inputs[0])[static_cast<size_t>(axis)];
  if (parts < 1 || parts > 65536) return fault(fmt::format("{} parts", parts));
  Shape counts;
  if (given) {
    counts = *given;
  } else {
    int64_t each = (n + parts - 1) / parts;
    for (int64_t i = 0; i < parts; ++i) counts.push_back(std::clamp<int64_t>(n - i * each, 0, each));
  }
  int64_t total = 0;
  std::vector<Expr> results;
  for (int64_t count : counts) {
    if (count < 0 || count > n - total)
      return fault(fmt::format("the parts need more than the {} elements of axis {}", n, axis));
    results.push_back(slice_at(axis, count == 0 ? 0 : total, count, c.inputs[0]));
    total += count;
  }
  if (total != n) return fault(fmt::format("the parts have {} elements, axis {} has {}", total, axis, n));
  return results;
}

// Concatenates the real values of the arrays along an axis. Equal scales and zero points keep every element.
Lowered lower_quantised_concat(const OperatorContext& c) {
  const auto parameter_of = [&](size_t i, const char* role) -> Result<Expr> {
    Expr p = input(c, i);
    if (p == nullptr) return fault(fmt::format("input {} ({}) is missing", i, role));
    if (product(extents(p)) != 1)
      return fault(fmt::format("the {} of input {} is {}, expected one number", role, i, text(extents(p))));
    return reshape(p, {});
  };
  HOIST_TRY(Expr scale, parameter_of(0, "scale"));
  HOIST_TRY(Expr zero, parameter_of(1, "zero point"));
  const Scalar quantised = element_of(zero);
  if (!is_integer(quantised) || row(quantised).bits > 8)
    return fault(fmt::format("the result is {}, expected an integer of 8 bits", row(quantised).name));
  if (c.inputs.size() < 5 || (c.inputs.size() - 2) % 3 != 0)
    return fault(fmt::format(
        "expected inputs in groups of three (array, scale, zero point) after the first two, found {} inputs",
        c.inputs.size()));
  std::vector<Expr> arrays;
  for (size_t i = 2; i + 2 < c.inputs.size(); i += 3) {
    Expr x = input(c, i);
    if (x == nullptr) return fault(fmt::format("input {} is missing", i));
    HOIST_TRY(Expr own_scale, parameter_of(i + 1, "scale"));
    HOIST_TRY(Expr own_zero, parameter_of(i + 2, "zero point"));
    if (element_of(x) != quantised || element_of(own_zero) != quantised)
      return fault(fmt::format("input {} is {}, the result {}", i, row(element_of(x)).name, row(quantised).name));
    const auto wide = [](Expr e) { return Number(convert(Scalar::f32, e)); };
    arrays.push_back(map_at(
        static_cast<int>(rank_of(x)),
        [&](Expr q) {
          const Number steps = apply(Function::round, (wide(q) - wide(own_zero)) * wide(own_scale) / wide(scale));
          return cast(quantised, (steps + wide(zero)).e);
        },
        x));
  }
  HOIST_TRY(int64_t named, integer_attribute(c, "axis", 0));
  return concatenation(arrays, named);
}

// clang-format off
constexpr auto movement_rows = std::to_array<OperatorRow>({
  {"", "Concat", 4, 1, -1, Takes::anything, lower_concat,
   "concatenation along an axis; in C++, since the number of arrays and dimensions is arbitrary"},
  {"com.microsoft", "QLinearConcat", 1, 5, -1, Takes::floats, lower_quantised_concat,
   "concatenates arrays with different scales, in one scale; in C++, since the number of arrays and dimensions is arbitrary"},
  {"", "Split", 18, 1, 2, Takes::anything, lower_split,
   "parts along an axis; in C++, since the call decides the number of results", -2, 2, "1 split", 0, nullptr, true},
});
// clang-format on

}  // namespace

std::span<const OperatorRow> movement_operators() { return movement_rows; }

}  // namespace hoist::operators
