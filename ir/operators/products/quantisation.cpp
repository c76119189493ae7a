// Quantising and dequantising. Computations on quantised elements are with the contractions.
#include <array>

#include "ir/operators/definitions/operator_text.h"
#include "ir/operators/families.h"

namespace hoist::operators {
namespace {

// A scale or zero point belongs to all of x, to places along the axis, or to blocks along it.
#define HOIST_PARAMETERS \
  "s = per_place \"scale\" axis block_size scale x; z = per_place \"zero point\" axis block_size zero x; "

// clang-format off
constexpr auto quantisation_rows = std::to_array<OperatorRow>({
  // A 16-bit zero point is no number of f16, so that the sum is formed in f32. A scale that is known to be 1 divides
  // nothing.
  by_text("QuantizeLinear", 10,
          "(x : numbers, scale : anything, zero? : anything; axis = 1, block_size = 0, saturate = 1, "
          "output_dtype? : type | 0, precision? : type | 0) "
          "refuse given(zero) & type(zero) != T: \"output_dtype is {output_dtype}, the zero point {type(zero)}\" "
          "refuse booleans(T) | floats(T) & bits(T) > 8 "
          "| integers(T) & bits(T) > 16: "
          "\"the result is {T}, expected an integer of at most 16 bits or a float of at most 8\" "
          "refuse !floats(P) | bits(P) <= 8: "
          "\"precision is {P}, expected a float of 16 bits or more\" "
          "= select(given(zero), each x s z. quantised (steps x s + convert(W, z)), each x s. quantised (steps x s)) "
          "where " HOIST_PARAMETERS
          "steps = \\v unit. convert(W, select(integers(T), round(ratio v unit), ratio v unit)); "
          "ratio = \\v unit. select(is_one, convert(P, v), convert(P, v) / convert(P, unit)); "
          "is_one = is_known(scale) & one_number(scale) & floats(scale) & value(scale) == 1; "
          "quantised = \\v. select(saturate | integers(T), saturated(T, v), convert_without_saturation(T, v)); "
          "W = wide(P); P = select(given(precision), precision, select(floats(scale), type(scale), f32)); "
          "T = select(given(output_dtype), output_dtype, select(given(zero), type(zero), u8))"),
  // Differences of integers are exact; the product is rounded once.
  by_text("DequantizeLinear", 10,
          "(x : numbers, scale : anything, zero? : anything; axis = 1, block_size = 0, output_dtype? : type | 0) "
          "refuse !floats(T) | !floats(scale): "
          "\"the scale is {type(scale)} and the result {T}, expected floats\" "
          "refuse integers(x) & (bits(x) > 32 | type(x) == u32): "
          "\"the input is {type(x)}, expected an integer that fits into i32, or a float\" "
          "refuse given(zero) & type(zero) != type(x): \"the input is {type(x)}, the zero point {type(zero)}\" "
          "= select(given(zero), each x s z. scaled (convert(E, x) - convert(E, z)) s, each x s. scaled (convert(E, x)) s) "
          "where " HOIST_PARAMETERS "scaled = \\steps unit. convert(T, convert(W, steps) * convert(W, unit)); "
          "E = select(integers(x), i32, W); W = wide(type(scale)); T = select(given(output_dtype), output_dtype, type(scale))"),
});
// clang-format on

#undef HOIST_PARAMETERS

}  // namespace

std::span<const OperatorRow> quantisation_operators() { return quantisation_rows; }

}  // namespace hoist::operators
