// How a term becomes one Halide Func with its helpers; see tools/pages/reference/kernels.md. Only files of this folder
// include this header, because it includes Halide.h. A term that has no form here ends in Unsupported, which emit()
// turns into a Diagnostic.
#pragma once

#include <Halide.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "backends/halide/emit.h"
#include "backends/halide/native/native_target.h"
#include "ir/language/size_operations.h"
#include "ir/properties/properties.h"

namespace hoist::emission {

namespace H = Halide;

/// Thrown inside this folder only: evaluation runs through many closures, which a Result cannot cross.
struct Unsupported {
  Diagnostic diagnostic;
};
[[noreturn]] void unsupported(const std::string& what, const std::string& hint = {});

/// Sizes and indices are 32 bits wide in Halide. The names in a size are arguments of the kernel (size_argument).
H::Expr number(const Nat& n);
/// Halide's name of the argument that holds a size's value.
std::string size_argument(const std::string& name);
/// The number of elements of an array.
Nat elements_of(const std::vector<Nat>& shape);
/// The constant. Unsupported: a size with names, where the kernel's form depends on the number.
int64_t known_at_compile_time(const Nat& n);

// ---- Symbolic values -----------------------------------------------------------------------------------------------

struct Value;

/// An array as a function of the index. Arrays hold the arrays that they are made of, often one several times, so
/// copies share the function: a separate copy would cost time proportional to the term as a tree instead of as a graph.
class Elements {
 public:
  Elements(std::nullptr_t = nullptr) {}
  Elements(std::function<Value(H::Expr)> element);
  Value operator()(const H::Expr& index) const;
  explicit operator bool() const { return element_ != nullptr; }

 private:
  std::shared_ptr<const std::function<Value(H::Expr)>> element_;
};

/// A value with a variable per loop: a scalar, an array or a tuple.
struct Value {
  H::Expr scalar;
  Elements at;
  std::vector<Value> parts;
};

/// Values of the bound variables, innermost first.
struct Frame {
  Value value;
  std::shared_ptr<const Frame> outer;
};
using Environment = std::shared_ptr<const Frame>;
Environment extend(const Environment& outer, Value value);
const Value& lookup(const Environment& environment, int64_t position);

/// An array of `rank` dimensions from its elements.
Value indexed(size_t rank, const std::function<Value(const std::vector<H::Expr>&)>& element);
Value select_value(const H::Expr& condition, const Value& a, const Value& b, bool rarely = false);

// ---- Scalars (scalars.cpp) -----------------------------------------------------------------------------------------

H::Expr selected(const H::Expr& condition, const H::Expr& a, const H::Expr& b);  ///< for scalars of one type
H::Type stored_type(Scalar scalar);                                              ///< the type in arrays of the plan
H::Expr from_private(Scalar scalar, const H::Expr& kept);
H::Expr to_private(Scalar scalar, const H::Expr& value);

/// The representation of values inside a kernel. Short floats (f16, bf16, float8) are f32 values that the type can
/// hold, rounded after each operation; bool is Halide's one-bit type. With `half`, f16 values are their bits: native
/// operations take and return bits, all other operations go through f32.
struct Scalars {
  bool half = false;

  H::Type value_type(Scalar scalar) const;
  H::Expr from_stored(Scalar scalar, const H::Expr& stored) const;
  H::Expr to_stored(Scalar scalar, const H::Expr& value) const;
  H::Expr literal_value(Scalar scalar, uint64_t bits) const;
  H::Expr call_value(Function function, Scalar scalar, const std::vector<H::Expr>& arguments) const;
  H::Expr cast_value(Scalar from, Scalar to, const H::Expr& value) const;
  H::Expr reinterpret_value(Scalar from, Scalar to, const H::Expr& value) const;

