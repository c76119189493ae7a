// Operators that draw random numbers. The standard leaves the generator open. Here an element is a function of only the
// call's seed and the element's position: SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
// generators", OOPSLA 2014), whose state at any position is known, so that elements can be computed in any order and
// every device gives the same bits. A call without a seed has seed 0; a frontend gives each layer its own. Every run
// draws the same values.
#include "ir/operators/elementwise/random.h"

#include <array>
#include <bit>

#include "ir/operators/definitions/operator_text.h"
#include "ir/operators/families.h"

namespace hoist::operators {
namespace {

constexpr uint64_t random_step = 0x9E3779B97F4A7C15u;

Expr shifted_right(Expr x, int64_t by) { return call(Function::shift_right, {x, literal_integer(Scalar::u64, by)}); }
Expr exclusive(Expr a, Expr b) { return call(Function::logical_xor, {a, b}); }
Expr times(Expr a, uint64_t b) {
  return call(Function::multiply, {a, literal_integer(Scalar::u64, static_cast<int64_t>(b))});
}

// 64 bits of a counter, mixed so that each of them depends on all.
Expr mixed(Expr counter) {
  return let(counter, [](Expr a) {
    return let(times(exclusive(a, shifted_right(a, 30)), 0xBF58476D1CE4E5B9u), [](Expr b) {
      return let(times(exclusive(b, shifted_right(b, 27)), 0x94D049BB133111EBu),
                 [](Expr c) { return exclusive(c, shifted_right(c, 31)); });
    });
  });
}

// Seeds that differ in few bits start far from each other.
uint64_t start_of(float seed) {
  uint64_t x = std::bit_cast<uint32_t>(seed) + random_step;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

#define HOIST_UNIT                                                                                     \
  "unit = \\w. select(D == f64, convert(D, shift_right(w, 11)) * 0.00000000000000011102230246251565, " \
  "convert(D, convert(i32, shift_right(w, 40))) * 0.000000059604644775390625); "

// Uniform and normal numbers of an array of these extents. Box and Muller make a normal number of two uniform ones, the
// first of which is never 0.
#define HOIST_UNIFORM(extents) \
  "each (\\w. convert(T, low + unit w * (high - low))) (random_words " extents ") where " HOIST_UNIT "D = wide(T); "
#define HOIST_NORMAL(extents)                                                                            \
  "each (\\w. convert(T, mean + scale * (sqrt(-2 * log(upper w)) * cos(lower w * 6.283185307179586)))) " \
  "(random_words " extents                                                                               \
  ") where "                                                                                             \
  "upper = \\w. (convert(D, convert(i32, shift_right(w, 40))) + 1) * 0.000000059604644775390625; "       \
  "lower = \\w. convert(D, convert(i32, shift_right(w, 8) & 16777215)) * 0.000000059604644775390625; D = wide(T); "

// clang-format off
constexpr auto random_rows = std::to_array<OperatorRow>({
  by_text("RandomUniform", 1,
          "(; shape, dtype? : type, high = 1.0, low = 0.0, seed = 0.0) "
          "refuse !floats(T): \"the result is {T}, expected floats\" "
          "= " HOIST_UNIFORM("shape") "T = select(given(dtype), dtype, f32)"),
  by_text("RandomNormal", 1,
          "(; shape, dtype? : type, mean = 0.0, scale = 1.0, seed = 0.0) "
          "refuse !floats(T): \"the result is {T}, expected floats\" "
          "= " HOIST_NORMAL("shape") "T = select(given(dtype), dtype, f32)"),
  by_text("RandomUniformLike", 1,
          "(x : anything; dtype? : type, high = 1.0, low = 0.0, seed = 0.0) "
          "refuse !floats(T): \"the result is {T}, expected floats\" "
          "= " HOIST_UNIFORM("(extents(x))") "T = select(given(dtype), dtype, type(x))"),
  by_text("RandomNormalLike", 1,
          "(x : anything; dtype? : type, mean = 0.0, scale = 1.0, seed = 0.0) "
          "refuse !floats(T): \"the result is {T}, expected floats\" "
          "= " HOIST_NORMAL("(extents(x))") "T = select(given(dtype), dtype, type(x))"),
  // 1 with the probability that an element of x is.
  by_text("Bernoulli", 15,
          "(x : floats; dtype? : type, seed = 0.0) "
          "= each (\\p w. convert(T, unit w < convert(D, p))) x (random_words (extents(x))) where " HOIST_UNIT
          "D = wide(type(x)); T = select(given(dtype), dtype, type(x))", 0, 1),
  // Drawn with replacement from a row's weights, whose logarithms are given: the class in which a number below the sum
  // of all of them falls. A class of weight 0 (minus infinity) is never drawn; class 0 is, where no weight is a number
  // above 0, or one is NaN or infinite.
  by_text("Multinomial", 7,
          "(x : floats [n][classes]; dtype? : type, sample_size = 1 from 1, seed = 0.0) "
          "refuse T != i32 & T != i64: \"the result is {T}, expected i32 or i64\" "
          "refuse classes == 0: \"{x} has no classes\" "
          "= zip(x, reshape [n][sample_size] (random_words (n * sample_size))) |> map (\\(row, words). "
          "let most = reduce max lowest (widened row) in "
          "let sums = scan (+) 0 (map (\\v. exp(v - most)) (widened row)) in "
          "words |> map (\\w. let u = unit w * index (convert(i32, classes - 1)) sums in "
          "min(sums |> map (\\s. convert(T, s <= u)) |> reduce (+) 0, classes - 1))) "
          "where " HOIST_UNIT "widened = \\row. (each row. convert(D, row)); D = wide(type(x)); T = select(given(dtype), dtype, i32)"),
  // After the identity comes a mask that drops nothing.
  by_text("Dropout", 7,
          "(x : floats, ratio? : floats, training_mode? : booleans; seed = 0) "
          "refuse given(ratio) & !one_number(ratio): \"ratio has to be one number, found {ratio}\" "
          "refuse given(training_mode) & !one_number(training_mode): \"training_mode has to be one bool, found {training_mode}\" "
          "= (select(is_identity, x, each (\\v w. convert(type(x), select(dropping, select(keeps w, convert(D, v) / (1 - share), 0), convert(D, v)))) x words), "
          "select(is_identity, each x. convert(M, 1), each (\\v w. convert(M, !dropping | keeps w)) x words)) "
          "where words = random_words (extents(x)); keeps = \\w. unit w >= share; "
          "share = select(given(ratio), convert(D, scalar ratio), convert(D, 0.5)); dropping = scalar training_mode; "
          "is_identity = select(given(training_mode), is_known(training_mode) & value(training_mode) == 0, 1); " HOIST_UNIT
          "D = wide(type(x)); M = select(version < 10, type(x), bool)"),
});
// clang-format on

}  // namespace

std::span<const OperatorRow> random_operators() { return random_rows; }

Expr random_words(int64_t count, float seed) {
  const auto start = static_cast<int64_t>(start_of(seed) + random_step);
  return map(
      [&](Expr i) {
        return mixed(call(Function::add, {times(i, random_step), literal_integer(Scalar::u64, start)}));
      },
      iota(count, Scalar::u64));
}

}  // namespace hoist::operators
