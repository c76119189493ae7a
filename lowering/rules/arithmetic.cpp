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
    {"multiply-add-to-fma-left", "", three, "x * y + w", "fma(x, y, w)", "float T", rounding, "one rounding instead of two"},
    {"multiply-subtract-to-fma", "", three, "w - x * y", "fma(-x, y, w)", "float T", rounding, "one rounding instead of two"},
    {"multiply-subtract-to-fma-left", "", three, "x * y - w", "fma(x, y, -w)", "float T", rounding, "one rounding instead of two"},
    {"fma-to-multiply-add", "", three, "fma(x, y, w)", "x * y + w", "float T", rounding, "two roundings instead of one"},

    // regrouping
    {"add-associate", "", three, "x + y + w", "x + (y + w)", "integer T", exact, "integers wrap in any order"},
    {"add-associate-float", "", three, "x + y + w", "x + (y + w)", "float T", rounding, "constants meet"},
    {"add-associate-left-float", "", three, "x + (y + w)", "x + y + w", "float T", rounding, "constants meet"},
    {"multiply-associate", "", three, "x * y * w", "x * (y * w)", "integer T", exact, "integers wrap in any order"},
    {"multiply-associate-float", "", three, "x * y * w", "x * (y * w)", "float T", rounding, "constants meet"},
    {"max-associate", "", three, "max(max(x, y), w)", "max(x, max(y, w))", "", exact, "constants meet"},
    {"min-associate", "", three, "min(min(x, y), w)", "min(x, min(y, w))", "", exact, "constants meet"},
    {"add-commute", "", two, "x + y", "y + x", "", exact, "IEEE addition commutes"},
    {"multiply-commute", "", two, "x * y", "y * x", "", exact, "IEEE multiplication commutes"},
    {"distribute", "", three, "(x + y) * w", "x * w + y * w", "integer T", exact, "integers wrap in any order"},
    {"distribute-float", "", three, "(x + y) * w", "x * w + y * w", "float T", rounding, "the scale meets each term"},
    {"distribute-subtract-float", "", three, "(x - y) * w", "x * w - y * w", "float T", rounding, "the scale meets each term"},
    {"factor-float", "", three, "x * w + y * w", "(x + y) * w", "float T", rounding, "one multiplication instead of two"},
    {"subtract-to-add", "", two, "x - y", "x + -y", "", exact, "subtraction is addition of the negated"},
    {"add-to-subtract", "", two, "x + -y", "x - y", "", exact, "addition of the negated is subtraction"},
    {"divide-to-multiply", "", "x: f32, y: f32", "x / y", "x * (1f32 / y)", "", rounding, "the reciprocal can be computed once"},
    {"divide-of-divide", "", "x: f32, y: f32, w: f32", "x / y / w", "x / (y * w)", "", rounding, "one division instead of two"},
    {"multiply-divide", "", "x: f32, y: f32, w: f32", "x * y / w", "x * (y / w)", "", rounding, "constants meet"},

    // neutral elements
    {"add-zero", "", "x: T, z: T", "x + z", "x", "z is 0, integer T", exact, "nothing added"},
    {"add-negative-zero", "", "x: T, z: T", "x + z", "x", "z is -0, float T", exact, "nothing added; -0 keeps the sign of a zero"},
    {"add-zero-float", "", "x: T, z: T", "x + z", "x", "z is 0, float T", rounding, "-0 + 0 is 0, so the sign of a zero may differ"},
    {"zero-add-float", "", "x: T, z: T", "z + x", "x", "z is 0, float T", rounding, "0 + -0 is 0, so the sign of a zero may differ"},
    {"zero-add", "", "x: T, z: T", "z + x", "x", "z is 0, integer T", exact, "nothing added"},
    {"subtract-zero", "", "x: T, z: T", "x - z", "x", "z is 0", exact, "nothing subtracted; -0 - 0 is -0"},
    {"multiply-one", "", "x: T, z: T", "x * z", "x", "z is 1", exact, "nothing scaled"},
    {"one-multiply", "", "x: T, z: T", "z * x", "x", "z is 1", exact, "nothing scaled"},
    {"divide-one", "", "x: T, z: T", "x / z", "x", "z is 1", exact, "nothing scaled"},
    {"multiply-zero", "", "x: T, z: T", "x * z", "z", "z is 0, integer T", exact, "not for floats: infinities and NaN"},

    // idempotence and signs
    {"max-same", "", one, "max(x, x)", "x", "", exact, "NaN stays NaN"},
    {"min-same", "", one, "min(x, x)", "x", "", exact, "NaN stays NaN"},
    {"max-again", "", two, "max(max(x, y), y)", "max(x, y)", "", exact, "relu of relu"},
    {"min-again", "", two, "min(min(x, y), y)", "min(x, y)", "", exact, "clipped twice"},
    {"negate-negate", "", one, "-(-x)", "x", "", exact, "two signs"},
    {"negate-of-subtract", "", two, "-(x - y)", "y - x", "float T", rounding, "-(x - x) is -0, so the sign of a zero may differ"},
    {"abs-abs", "", one, "abs(abs(x))", "abs(x)", "", exact, "no sign is left"},
    {"abs-negate", "", one, "abs(-x)", "abs(x)", "float T", exact, "the sign does not matter"},
    {"multiply-negate", "", two, "-x * y", "-(x * y)", "", exact, "the sign moves outwards"},
    {"square", "", "x: T, t: T", "pow(x, t)", "x * x", "t is 2, float T", rounding, "a multiplication instead of a function"},
    {"not-not", "", "c: bool", "!(!c)", "c", "", exact, "two negations"},

    // choices
    {"select-not", "", "c: bool, x: T, y: T", "select(!c, x, y)", "select(c, y, x)", "", exact, "the branches change places"},
    {"select-true", "", "x: T, y: T", "select(true, x, y)", "x", "", exact, "a choice that is made"},
    {"select-false", "", "x: T, y: T", "select(false, x, y)", "y", "", exact, "a choice that is made"},
    {"select-of-select-first", "", "c: bool, x: T, y: T, w: T", "select(c, select(c, x, y), w)", "select(c, x, w)", "", exact, "the same question twice"},
    {"select-of-select-second", "", "c: bool, x: T, y: T, w: T", "select(c, x, select(c, y, w))", "select(c, x, w)", "", exact, "the same question twice"},
    {"select-less-to-max", "", two, "select(x < y, y, x)", "max(x, y)", "integer T", exact, "not for floats: NaN"},
    {"select-less-to-min", "", two, "select(x < y, x, y)", "min(x, y)", "integer T", exact, "not for floats: NaN"},
  };
}
// clang-format on

}  // namespace hoist