 private:
  bool is_bits(Scalar scalar) const { return half && scalar == Scalar::f16; }
};
/// Names of native operations on halves begin with it. A kernel that calls some has `half_opening` before it: the
/// opening of a program's first such kernel enables the arithmetic, so programs without halves run on devices that lack
/// it.
inline constexpr const char* half_call = "hoist_half_";
inline constexpr const char* half_opening = R"(#ifndef HOIST_HAS_HALF
#define HOIST_HAS_HALF
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
HOIST_HALF_ARITHMETIC
#endif
)";
/// The names of the calls that the pass rewrites into the store of a result; see passes/store_at_index.cpp.
inline constexpr const char* store_marker = "hoist_store";
/// The element of the result at an index.
inline constexpr const char* old_marker = "hoist_old";
/// A selection whose first value is computed in a branch (passes/rare_branches.cpp): condition, value, usual value.
inline constexpr const char* rare_marker = "hoist_rarely";
/// The call that prefetches an array, whose printed name it is given, at a byte offset; a macro of the preamble.
inline constexpr const char* prefetch_marker = "hoist_prefetch";
/// Adjacent bytes or adjacent 16-bit values as a word.
inline constexpr const char* word_marker = "hoist_word";
/// For words x and y of two bf16 each and a sum: the sum plus the product of the first elements, or of the second ones.
inline constexpr const char* add_first_product = "hoist_add_first_product";
inline constexpr const char* add_second_product = "hoist_add_second_product";
/// A sum plus the sum of two others, which is rounded first.
inline constexpr const char* add_two_sums = "hoist_add_two_sums";

// ---- Nests ---------------------------------------------------------------------------------------------------------

struct Loop {
  H::Var variable;
  H::RVar reduction;
  bool is_reduction = false;
  Nat extent = 1;
  Mode mode = Mode::seq;
  int dimension = 0;
  std::string owner;  ///< name of the Func whose nest it belongs to

  std::string name() const { return is_reduction ? reduction.name() : variable.name(); }
  H::Expr expr() const { return is_reduction ? H::Expr(reduction) : H::Expr(variable); }
  /// True if the driver runs the loop: a loop over groups or work-items.
  bool is_launched() const { return mode == Mode::group || mode == Mode::local; }
  int64_t most() const { return upper_bound(extent); }
  bool spreads() const { return mode == Mode::unroll || mode == Mode::vec || mode == Mode::matrix; }
};

/// The place of an element as a function of the remaining indices; the innermost place has one index per dimension.
struct WriteView {
  std::function<WriteView(H::Expr)> at;
  std::vector<H::Expr> index;
};

/// The place that is the index itself: `so_far`, then `rank` further indices.
WriteView place_of_element(size_t rank, const std::vector<H::Expr>& so_far = {});

/// low <= expression < high has to hold for an element to be written.
struct Limit {
  H::Expr expression;
  Nat low, high;
};

/// The parts that a walk of a nest finds: loops, and at the bottom the values of one element and their places. The nest
/// of a scatter writes the initial elements; the updates that follow are a nest of their own.
struct Nest {
  H::Func func;
  std::vector<Loop> loops;  ///< outermost first
  std::vector<Limit> limits;
  std::vector<H::RVar> pending;  ///< reduction variables for the folds that pass an accumulator on, outermost first
  size_t merged = 0;             ///< how many of them were used
  size_t own_rank = 0;           ///< rank of the accumulator
  size_t own_offset = 0;         ///< dimensions of its Func that come before its own
  std::vector<H::Expr> index;
  std::vector<H::Expr> values;      ///< one per component
  H::Expr condition;                ///< condition of a write, besides the limits; undefined if there is none
  std::optional<Function> combine;  ///< combines the new value with the old element
  bool is_result = false;           ///< the nest writes the kernel's result, which may be a scatter
  size_t around = 0;                ///< number of loops around a scatter
  std::shared_ptr<Nest> updates;
};

/// The type of an array of scalars, of tuples of scalars, or of a tuple of arrays that agree in shape.
struct Layout {
  std::vector<Nat> shape;
  std::vector<Scalar> scalars;  ///< one per component
  bool tuple_outside = false;   ///< a tuple of arrays
};
Layout layout_of(Type type);

/// An array that a Func holds, and the place of its computation.
struct Stored {
  H::Func func;
  std::vector<Loop> enclosing;  ///< loops around its place, outermost first
  bool has_local_loops = false;
  bool is_local = false;                         ///< materialise local
  std::vector<Loop> loops;                       ///< its own nest, outermost first
  std::vector<Loop> spread;                      ///< unroll and vec loops around it that run inside
  std::vector<std::pair<H::Var, Nat>> own = {};  ///< its other dimensions, with their extents
  bool has_rows = false;                         ///< in local memory: rows that may be read by columns
};

