// The compiled form of a term. Stages, in execution order, compute the result and all intermediate values; each fills
// one or more buffers completely. Programs do a stage's work: scalar code over columns of adjacent positions, with
// loops for folds whose accumulators are columns too. Only for the files of evaluate.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <vector>

#include "ir/evaluate/evaluate_index.h"
#include "ir/evaluate/scalar_math.h"
#include "ir/language/expression.h"
#include "ir/language/pattern.h"

namespace hoist {

/// A scalar of a stage as a function of its variables; interned, operands before users.
struct Value {
  enum Kind : uint8_t { literal, load, position, operation, conversion, selection, within, accumulator, result } kind;
  Scalar scalar = Scalar::f32;
  Function function = Function::add;
  Scalar from = Scalar::f32;   ///< source type of a conversion
  bool same_bits = false;      ///< a conversion that reinterprets
  int a = -1, b = -1, c = -1;  ///< operands; of a load: the buffer; of an accumulator or result: the loop and its slot
  IndexId index = -1;          ///< index of a load, a position or `within`
  uint64_t low = 0, high = 0;  ///< bounds of within; `low` is a literal's word
  int scope = 0;

  bool operator==(const Value&) const = default;
};

/// A fold inside a program. Each slot is a scalar of the accumulator that has a use.
struct Loop {
  struct Slot {
    int initial, body;
    Scalar scalar;
  };
  int scope = 0;
  int64_t count = 0;
  IndexId variable = -1;
  std::vector<Slot> slots;
};

/// Dense elements in column storage. `data` is set before any stage that reads it runs.
struct Buffer {
  Scalar scalar = Scalar::f32;
  int64_t count = 0;
  const std::byte* data = nullptr;
  std::unique_ptr<std::byte[]> own;

  size_t bytes() const { return static_cast<size_t>(count * column_bytes(scalar)); }
  /// Allocates uninitialised memory.
  std::byte* allocate() {
    own = std::make_unique_for_overwrite<std::byte[]>(bytes());
    data = own.get();
    return own.get();
  }
};

struct Instruction {
  enum Kind : uint8_t {
    sum,
    quotient,
    modulus,
    clamped,
    mirrored,
    computed,  // the instructions below compute positions
    literal,
    load,
    position,
    operation,
    conversion,
    selection,
    within,
    loop,  // the instructions below compute columns
  } kind = sum;
  Scalar scalar = Scalar::f32;
  int out = -1;                ///< a position register or a column
  int a = -1, b = -1, c = -1;  ///< operand registers; of a load: the buffer
  int index = -1;              ///< position register
  int64_t low = 0, high = 0;   ///< constants of the kind; of a computed position, `low` is the number of elements
  ColumnOperation operate = nullptr;
  ColumnConversion convert = nullptr;
  std::vector<std::pair<int, int64_t>> terms;  ///< terms of a sum
};

struct ProgramLoop {
  struct Slot {
    int initial, accumulator, body;
    bool may_swap;  ///< the body's column has no other use
    int bytes;
  };
  int64_t count = 0;
  int variable = -1;
  int list = 0;
  size_t first_spare = 0;  ///< among the spare columns of all loops
  std::vector<Slot> slots;
};

struct CompiledTerm {
  std::vector<int64_t> extents;                 ///< extents of its positions, outermost first
  std::vector<int> variables;                   ///< their position registers, -1 if unused
  std::vector<std::pair<AtomId, int>> uniform;  ///< variables that the stage sets, with their registers
  std::vector<std::vector<Instruction>> lists;  ///< 0: once; 1: per block of positions; others: loop bodies
  std::vector<ProgramLoop> loops;
  int position_registers = 0, columns = 0;
  int root = -1;
  Scalar scalar = Scalar::f32;
  int64_t count = 1;  ///< product of the extents
  double work = 1;    ///< instructions per position, loops unrolled
};

struct Stage {
  enum Kind : uint8_t { plain, serial, scatter, host } kind = plain;
  /// Plain: one. serial: initial states, then steps. scatter: positions, updates, bases. host: arrays.
  std::vector<CompiledTerm> programs;
  std::vector<int> buffers;    ///< its results; serial and scatter: one per scalar of the state or element
  std::vector<int> states;     ///< serial: buffers that the steps read
  std::vector<int64_t> outer;  ///< serial, scatter: extents of the enclosing variables
  std::vector<IndexId> outer_variables;
  IndexId step = -1;
  int64_t steps = 0;
  bool keeps_all = false;  ///< scan
  int64_t base_count = 0;  ///< scatter: elements of the base
  Expr called = nullptr;   ///< host: the call
};

struct Compiled {
  Indices indices;
  std::vector<Value> values;
  std::vector<Loop> loops;
  std::vector<Buffer> buffers;
  std::vector<Stage> stages;
};

/// The dependencies of values: themselves, their operands, their loops, and the variables that are dimensions or steps.
struct Reach {
  std::vector<int> values;  ///< ascending
  std::set<AtomId> variables;
};
Reach reach_of(const Compiled& compiled, const std::vector<int>& roots);

/// The program that computes `root` at positions with these variables.
CompiledTerm emit(const Compiled& compiled, int root, const std::vector<int64_t>& extents,
                  const std::vector<IndexId>& variables);

/// Runs all stages. Returns false if a computed position is outside its array; the element may be unused, so the caller
/// falls back to the interpreter.
bool run(Compiled& compiled);

}  // namespace hoist
