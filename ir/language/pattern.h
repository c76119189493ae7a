// The two vocabularies of the language, one table each: patterns (operations on arrays) and scalar functions
// (operations on scalars). The program's listings, the parser and the tests read these rows. A new pattern needs a row
// here, its type in make() (expression.cpp), its meaning in the interpreter and its views in the Halide layer.
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
  std::string_view name;     ///< name in the language
  std::string_view scheme;   ///< its type scheme, for readers
  std::string_view meaning;  ///< one line
  bool is_view;              ///< moves no data: it rewrites indices
};
std::span<const PatternRow> pattern_table();
const PatternRow& row(Pattern pattern);
/// True if nodes of this pattern state their result type explicitly, in addition to their argument.
constexpr bool is_conversion(Pattern p) { return p == Pattern::cast || p == Pattern::reinterpret; }

/// The execution mode of a map or fold. `view` computes nothing: the map is a function of the index. `matrix` maps to a
/// matrix instruction: a map over the rows of its operands, a fold over the words that one product sums.
enum class Mode : uint8_t { view, seq, unroll, vec, global, group, local, matrix };
std::string_view name_of(Mode mode);
/// The memory that holds a materialised array.
enum class Memory : uint8_t { global, local, private_ };
std::string_view name_of(Memory memory);
/// The elements that pad adds: a value, the nearest element, the mirror image (edge not repeated), the other end, or
/// undefined values (`undefined`: no result may depend on these elements; in the result of a kernel they are not
/// written).
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

/// The result type of an operation: the type of its (equal) arguments, or bool.
enum class ResultKind : uint8_t { same, boolean };

struct FunctionRow {
  Function function;
  std::string_view name;    ///< "add"; calls are written name(a, b)
  std::string_view symbol;  ///< infix or prefix operator, or ""
  int arity;
  ResultKind result;
  bool on_float, on_integer, on_boolean;  ///< the supported element types
  bool associative;                       ///< in real arithmetic
  bool exactly_associative_on_float;      ///< associative also bit for bit on floats (integer operations are exact if
                                          ///< associative)
  bool commutative;
  std::optional<double> neutral;  ///< an infinity denotes the type's largest or smallest value
  int ulp;                        ///< OpenCL full-profile bound on f32; 0 is correctly rounded or exact
  std::string_view meaning;       ///< NaN and overflow behaviour included
};
std::span<const FunctionRow> function_table();
const FunctionRow& row(Function function);
std::optional<Function> function_named(std::string_view name);

}  // namespace hoist
