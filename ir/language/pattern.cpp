#include "ir/language/pattern.h"

#include <array>

#include "ir/base/result.h"
#include "ir/base/special_values.h"

namespace hoist {
namespace {

using P = Pattern;
// clang-format off
constexpr auto patterns = std::to_array<PatternRow>({
  {P::parameter, "parameter", "T", "a named input of a layer or kernel, written %name", false},
  {P::bound, "bound", "T", "a variable that an enclosing function binds", false},
  {P::literal, "literal", "T", "a scalar: 1.5f32, 3i64, true", false},
  {P::constant, "constant", "[n]T", "an array of constants, printed in full when small", true},
  {P::iota, "iota", "iota n T : [n]T", "0, 1, ..., n-1", true},
  {P::meta, "meta", "T", "a metavariable of a rule, ?x, or its application, ?f x; never in a compiled term", false},
  {P::function, "function", "A -> B", "a function, only as an argument of a pattern: \\x. e", false},
  {P::call, "call", "S, ... -> S", "a scalar function applied: a + b, max(a, b), exp(x)", false},
  {P::select, "select", "bool, T, T -> T", "select(c, a, b) is a where c holds, else b; rarely(c, a, b) as well, where kernels branch for a", false},
  {P::cast, "cast", "S -> S'", "conversion of scalars: to floats rounds half to even, to integers truncates and saturates, NaN to 0", false},
  {P::reinterpret, "reinterpret", "S -> S'", "the same bits as another type of the same width, 8 bits or more; every NaN becomes its type's one quiet NaN", false},
  {P::let, "let", "A, (A -> B) -> B", "let x = a in b: a place for a; computed here when materialised or folded", false},
  {P::tuple, "tuple", "A, B, ... -> (A, B, ...)", "(a, b)", true},
  {P::get, "get", "(A, B, ...) -> B", "t.1 is the second component", true},
  {P::identity, "id", "T -> T", "a copy as a computation, so that a loop can run over a view", false},
  {P::operator_call, "operator call", "T, ... -> T", "an operator of ONNX, by its definition: Conv(x, w, _; strides = [2, 2]); several results are a tuple", false},
  {P::host, "host", "host name T : [n]S, [m]S', ... -> T", "a function of whole arrays that no kernel computes (ir/host): host string_concat [3]string(a, b)", false},
  {P::map, "map", "(A -> B), [n]A -> [n]B", "the function on each element", false},
  {P::reduce, "reduce", "(T, T -> T), T, [n]T -> T", "an associative operator from its neutral element; the interpreter reduces from left to right", false},
  {P::fold, "fold", "(S, A -> S), S, [n]A -> S", "left to right with an accumulator of any type", false},
  {P::scan, "scan", "(S, A -> S), S, [n]A -> [n]S", "all accumulators of a fold after each element", false},
  {P::iterate, "iterate", "iterate k : (T -> T), T -> T", "the function k times", false},
  {P::zip, "zip", "[n]A, [n]B, ... -> [n](A, B, ...)", "element by element", true},
  {P::split, "split", "split k : [m*k]A -> [m][k]A", "rows of k", true},
  {P::join, "join", "[m][k]A -> [m*k]A", "rows one after the other", true},
  {P::transpose, "transpose", "transpose (p0 p1 ...)", "dimension i of the result is dimension p_i of the argument; (1 0) when left out", true},
  {P::slide, "slide", "slide size step dilation : [n]A -> [w][size]A", "windows; w = (n - ((size-1)*dilation+1)) // step + 1", true},
  {P::pad, "pad", "pad l r border : [n]A -> [l+n+r]A", "elements before and after: a value, clamp, mirror, wrap, or open (unspecified)", true},
  {P::slice, "slice", "slice start count step : [n]A -> [count]A", "elements start, start+step, ...; step may be negative", true},
  {P::tile, "tile", "tile k : [n]A -> [ceil(n/k)][k]A", "rows of k, the last shifted inwards so that it ends at the end; k <= n", true},
  {P::untile, "untile", "untile n : [ceil(n/k)][k]A -> [n]A", "undoes tile; overlapping rows agree", true},
  {P::concat, "concat", "[n]A, [m]A, ... -> [n+m+...]A", "one after the other", true},
  {P::repeat, "repeat", "repeat n : A -> [n]A", "the same element n times", true},
  {P::index, "index", "I, [n]A -> A", "the element at a computed position, which has to lie in 0..n-1", true},
  {P::scatter, "scatter", "[m]I, [m]A, [n]A -> [n]A", "the third array with updates at positions in order; the last one wins; positions outside are dropped", false},
  {P::materialise, "materialise", "materialise memory : T -> T", "computed once where it is bound and kept in global, local or private memory", false},
});

using F = Function;
constexpr auto same = ResultKind::same;
constexpr auto boolean = ResultKind::boolean;
constexpr std::nullopt_t none = std::nullopt;
//                                    symbol a  result  flt   int   bool  assoc exact comm  neutral ulp
constexpr auto functions = std::to_array<FunctionRow>({
  {F::add, "add",                       "+",  2, same,    true,  true,  false, true,  false, true,  0.0,  0, "sum; integers wrap"},
  {F::subtract, "subtract",             "-",  2, same,    true,  true,  false, false, false, false, none, 0, "difference; integers wrap"},
  {F::multiply, "multiply",             "*",  2, same,    true,  true,  false, true,  false, true,  1.0,  0, "product; integers wrap"},
  {F::divide, "divide",                 "/",  2, same,    true,  true,  false, false, false, false, none, 3, "quotient; integers truncate towards zero, x/0 is 0"},
  {F::modulo, "modulo",                 "%",  2, same,    true,  true,  false, false, false, false, none, 0, "remainder with the sign of the divisor; x%0 is 0 on integers"},
  {F::remainder, "remainder",           "",   2, same,    true,  true,  false, false, false, false, none, 0, "remainder with the sign of the dividend (C fmod); remainder(x,0) is 0 on integers"},
  {F::minimum, "min",                   "",   2, same,    true,  true,  false, true,  true,  true,  infinity,  0, "smaller one; NaN if either is"},
  {F::maximum, "max",                   "",   2, same,    true,  true,  false, true,  true,  true,  -infinity, 0, "larger one; NaN if either is"},
  {F::power, "pow",                     "",   2, same,    true,  true,  false, false, false, false, none, 16, "a to the b; integers by multiplication, negative exponents truncate"},
  {F::fma, "fma",                       "",   3, same,    true,  false, false, false, false, false, none, 0, "a*b+c rounded once"},
  {F::negate, "negate",                 "-",  1, same,    true,  true,  false, false, false, false, none, 0, "minus x"},
  {F::absolute, "abs",                  "",   1, same,    true,  true,  false, false, false, false, none, 0, "magnitude"},
  {F::sign, "sign",                     "",   1, same,    true,  true,  false, false, false, false, none, 0, "-1, 0 or 1; NaN stays"},
  {F::floor, "floor",                   "",   1, same,    true,  false, false, false, false, false, none, 0, "towards minus infinity"},
  {F::ceiling, "ceil",                  "",   1, same,    true,  false, false, false, false, false, none, 0, "towards plus infinity"},
  {F::round, "round",                   "",   1, same,    true,  false, false, false, false, false, none, 0, "to the nearest, half to even"},
  {F::truncate, "trunc",                "",   1, same,    true,  false, false, false, false, false, none, 0, "towards zero"},
  {F::sqrt, "sqrt",                     "",   1, same,    true,  false, false, false, false, false, none, 3, "square root; NaN below zero"},
  {F::exp, "exp",                       "",   1, same,    true,  false, false, false, false, false, none, 3, "e to the x"},
  {F::log, "log",                       "",   1, same,    true,  false, false, false, false, false, none, 3, "natural logarithm"},
  {F::sin, "sin",                       "",   1, same,    true,  false, false, false, false, false, none, 4, "sine"},
  {F::cos, "cos",                       "",   1, same,    true,  false, false, false, false, false, none, 4, "cosine"},
  {F::tan, "tan",                       "",   1, same,    true,  false, false, false, false, false, none, 5, "tangent"},
  {F::asin, "asin",                     "",   1, same,    true,  false, false, false, false, false, none, 4, "inverse sine"},
  {F::acos, "acos",                     "",   1, same,    true,  false, false, false, false, false, none, 4, "inverse cosine"},
  {F::atan, "atan",                     "",   1, same,    true,  false, false, false, false, false, none, 5, "inverse tangent"},
  {F::sinh, "sinh",                     "",   1, same,    true,  false, false, false, false, false, none, 4, "hyperbolic sine"},
  {F::cosh, "cosh",                     "",   1, same,    true,  false, false, false, false, false, none, 4, "hyperbolic cosine"},
  {F::tanh, "tanh",                     "",   1, same,    true,  false, false, false, false, false, none, 5, "hyperbolic tangent"},
  {F::asinh, "asinh",                   "",   1, same,    true,  false, false, false, false, false, none, 4, "inverse hyperbolic sine"},
  {F::acosh, "acosh",                   "",   1, same,    true,  false, false, false, false, false, none, 4, "inverse hyperbolic cosine"},
  {F::atanh, "atanh",                   "",   1, same,    true,  false, false, false, false, false, none, 5, "inverse hyperbolic tangent"},
  {F::erf, "erf",                       "",   1, same,    true,  false, false, false, false, false, none, 16, "error function"},
  {F::equal, "equal",                   "==", 2, boolean, true,  true,  true,  false, false, true,  none, 0, "NaN equals nothing"},
  {F::not_equal, "not_equal",           "!=", 2, boolean, true,  true,  true,  false, false, true,  none, 0, "NaN differs from everything"},
  {F::less, "less",                     "<",  2, boolean, true,  true,  false, false, false, false, none, 0, "false with NaN"},
  {F::less_equal, "less_equal",         "<=", 2, boolean, true,  true,  false, false, false, false, none, 0, "false with NaN"},
  {F::greater, "greater",               ">",  2, boolean, true,  true,  false, false, false, false, none, 0, "false with NaN"},
  {F::greater_equal, "greater_equal",   ">=", 2, boolean, true,  true,  false, false, false, false, none, 0, "false with NaN"},
  {F::logical_and, "and",               "&",  2, same,    false, true,  true,  true,  true,  true,  none, 0, "bitwise on integers"},
  {F::logical_or, "or",                 "|",  2, same,    false, true,  true,  true,  true,  true,  0.0,  0, "bitwise on integers"},
  {F::logical_xor, "xor",               "^",  2, same,    false, true,  true,  true,  true,  true,  0.0,  0, "bitwise on integers"},
  {F::logical_not, "not",               "!",  1, same,    false, true,  true,  false, false, false, none, 0, "bitwise on integers"},
  {F::shift_left, "shift_left",         "<<", 2, same,    false, true,  false, false, false, false, none, 0, "0 when shifted by the width or more"},
  {F::shift_right, "shift_right",       ">>", 2, same,    false, true,  false, false, false, false, none, 0, "arithmetic on signed types; 0 or -1 when shifted by the width or more"},
  {F::is_nan, "is_nan",                 "",   1, boolean, true,  false, false, false, false, false, none, 0, "is it NaN"},
  {F::is_infinite, "is_infinite",       "",   1, boolean, true,  false, false, false, false, false, none, 0, "true for plus and minus infinity"},
});
// clang-format on

}  // namespace

std::span<const PatternRow> pattern_table() { return patterns; }
std::span<const FunctionRow> function_table() { return functions; }

const PatternRow& row(Pattern pattern) {
  const PatternRow& r = patterns[static_cast<size_t>(pattern)];
  HOIST_CHECK(r.pattern == pattern, "the table of patterns is out of order");
  return r;
}

const FunctionRow& row(Function function) {
  const FunctionRow& r = functions[static_cast<size_t>(function)];
  HOIST_CHECK(r.function == function, "the table of functions is out of order");
  return r;
}

std::optional<Function> function_named(std::string_view name) {
  for (const FunctionRow& r : functions) {
    if (r.name == name) return r.function;
  }
  return std::nullopt;
}

std::string_view name_of(Mode mode) {
  constexpr std::string_view names[] = {"view", "seq", "unroll", "vec", "global", "group", "local", "matrix"};
  return names[static_cast<size_t>(mode)];
}

std::string_view name_of(Memory memory) {
  constexpr std::string_view names[] = {"global", "local", "private"};
  return names[static_cast<size_t>(memory)];
}

std::string_view name_of(Border border) {
  constexpr std::string_view names[] = {"value", "clamp", "mirror", "wrap", "undefined"};
  return names[static_cast<size_t>(border)];
}

}  // namespace hoist
