// The generator is SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014),
// whose state at any position is known.
#include "ir/operators/elementwise/random.h"

#include <bit>

namespace hoist::operators {
namespace {

constexpr uint64_t random_step = 0x9E3779B97F4A7C15u;

Expr shifted_right(Expr x, int64_t by) { return call(Function::shift_right, {x, literal_integer(Scalar::u64, by)}); }
Expr exclusive(Expr a, Expr b) { return call(Function::logical_xor, {a, b}); }
Expr times(Expr a, uint64_t b) {
  return call(Function::multiply, {a, literal_integer(Scalar::u64, static_cast<int64_t>(b))});
}

// The 64 bits of a counter, mixed so that each bit depends on all.
Expr mixed(Expr counter) {
  return let(counter, [](Expr a) {
    return let(times(exclusive(a, shifted_right(a, 30)), 0xBF58476D1CE4E5B9u), [](Expr b) {
      return let(times(exclusive(b, shifted_right(b, 27)), 0x94D049BB133111EBu),
                 [](Expr c) { return exclusive(c, shifted_right(c, 31)); });
    });
  });
}

uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// The words of a sequence. The mixing of its start separates the sequences of seeds that differ in few bits.
Expr words_from(int64_t count, Expr start) {
  return map(
      [&](Expr i) {
        return mixed(call(Function::add, {times(i, random_step), start}));
      },
      iota(count, Scalar::u64));
}

Expr word(uint64_t x) { return literal_integer(Scalar::u64, static_cast<int64_t>(x)); }

}  // namespace

Expr random_words(int64_t count, float seed) {
  return words_from(count, word(mixed(std::bit_cast<uint32_t>(seed) + random_step) + random_step));
}

Expr random_words(int64_t count, uint64_t seed, Expr run) {
  return words_from(count, mixed(call(Function::add, {times(run, random_step), word(mixed(seed + random_step))})));
}

}  // namespace hoist::operators
