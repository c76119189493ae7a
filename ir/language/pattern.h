// The two vocabularies of the language, one table each: patterns (what is done with arrays) and scalar functions (what
// is done with numbers). A row is what the program lists, what the parser knows and what the tests go through. Adding a
// pattern means a row here, its type in make() (expression.cpp), its meaning in the interpreter and its views in the
// Halide layer.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "ir/language/scalar.h"

namespace hoist {

enum class Pattern : uint8_t {
  // leaves
  parameter,
  bound,
  literal,
  constant,
  iota,
  meta,
  // scalars and structure
  function,
  call,
  select,
  cast,
  reinterpret,
  let,
  tuple,
  get,
  identity,
  operator_call,
  host,
  // data parallel
  map,
  reduce,
  fold,
  scan,
  iterate,
  // views: they move no data
  zip,
  split,
  join,
  transpose,
  slide,
  pad,
  slice,
  tile,
  untile,
  concat,
  repeat,
  index,
  // memory
  scatter,
  materialise,
};

struct PatternRow {
  Pattern pattern;
  std::string_view name;     ///< as the language writes it
  std::string_view scheme;   ///< its type scheme, for people
  std::string_view meaning;  ///< one line
  bool is_view;              ///< moves no data: it rewrites indices
};
std::span<const PatternRow> pattern_table();
const PatternRow& row(Pattern pattern);
/// Does a node of this pattern say its result type itself, beside its argument?
constexpr bool is_conversion(Pattern p) { return p == Pattern::cast || p == Pattern::reinterpret; }

/// How a map or fold runs. `view` computes nothing by itself: the map is a function of the index. `matrix` is what an
/// instruction for products of small matrices does: a map over their rows, a fold over the words that one product adds.
enum class Mode : uint8_t { view, seq, unroll, vec, global, group, local, matrix };
std::string_view name_of(Mode mode);
/// Where a materialised array lives.
enum class Memory : uint8_t { global, local, private_ };
std::string_view name_of(Memory memory);
/// What pad puts outside: a value, the nearest element, the mirror image (edge not repeated), the other end, or nothing
/// in particular (`undefined`: nobody may depend on those elements; as the result of a kernel they are not written).
enum class Border : uint8_t { value, clamp, mirror, wrap, undefined };
std::string_view name_of(Border border);

enum class Function : uint8_t {
  add,
  subtract,
  multiply,
  divide,
  modulo,
  remainder,
  minimum,
  maximum,
  power,
  fma,
  negate,
  absolute,
  sign,
  floor,
  ceiling,
  round,
  truncate,
  sqrt,
  exp,
  log,
  sin,
  cos,
  tan,
  asin,
  acos,
  atan,
  sinh,
  cosh,
  tanh,
  asinh,
  acosh,
  atanh,
  erf,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  logical_and,
  logical_or,
  logical_xor,
  logical_not,
  shift_left,
  shift_right,
  is_nan,
  is_infinite,
};

/// What an operation's result type is: that of its (equal) arguments, or bool.
enum class ResultKind : uint8_t { same, boolean };

struct FunctionRow {
  Function function;
  std::string_view name;    ///< "add"; call syntax is name(a, b)
  std::string_view symbol;  ///< infix or prefix operator, "" where there is none
  int arity;
  ResultKind result;
  bool on_float, on_integer, on_boolean;  ///< the element types that it takes
  bool associative;                       ///< in real arithmetic
  bool exactly_associative_on_float;      ///< also bit for bit on floats (integers always are where associative)
  bool commutative;
  std::optional<double> neutral;  ///< infinities stand for the type's largest and smallest value
  int ulp;                        ///< OpenCL full-profile bound on f32; 0 is correctly rounded or exact
  std::string_view meaning;       ///< NaN and overflow behaviour included
};
std::span<const FunctionRow> function_table();
const FunctionRow& row(Function function);
std::optional<Function> function_named(std::string_view name);

}  // namespace hoist
