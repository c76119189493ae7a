#include "ir/gradient/training/gradient_formats.h"

#include <algorithm>
#include <array>

#include "ir/operators/elementwise/random.h"

namespace hoist {
namespace {

constexpr auto rows = std::to_array<GradientFormat>({
    {"i8", "8 bits", 8, false},
    {"i4", "4 bits", 4, false},
    {"i2", "2 bits", 2, false},
    {"i8-feedback", "8 bits, and the error added to the next gradient", 8, true},
    {"i4-feedback", "4 bits, and the error added to the next gradient", 4, true},
    {"i2-feedback", "2 bits, and the error added to the next gradient", 2, true},
});

Expr number(Expr like, double value) { return literal(leaf_of(like->type)->scalar, value); }

}  // namespace

std::span<const GradientFormat> gradient_formats() { return rows; }

const GradientFormat* find_gradient_format(std::string_view name) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const GradientFormat& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

Expr gradient_step(const GradientFormat& format, Expr gradient) {
  Expr flat = gradient;
  while (flat->type->element->is_array()) flat = join(flat);
  const Expr magnitudes = map([](Expr e) { return call(Function::absolute, {e}); }, flat);
  const Expr largest = reduce(Function::maximum, number(gradient, 0), magnitudes);
  return call(Function::divide, {largest, number(gradient, static_cast<double>(format.largest()))});
}

Expr rounded_gradient(const GradientFormat& format, Expr gradient, Expr step, uint64_t seed, Expr run) {
  const std::vector<Nat> sizes = sizes_of(gradient->type);
  Expr words = operators::random_words(element_count(shape_of(gradient->type)), seed, run);
  for (size_t i = sizes.size(); i-- > 1;) words = split(sizes[i], words);
  const auto most = static_cast<double>(format.largest());
  const auto rounded = [&](Expr e, Expr word) {
    // 24 random bits as a number from 0 to 1, without 1.
    const Expr bits = cast(Scalar::i32, call(Function::shift_right, {word, literal_integer(Scalar::u64, 40)}));
    const Expr unit = call(Function::multiply, {cast(e->type->scalar, bits), number(e, 0x1p-24)});
    const Expr below = call(Function::floor, {call(Function::add, {call(Function::divide, {e, step}), unit})});
    const Expr within = call(Function::maximum, {call(Function::minimum, {below, number(e, most)}), number(e, -most)});
    const Expr zero = literal_integer(Scalar::i8, 0);
    return select(call(Function::equal, {step, number(e, 0)}), zero, cast(Scalar::i8, within));
  };
  const auto each = [&](const auto& self, Expr a, Expr b) -> Expr {
    if (!a->type->is_array()) return rounded(a, b);
    return map([&](Expr pair) { return self(self, get(0, pair), get(1, pair)); }, zip({a, b}));
  };
  return each(each, gradient, words);
}

Expr gradient_of(Expr integers, Expr step) {
  const auto scaled = [&](Expr e) { return call(Function::multiply, {cast(step->type->scalar, e), step}); };
  return map_at(static_cast<int>(sizes_of(integers->type).size()), scaled, integers);
}

}  // namespace hoist
