// The interpreter of one term; its entry points are interpret.cpp. One function, `at`, computes the scalar of a term at
// a path: the indices and tuple components, outermost first, that lead through the term's type to the scalar. A view
// changes the path, a map binds a variable to one element, and the value of a variable is computed from its term in the
// environment of its binding. Only accumulators, computed elements of let-bound and materialised values, and the last
// updates of a scatter are stored.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/evaluate/evaluate.h"
#include "ir/evaluate/interpreter/interpret_layout.h"

namespace hoist::interpretation {

/// Known scalars of a value. A fold, scan, iterate or scatter fills `words`; a let or materialise fills pages on
/// demand.
struct Memo {
  static constexpr int64_t page_size = 512;
  struct Page {
    uint64_t words[page_size];
    bool known[page_size] = {};
  };
  std::vector<uint64_t> words;
  std::vector<std::unique_ptr<Page>> pages;
  bool complete = false;
};

/// The scalars of a map's element: a body may use them often, and each use may evaluate a further map.
struct ElementMemo {
  static constexpr int64_t capacity = 4;
  uint64_t words[capacity] = {};
  bool known[capacity] = {};

  static bool holds(Type type) {
    if (type->is_scalar()) return true;
    return type->is_tuple() && type->parts.size() <= static_cast<size_t>(capacity) &&
           std::all_of(type->parts.begin(), type->parts.end(), [](Type part) { return part->is_scalar(); });
  }
};

struct Frame {
  const Frame* outer = nullptr;  ///< the next enclosing variable
  const Frame* env = nullptr;    ///< the environment of `value`
  Expr value = nullptr;
  int64_t position = -1;             ///< the variable is this element of the value; -1: the whole value
  const uint64_t* forced = nullptr;  ///< the scalars of an accumulator, instead of a value
  uint64_t version = 0;              ///< distinguishes accumulators
  std::shared_ptr<Memo> memo;
  ElementMemo* element = nullptr;
};

/// The source of parameter values, of which exactly one is set, and the observer if there is one.
struct Parameters {
  const Bindings* bindings = nullptr;
  const ElementSource* elements = nullptr;
  const OperationObserver* observer = nullptr;
};

class Interpreter {
 public:
  Interpreter(const Parameters& parameters, size_t stack) : parameters_(parameters), stack_(stack) {
    char here;
    base_ = reinterpret_cast<uintptr_t>(&here);
  }

  /// Computes elements at flat positions of the result.
  void run(Expr e, const std::vector<int64_t>& positions, Tensor& out);

  bool too_deep() const { return too_deep_; }
  const std::vector<Diagnostic>& faults() const { return faults_; }

 private:
  bool stopped() const { return too_deep_ || !faults_.empty(); }

  uint64_t fault(const Spec& e, const std::string& what, const std::string& hint = {});

  // interpreter.cpp: the scalar of a term at a path.
  uint64_t at(Expr e, const Frame* env, const Cell* path);
  uint64_t looked_up(Expr e, const Frame* env, const Cell* path);
  uint64_t viewed(Expr e, const Frame* env, const Cell* path);
  uint64_t variable(const Frame& frame, Type type, const Cell* path);
  uint64_t element_of_parameter(Expr e, const Cell* path);
  static int64_t position_of(Type type, const Cell* path);
  static uint64_t element_of(const Tensor& tensor, Type type, const Cell* path);
  uint64_t transposed(Expr e, const Frame* env, const Cell* path);
  uint64_t padded(Expr e, const Frame* env, const Cell* path);

  static int64_t extent_of(Type type) { return type->size.value(); }
  static int64_t extent(Expr array) { return extent_of(array->type); }

  // memoised_values.cpp
  // A memoisation key: a value and the elements that its environment's variables denote, innermost first.
  struct Place {
    Expr value;
    int64_t position;
    uint64_t version;
    bool operator==(const Place&) const = default;
  };
  struct Entry {
    std::vector<Place> surroundings;
    std::shared_ptr<Memo> memo;

    bool is_for(const Frame* env) const {
      size_t i = 0;
      for (; env != nullptr; env = env->outer, ++i) {
        if (i >= surroundings.size() || surroundings[i] != Place{env->value, env->position, env->version}) return false;
      }
      return i == surroundings.size();
    }
  };
  // The most recent environments in which a term was evaluated: enough for adjacent tiles of a result computed row by
  // row.
  struct Slot {
    static constexpr size_t capacity = 64;
    std::vector<Entry> entries;
    size_t recent = 0;
  };

  std::shared_ptr<Memo> memo_of(Expr e, const Frame* env);
  uint64_t remembered(Memo& memo, Expr value, const Frame* env, const Cell* path);
  uint64_t materialised(Expr e, const Frame* env, const Cell* path);
  uint64_t let(Expr e, const Frame* env, const Cell* path);
  bool worth_remembering(Expr value);
  bool computes(Expr e);
  void find_shared(Expr root);

  // accumulators.cpp
  bool force(Expr e, const Frame* env, std::vector<uint64_t>& words, std::vector<Cell>& cells);
  bool fits(Expr e, int64_t states, const Layout* state);
  bool advance(Expr e, const Frame* env, int64_t step, const std::vector<uint64_t>& before,
               std::vector<uint64_t>& after, std::vector<Cell>& cells);
  uint64_t folded(Expr e, const Frame* env, const Cell* path);
  uint64_t scanned(Expr e, const Frame* env, const Cell* path);
  uint64_t called_on_host(Expr e, const Frame* env, const Cell* path);
  uint64_t scattered(Expr e, const Frame* env, const Cell* path);

  const Parameters parameters_;
  size_t stack_;        // limit of the recursion in bytes
  uintptr_t base_ = 0;  // stack address at its beginning
  bool too_deep_ = false;
  uint64_t versions_ = 0;
  std::vector<Diagnostic> faults_;
  std::unordered_map<Expr, const Tensor*> tensors_;
  std::unordered_map<Expr, Slot> slots_;
  std::unordered_map<Expr, bool> computes_;
  std::unordered_set<Expr> shared_;
  Layouts layouts_;
};

}  // namespace hoist::interpretation