/// The arrays that a kernel reads, by Halide's names.
struct InputArrays {
  std::set<std::string> all;
  std::set<std::string> cold;  ///< EmitOptions::cold
};

class Emitter {
 public:
  Emitter(Expr root, EmitOptions options);
  /// Defines and schedules everything; the result is ready to be compiled.
  H::Func build();

  const std::vector<H::Argument>& arguments() const { return arguments_; }
  const std::vector<std::string>& sizes() const { return options_.sizes; }
  const std::map<std::string, std::string>& argument_names() const { return argument_names_; }
  InputArrays input_arrays() const;
  std::string schedule() const;
  /// Names of the loops over groups in the lowered program, and their extents in the same order.
  const std::vector<std::string>& group_loops() const { return group_loops_; }
  const std::vector<Nat>& group_extents() const { return group_extents_; }
  /// The total steps of the group loops, and of those around the loop that threads divide: how often that loop runs
  /// (native code).
  Nat groups() const { return elements_of(group_extents_); }
  const Nat& outside_divided() const { return outside_divided_; }
  /// Which of OpenCL's dimensions that loop is; the innermost loop is the first.
  size_t divided_dimension() const { return divided_dimension_; }
  int worst_ulp() const { return worst_ulp_; }
  bool divides() const { return divides_; }
  bool has_dots() const { return has_dots_; }  ///< sums that a dot instruction adds to

 private:
  // read.cpp: read views
  Value read(Expr e, const Environment& env);
  Value read_now(Expr e, const Environment& env);
  Value read_view(Expr e, const Environment& env);
  /// Error that the function adds to the kernel's error.
  void note_accuracy(Function function, Scalar kind);
  /// Stands for an array without elements.
  Value nothing(Scalar kind, size_t rank);
  Value read_parameter(Expr e);
  /// Clamps the index to the array unless the loops' extents prove that it is inside.
  H::Expr safe_index(const H::Expr& index, const Nat& extent) const;
  /// An array, or a tuple of arrays, that is only read at safe indices.
  Value bounded(const Value& v, const std::vector<Nat>& shape);
  Value read_constant(Expr e);
  Value read_pad(Expr e, const Environment& env);
  Value read_concat(Expr e, const Environment& env);
  Value read_call(Expr e, const Environment& env);
  Value read_iterate(Expr e, const Environment& env);
  Value read_scatter(Expr e, const Environment& env);
  Value cached(std::function<Value(H::Expr)> at);
  Value apply(Expr function, const Environment& env, std::vector<Value> arguments);

  /// Loops around the current read while it lives; the outer reads are known again afterwards.
  class Inside {
   public:
    explicit Inside(Emitter& emitter) : emitter_(emitter), depth_(emitter.loops_.size()), context_(emitter.context_) {}
    ~Inside() {
      emitter_.loops_.resize(depth_);
      emitter_.context_ = context_;
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    void push(const Loop& loop) {
      emitter_.loops_.push_back(loop);
      emitter_.change_context();
    }

   private:
    Emitter& emitter_;
    size_t depth_;
    uint64_t context_;
  };
  void change_context() { context_ = ++contexts_; }

  // nest.cpp: write views and the walk
  void walk(Expr e, const WriteView& w, const Environment& env, Nest& nest);
  void copy(const Value& v, Type type, const WriteView& w, Nest& nest);
  WriteView turn(Expr layout, const WriteView& w, Nest& nest);
  WriteView turn_body(Expr body, const WriteView& w, Nest& nest);
  Loop open(const Nat& extent, Mode mode, int dimension, const Nest& nest);
  bool passes_on(const Value& initial, Type type, const WriteView& w, Nest& nest);
  void finish(Nest& nest, const Value& v, Type type, const WriteView& w);
  void walk_scatter(const ScatterForm& e, const WriteView& w, const Environment& env, Nest& nest);
  void walk_steps(Expr fold, const WriteView& w, const Environment& env, Nest& nest);
  void walk_scan(Expr scan, const WriteView& w, const Environment& env, Nest& nest);
  /// Writes the initial elements, then `count` updates in order: each is a step of the loop that `update` receives.
  void walk_updates(const std::function<void()>& first, const Nat& count, Nest& nest,
                    const std::function<void(const Loop& step, Nest& updates)>& update);
  /// Is every element of such an array written?
  static bool writes_all(Type type, const WriteView& w, Nest& nest);
  /// The element, at the current position of the view, of the array of this type that the kernel writes.
  Value held_value(Type type, const WriteView& w, Nest& nest) const;
  /// The element of the result at an index.
  H::Expr held(const H::Expr& flat) const;
  H::Expr flat_index(const std::vector<H::Expr>& index) const;

