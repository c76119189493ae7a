// The compiler from terms to stages and programs, shared by its parts: evaluate_compile.cpp computes the scalar of a
// term at a path symbolically, evaluate_stages.cpp creates loops and stages. Internal to these two files.
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/base/hash.h"
#include "ir/evaluate/evaluate.h"
#include "ir/evaluate/evaluate_compile.h"
#include "ir/evaluate/evaluate_program.h"

namespace hoist::evaluation {

using Path = std::vector<IndexId>;  // indices and (constant) components, outermost first

// A bound variable. Frames are interned, so equal environments have equal ids.
struct Frame {
  enum Kind : uint8_t { element, whole, accumulators, state } kind;
  int outer, env;  // the next enclosing variable; the environment of `value`
  Expr value;      // the value of `element` and of `whole`
  IndexId index;   // of element
  int fold;        // of an accumulator: the open loop; of a state: the serial stage
  bool operator==(const Frame&) const = default;
};

// A memoisation key: the term, its environment, the enclosing loop, and the path of the scalar.
struct Place {
  Expr term;
  int env, scope;
  Path path;
  bool operator==(const Place&) const = default;
};

struct Hash {
  template <class... Parts>
  static size_t of(Parts... parts) {
    uint64_t h = 0;
    ((h = mixed(h, static_cast<uint64_t>(parts))), ...);
    return h;
  }
  size_t operator()(const Frame& f) const {
    return of(f.kind, f.outer, f.env, f.value == nullptr ? 0 : f.value->serial, f.index, f.fold);
  }
  size_t operator()(const Place& p) const {
    uint64_t h = of(p.term->serial, p.env, p.scope);
    for (IndexId i : p.path) h = mixed(h, static_cast<uint64_t>(i));
    return h;
  }
  size_t operator()(const Value& v) const {
    return of(v.kind, v.scalar, v.function, v.from, v.same_bits, v.a, v.b, v.c, v.index, v.low, v.high, v.scope);
  }
};

struct OpenLoop {
  std::vector<Path> paths;  // paths of the loop's slots
};

constexpr size_t most_slots = 64;
constexpr int64_t most_stage_elements = int64_t{1} << 28;
constexpr size_t most_values = size_t{1} << 21;
// Sums of sums of one row have exponentially many loops, whose costs no choice needs that exactly.
constexpr size_t most_formula_values = size_t{1} << 16;
constexpr size_t usual_stack = size_t{3} << 20;

/// One compilation: run() returns false if only the interpreter can compute the term.
class Compiler {
 public:
  Compiler(const Bindings& bindings, Compiled& out) : bindings_(bindings), out_(out), indices_(out.indices) {
    char here;
    base_ = reinterpret_cast<uintptr_t>(&here);
  }

  bool run(Expr e);

  /// Computes the formula of an element instead: there are no stages, and parameters have no values.
  static bool formula(Expr e, ElementFormula& out);

 private:
  // ---- Values ------------------------------------------------------------------------------------------------------

  int intern(Value v);
  const Value& at(int v) const { return out_.values[static_cast<size_t>(v)]; }

  int literal(Scalar scalar, uint64_t word);
  int load(int buffer, IndexId offset);
  int select(int condition, int a, int b);

  // The condition low <= index < high; nothing if it is constant.
  std::optional<int> within(IndexId index, int64_t low, int64_t high);
  int fail();

  // ---- Frames ------------------------------------------------------------------------------------------------------

  int bind(Frame frame);
  const Frame& frame(int f) const { return frames_[static_cast<size_t>(f)]; }
  // True if no accumulator is in scope: values in this environment can be computed in an earlier stage.
  bool is_clean(int f) const { return f < 0 || clean_[static_cast<size_t>(f)]; }

  // ---- The scalar of a term at a path ------------------------------------------------------------------------------

  int value(Expr e, int env, const Path& path);
  int compute(Expr e, int env, const Path& path);
  int viewed(Expr e, int env, const Path& path);
  static int64_t extent(Expr array) { return array->type->size.value(); }
  int64_t component(IndexId id) const { return indices_[id].constant; }

  int variable(Expr e, int env, const Path& path);

  // A bound value: computed by a stage if it is an array that is expensive to recompute, otherwise inlined.
  int kept(Expr e, int env, const Path& path);
  bool computes(Expr e);
  IndexId computed(int position, int64_t n);
  int padded(Expr e, int env, const Path& path);
  int concatenated(Expr e, int env, const Path& path);

  // ---- Buffers -----------------------------------------------------------------------------------------------------

  int add_buffer(Scalar scalar, int64_t count);
  int tensor_buffer(const Tensor& tensor);
  int parameter_buffer(Expr e);
  int constant_buffer(Expr e);
  int element_of(int buffer, Type type, const Path& path) { return load(buffer, offset(type, path)); }

