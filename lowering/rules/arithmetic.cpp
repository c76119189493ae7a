// Scalar equations: fused multiply-add, reassociation, and what simplifies without changing a bit (zeros have signs and
// NaN stays NaN, so several schoolbook equations are rounding rules or missing).
#include "lowering/rules/tables.h"

namespace hoist {

// clang-format off
std::vector<RuleRow> arithmetic_rules() {
  constexpr auto exact = RuleClass::exact;
  constexpr auto rounding = RuleClass::rounding;
  const std::string one = "x: T", two = "x: T, y: T", three = "x: T, y: T, w: T";
  return {
    {"multiply-add-to-fma", "", three, "w + x * y", "fma(x, y, w)", "float T", rounding, "one rounding instead of two"},
    {"multiply-add-to-fma-left", "", three, "x * y + w", "fma(x, y, w)", "float T", rounding, "one rounding instead of two", library::scalars},
    {"multiply-subtract-to-fma", "", three, "w - x * y", "fma(-x, y, w)", "float T", rounding, "one rounding instead of two", library::scalars},
    {"multiply-subtract-to-fma-left", "", three, "x * y - w", "fma(x, y, -w)", "float T", rounding, "one rounding instead of two", library::scalars},
    {"fma-to-multiply-add", "", three, "fma(x, y, w)", "x * y + w", "float T", rounding, "two roundings instead of one", library::scalars},

    // regrouping
    {"add-associate", "", three, "x + y + w", "x + (y + w)", "integer T", exact, "integers wrap in any order", library::scalars},
    {"add-associate-float", "", three, "x + y + w", "x + (y + w)", "float T", rounding, "constants meet", library::scalars},
    {"add-associate-left-float", "", three, "x + (y + w)", "x + y + w", "float T", rounding, "constants meet", library::scalars},
    {"multiply-associate", "", three, "x * y * w", "x * (y * w)", "integer T", exact, "integers wrap in any order", library::scalars},
    {"multiply-associate-float", "", three, "x * y * w", "x * (y * w)", "float T", rounding, "constants meet", library::scalars},
    {"max-associate", "", three, "max(max(x, y), w)", "max(x, max(y, w))", "", exact, "constants meet", library::scalars},
    {"min-associate", "", three, "min(min(x, y), w)", "min(x, min(y, w))", "", exact, "constants meet", library::scalars},
    {"add-commute", "", two, "x + y", "y + x", "", exact, "IEEE addition commutes", library::scalars},
    {"multiply-commute", "", two, "x * y", "y * x", "", exact, "IEEE multiplication commutes", library::scalars},
    {"distribute", "", three, "(x + y) * w", "x * w + y * w", "integer T", exact, "integers wrap in any order", library::scalars},
    {"distribute-float", "", three, "(x + y) * w", "x * w + y * w", "float T", rounding, "the scale meets each term", library::scalars},
    {"distribute-subtract-float", "", three, "(x - y) * w", "x * w - y * w", "float T", rounding, "the scale meets each term", library::scalars},
    {"factor-float", "", three, "x * w + y * w", "(x + y) * w", "float T", rounding, "one multiplication instead of two", library::scalars},
    {"subtract-to-add", "", two, "x - y", "x + -y", "", exact, "subtraction is addition of the negated", library::scalars},
    {"add-to-subtract", "", two, "x + -y", "x - y", "", exact, "addition of the negated is subtraction", library::scalars},
    {"divide-to-multiply", "", "x: f32, y: f32", "x / y", "x * (1f32 / y)", "", rounding, "the reciprocal can be computed once", library::scalars},
    {"divide-of-divide", "", "x: f32, y: f32, w: f32", "x / y / w", "x / (y * w)", "", rounding, "one division instead of two", library::scalars},
    {"multiply-divide", "", "x: f32, y: f32, w: f32", "x * y / w", "x * (y / w)", "", rounding, "constants meet", library::scalars},

    // neutral elements
    {"add-zero", "", "x: T, z: T", "x + z", "x", "z is 0, integer T", exact, "nothing added", library::scalars},
    {"add-negative-zero", "", "x: T, z: T", "x + z", "x", "z is -0, float T", exact, "nothing added; -0 keeps the sign of a zero", library::scalars},
    {"add-zero-float", "", "x: T, z: T", "x + z", "x", "z is 0, float T", rounding, "-0 + 0 is 0, so the sign of a zero may differ", library::scalars},
    {"zero-add-float", "", "x: T, z: T", "z + x", "x", "z is 0, float T", rounding, "0 + -0 is 0, so the sign of a zero may differ", library::scalars},
    {"zero-add", "", "x: T, z: T", "z + x", "x", "z is 0, integer T", exact, "nothing added", library::scalars},
    {"subtract-zero", "", "x: T, z: T", "x - z", "x", "z is 0", exact, "nothing subtracted; -0 - 0 is -0", library::scalars},
    {"multiply-one", "", "x: T, z: T", "x * z", "x", "z is 1", exact, "nothing scaled", library::scalars},
    {"one-multiply", "", "x: T, z: T", "z * x", "x", "z is 1", exact, "nothing scaled", library::scalars},
    {"divide-one", "", "x: T, z: T", "x / z", "x", "z is 1", exact, "nothing scaled", library::scalars},
    {"multiply-zero", "", "x: T, z: T", "x * z", "z", "z is 0, integer T", exact, "not for floats: infinities and NaN", library::scalars},

    // idempotence and signs
    {"max-same", "", one, "max(x, x)", "x", "", exact, "NaN stays NaN", library::scalars},
    {"min-same", "", one, "min(x, x)", "x", "", exact, "NaN stays NaN", library::scalars},
    {"max-again", "", two, "max(max(x, y), y)", "max(x, y)", "", exact, "relu of relu", library::scalars},
    {"min-again", "", two, "min(min(x, y), y)", "min(x, y)", "", exact, "clipped twice", library::scalars},
    {"negate-negate", "", one, "-(-x)", "x", "", exact, "two signs", library::scalars},
    {"negate-of-subtract", "", two, "-(x - y)", "y - x", "float T", rounding, "-(x - x) is -0, so the sign of a zero may differ", library::scalars},
    {"abs-abs", "", one, "abs(abs(x))", "abs(x)", "", exact, "no sign is left", library::scalars},
    {"abs-negate", "", one, "abs(-x)", "abs(x)", "float T", exact, "the sign does not matter", library::scalars},
    {"multiply-negate", "", two, "-x * y", "-(x * y)", "", exact, "the sign moves outwards", library::scalars},
    {"square", "", "x: T, t: T", "pow(x, t)", "x * x", "t is 2, float T", rounding, "a multiplication instead of a function", library::scalars},
    {"not-not", "", "c: bool", "!(!c)", "c", "", exact, "two negations", library::scalars},

    // choices
    {"select-not", "", "c: bool, x: T, y: T", "select(!c, x, y)", "select(c, y, x)", "", exact, "the branches change places", library::scalars},
    {"select-true", "", "x: T, y: T", "select(true, x, y)", "x", "", exact, "a choice that is made", library::scalars},
    {"select-false", "", "x: T, y: T", "select(false, x, y)", "y", "", exact, "a choice that is made", library::scalars},
    {"select-of-select-first", "", "c: bool, x: T, y: T, w: T", "select(c, select(c, x, y), w)", "select(c, x, w)", "", exact, "the same question twice", library::scalars},
    {"select-of-select-second", "", "c: bool, x: T, y: T, w: T", "select(c, x, select(c, y, w))", "select(c, x, w)", "", exact, "the same question twice", library::scalars},
    {"select-less-to-max", "", two, "select(x < y, y, x)", "max(x, y)", "integer T", exact, "not for floats: NaN", library::scalars},
    {"select-less-to-min", "", two, "select(x < y, x, y)", "min(x, y)", "integer T", exact, "not for floats: NaN", library::scalars},
  };
}
// clang-format on

}  // namespace hoist