  // materialised_arrays.cpp: folds and materialised arrays as Funcs
  Value fold(Expr e, const Environment& env);
  Value fold_merging(Expr e, const Environment& env, size_t merge);
  Value scan(Expr e, const Environment& env);
  Value materialise(Expr e, const Environment& env);
  /// An array in local memory that is inside work-item loops and whose elements are computed by work-items of its own.
  Value shared_parts(Expr e, const Environment& env);
  /// local_tiles.cpp: one that all work-items fill.
  Value local_tile(Expr e, const Environment& env);
  struct Holder;
  /// Which of the loops around become dimensions that run inside: the register tile, or the work-items too.
  enum class Spread { nothing, registers, work_items };
  Holder hold(const std::string& name, const Layout& layout, Spread spread);
  void keep(const Holder& holder, const Nest& nest, bool is_local);

  // dot_products.cpp
  /// A fold in vec mode, which a dot instruction computes.
  Value dot(Expr e, const Environment& env);
  /// A sum and two folds of bf16 in vec mode that are added to it, which is an element of a matrix instruction's
  /// result.
  std::optional<Value> sums_of_pairs(Expr e, const Environment& env);

  // schedule.cpp
  H::Expr marked_store(const Nest& nest, const Layout& layout, const H::Expr& after) const;
  void write_scatter(const Nest& nest, const Layout& layout, const std::vector<Loop>& order, H::Func& result);
  void place_all(H::Func& result, const std::vector<Loop>& order);
  void note(int depth, const std::string& line);

  // divided_loop.cpp Of `groups`, outermost first; `written` is the index of the written element.
  size_t divided_loop(const H::Func& result, const std::vector<H::Expr>& written,
                      const std::vector<Loop>& groups) const;

  Expr root_;
  EmitOptions options_;
  const Scalars scalars_;
  std::vector<Loop> loops_;  ///< enclosing loops, outermost first
  std::vector<Stored> stored_;
  /// By a fold's Func: the number of its reductions outside of the work-items.
  std::map<std::string, size_t> tile_depth_;
  std::map<std::string, H::ImageParam> inputs_;
  std::map<std::string, int64_t> input_bytes_;  ///< bytes of inputs by Halide's name
  std::vector<H::Argument> arguments_;
  std::map<std::string, std::string> argument_names_;  ///< Halide's name -> parameter name
  std::vector<std::string> lines_;
  std::vector<std::string> group_loops_;
  std::vector<Nat> group_extents_;
  Nat outside_divided_ = 1;
  size_t divided_dimension_ = 0;
  int fresh_ = 0;
  int rare_ = 0;          ///< rare branches around the current read
  uint64_t context_ = 0;  ///< the number of the loops around the current read
  uint64_t contexts_ = 0;
  int worst_ulp_ = 0;     ///< largest ulp bound of all functions but division and square root
  bool divides_ = false;  ///< divides in f32, or in a type whose results are rounded from f32
  bool has_dots_ = false;
  bool reads_open_ = false;  ///< indices may lead outside, through an open border
  /// Values read inside each context: shared subterms are evaluated, and folds stored, once.
  std::map<std::tuple<uint64_t, Expr, const Frame*>, std::pair<Environment, Value>> memo_;
  bool merge_failed_ = false;  ///< true if an inner fold cannot pass on the accumulator
  size_t merge_reached_ = 0;
};

/// Does any of the values depend on the variable?
bool mention(const std::vector<H::Expr>& values, const std::string& variable);

/// The name of the ImageParam that the call reads. Halide reads it through a Func that is named after it. For other
/// calls the result is the name of no parameter.
std::string read_input(const H::Internal::Call& call);

/// Halide runs an update only once if no value depends on the step of the fold, so one value is made to depend on it.
std::vector<H::Expr> repeated(std::vector<H::Expr> values, const std::vector<H::RVar>& steps);

}  // namespace hoist::emission