  // Row-major offset of the indices of a path among the scalars with the same components.
  IndexId offset(Type type, const Path& path);

  // The scalars of a type without their array indices: (a, [4](b, c)) has three. Their extents and types.
  struct Leaf {
    Path components;  // -1 for an index
    std::vector<int64_t> extents;
    Scalar scalar;
  };
  static std::vector<Leaf> leaves(Type type);
  static size_t leaf_count(Type type);
  std::pair<size_t, Scalar> leaf_of_path(Type type, const Path& path) const;
  // A path to the leaf with fresh variables as its indices, which are appended to `variables`.
  Path fresh_path(const Leaf& leaf, std::vector<IndexId>& variables);

  // ---- Folds as loops ----------------------------------------------------------------------------------------------

  static bool has_elements(Expr fold) { return fold->pattern != Pattern::iterate; }
  static int64_t steps_of(Expr fold) { return has_elements(fold) ? extent(fold->children[2]) : fold->sizes[0].value(); }

  int folded(Expr e, int env, const Path& path);

  // An inline loop; fails if the accumulator's elements mix. No scalar is added to the loop after this function
  // returns: another scalar of the same fold gets a loop of its own, since it may depend on the result of the first
  // loop.
  int looped(Expr e, int env, const Path& path);
  size_t slot_of(int loop, const Path& path, Scalar scalar);
  int accumulator(int loop, Scalar scalar, const Path& path);

  // ---- Stages ------------------------------------------------------------------------------------------------------

  // The same environment, with every map's element at a new variable that ranges over the whole array.
  struct Domain {
    IndexId variable, index;  // the map's own position in the requesting environment
    int64_t extent;
  };
  int widened(int f, std::vector<Domain>& domains, std::map<int, int>& done);

  // A stage's buffer: its leading dimensions are those domains' variables.
  struct Kept {
    bool usable = false;
    int buffer = -1;
    std::vector<IndexId> variables;
  };

  // The scalar from a stage that computes all of `e`; nothing if the stage would cost more than it saves.
  std::optional<int> staged(Expr e, int env, const Path& path);
  int staged_or_fail(Expr e, int env, const Path& path);

  // Adds the stage that computes `e` in the widened environment and records it in kept_, or records that it does not
  // pay off.
  void make_stage(Expr e, int env, const std::vector<Domain>& domains, size_t leaf);
  bool make_plain_stage(Expr e, int env, const std::vector<Domain>& domains, size_t leaf_number, bool is_loop,
                        double plain, double evaluations);
  int add_plain_stage(int root, const std::vector<int64_t>& extents, const std::vector<IndexId>& variables);

  // A fold, scan or iterate that stores its whole state; each step computes the state from the previous one.
  void make_serial_stage(Expr e, int env, const std::vector<Domain>& domains);
  void make_host_stage(Expr e, int env, const std::vector<Domain>& domains);
  void make_scatter_stage(Expr e, int env, const std::vector<Domain>& domains);

  // The programs, buffers and kept_ entries of a stage that computes all scalars of its value together.
  void finish(Stage stage, Expr e, int env, const std::vector<Domain>& domains, const std::vector<Leaf>& all,
              const std::vector<int>& roots, const std::vector<std::vector<IndexId>>& variables,
              const std::vector<const Leaf*>& shapes);
  static int64_t product(const std::vector<int64_t>& extents);

  // The domains whose variables a root depends on.
  std::vector<Domain> used_domains(const std::vector<Domain>& domains, const std::vector<int>& roots) const;

  const Bindings& bindings_;
  std::map<int, ElementFormula::Read>* reads_ = nullptr;  // reads of a formula
  Compiled& out_;
  Indices& indices_;
  uintptr_t base_ = 0;
  bool failed_ = false;
  int scope_ = 0;           // scope of the innermost loop being compiled
  double evaluations_ = 1;  // number of evaluations of the current value
  double plain_ = 1;        // the same without the iterations of loops
  std::unordered_map<Value, int, Hash> value_ids_;
  std::vector<Frame> frames_;
  std::vector<bool> clean_;
  std::unordered_map<Frame, int, Hash> frame_ids_;
  std::unordered_map<Place, int, Hash> memo_;
  std::unordered_map<Expr, int> tensors_;
  std::unordered_map<Expr, bool> computes_;
  std::vector<OpenLoop> open_;  // by loop
  std::map<std::tuple<Expr, int, int>, std::vector<int>> loop_ids_;
  std::vector<Stage> serial_;
  std::map<std::tuple<int, int, Expr>, IndexId> domain_variables_;
  std::map<std::tuple<Expr, int, size_t>, Kept> kept_;
};

}  // namespace hoist::evaluation
