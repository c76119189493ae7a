#include "ir/operators/products/quantised_weights.h"

#include <fmt/format.h>

#include <tuple>

namespace hoist::operators {
namespace {

// The range of the elements of an array and 0, by which they are quantised to u8.
struct QuantisedRange {
  Expr low, high;

  // The step between quantised values; 1 if all are 0.
  Number step() const { return choose(Number(low) == high, 1.0, (Number(high) - low) / 255.0); }
  Number zero_point() const { return apply(Function::round, max(min(-(Number(low) / step()), 255.0), 0.0)); }
  // The quantised value less the zero point.
  Expr steps(Expr v) const {
    const Number zero = zero_point();
    return cast(Scalar::i16, apply(Function::round, max(min(Number(v) / step(), Number(255.0) - zero), -zero)).e);
  }
};

}  // namespace

Expr row_product(Scalar wide, Expr a, Expr b) {
  return reduce(
      [](Expr p, Expr q) { return operator_add(p, q); }, zero(wide),
      map([&](Expr pair) { return operator_multiply(convert(wide, get(0, pair)), convert(wide, get(1, pair))); },
          zip({a, b})));
}

Expr by_rows(Expr rows, Expr numbers, const std::function<Expr(Expr row, Expr numbers)>& function) {
  if (rank_of(numbers) == 1) return map([&](Expr row) { return function(row, numbers); }, rows);
  return map_zip({rows, numbers}, [&](const Elements& e) { return function(e[0], e[1]); });
}

Result<Quantisation> read_quantisation(const OperatorContext& c, size_t place, const std::string& role, Expr& weights,
                                       int64_t directions) {
  const Scalar element = element_of(weights);
  if (rank_of(weights) != 3 || (element != Scalar::i8 && element != Scalar::u8))
    return fault(fmt::format("{} is {} of {}, expected 3 dimensions of i8 or u8", role, text(sizes_of(weights->type)),
                             row(element).name));
  weights = transpose({0, 2, 1}, weights);
  const Quantisation out = {input(c, place), input(c, place + 1)};
  const Sizes per_tensor = {directions}, per_row = {directions, weights->type->element->size};
  for (const auto& [numbers, wanted, name] :
       {std::tuple(out.scales, Scalar::f32, role + "_scale"), std::tuple(out.zeros, element, role + "_zero_point")}) {
    if (numbers == nullptr) return fault(name + " is missing");
    const Sizes sizes = sizes_of(numbers->type);
    if (element_of(numbers) != wanted || (sizes != per_tensor && sizes != per_row))
      return fault(fmt::format("{} is {} of {}, expected {} or {} of {}", name, text(sizes),
                               row(element_of(numbers)).name, text(per_tensor), text(per_row), row(wanted).name));
  }
  return out;
}

DirectionWeights weights_of_direction(int64_t direction, Expr all, const Quantisation& quantised) {
  const Expr own_rows = at_position(direction, all);
  const auto per_row = [&](Expr numbers) {
    const Expr own = at_position(direction, numbers);
    return own->type->is_scalar() ? repeat(own_rows->type->size, own) : own;
  };
  const Expr rows = map_zip({own_rows, per_row(quantised.zeros)}, [](const Elements& e) {
    return map([&](Expr v) { return (Number(cast(Scalar::i16, v)) - cast(Scalar::i16, e[1])).e; }, e[0]);
  });
  return {in_memory(rows), in_memory(per_row(quantised.scales))};
}

Expr with_quantised_product(Expr rows, Expr ranged, const DirectionWeights& weights, Expr added,
                            const std::function<Expr(Expr)>& use) {
  const auto least_of = [&](Function function) { return repeat(1, reduce(function, zero(Scalar::f32), join(ranged))); };
  return let(in_memory(concat({least_of(Function::minimum), least_of(Function::maximum)})), [&](Expr bounds) {
    const QuantisedRange range = {at_position(0, bounds), at_position(1, bounds)};
    const Expr steps = map_at(
        2, [&](Expr v) { return range.steps(v); }, rows);
    return let(in_memory(steps), [&](Expr quantised) {
      const Expr product = by_rows(quantised, added, [&](Expr row, Expr numbers) {
        return map_zip({weights.rows, weights.scales, numbers}, [&](const Elements& e) {
          const Expr total = row_product(Scalar::i32, row, e[0]);
          return (Number(cast(Scalar::f32, total)) * (range.step() * e[1]) + e[2]).e;
        });
      });
      return let(in_memory(product), use);
    });
  });
}

}  // namespace hoist::operators
