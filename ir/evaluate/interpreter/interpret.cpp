// The semantics. One function, `at`, computes the scalar of a term at a path: the indices and tuple components,
// outermost first, that lead through the term's type to the scalar. A view changes the path, a map binds a variable to
// one element, and the value of a variable is computed from its term in the environment of its binding. Only
// accumulators, computed elements of let-bound and materialised values, and the last updates of a scatter are stored.
#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "ir/base/cancellation.h"
#include "ir/base/seeded.h"
#include "ir/evaluate/evaluate.h"
#include "ir/evaluate/interpreter/host_call.h"
#include "ir/evaluate/interpreter/interpret_check.h"
#include "ir/evaluate/interpreter/interpret_layout.h"
#include "ir/evaluate/scalar_math.h"
#include "ir/operators/operators.h"

namespace hoist {
namespace {

using interpretation::Cell;
using interpretation::Layout;

// Known scalars of a value. A fold, scan, iterate or scatter fills `words`; a let or materialise fills pages on demand.
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

// The scalars of a map's element: a body may use them often, and each use may evaluate a further map.
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
  const Frame* outer = nullptr;  // the next enclosing variable
  const Frame* env = nullptr;    // the environment of `value`
  Expr value = nullptr;
  int64_t position = -1;             // the variable is this element of the value; -1: the whole value
  const uint64_t* forced = nullptr;  // the scalars of an accumulator, instead of a value
  uint64_t version = 0;              // distinguishes accumulators
  std::shared_ptr<Memo> memo;
  ElementMemo* element = nullptr;
};

// The source of parameter values, of which exactly one is set, and the observer if there is one.
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
  void run(Expr e, const std::vector<int64_t>& positions, Tensor& out) {
    find_shared(e);
    const Layout* layout = layouts_.of(e->type);
    std::vector<Cell> cells;
    std::byte* bytes = out.data();
    for (size_t i = 0; i < positions.size() && !stopped(); ++i) {
      cancellation_point();
      uint64_t word = at(e, nullptr, path_to(layout, positions[i], cells));
      write_column(&word, out.scalar(), bytes, static_cast<int64_t>(i), 1);
    }
  }

  bool too_deep() const { return too_deep_; }
  const std::vector<Diagnostic>& faults() const { return faults_; }

 private:
  bool stopped() const { return too_deep_ || !faults_.empty(); }

  uint64_t fault(const Spec& e, const std::string& what, const std::string& hint = {}) {
    if (!stopped()) faults_.push_back({"", fmt::format("{}: {}", row(e.pattern).name, what), hint});
    return 0;
  }

  // ---- The scalar of a term at a path ------------------------------------------------------------------------------
  uint64_t at(Expr e, const Frame* env, const Cell* path) {
    if (!shared_.empty() && shared_.count(e) > 0) {
      auto memo = memo_of(e, e->free == 0 ? nullptr : env);
      return remembered(*memo, e, env, path);
    }
    return looked_up(e, env, path);
  }

  uint64_t looked_up(Expr e, const Frame* env, const Cell* path) {
    char here;
    if (base_ - reinterpret_cast<uintptr_t>(&here) > stack_) too_deep_ = true;
    if (stopped()) return 0;
    auto child = [&](size_t i) { return e->children[i]; };
    switch (e->pattern) {
      case Pattern::parameter:
        return element_of_parameter(e, path);
      case Pattern::constant:
        return element_of(e->constant, e->type, path);
      case Pattern::bound: {
        const Frame* frame = env;
        for (int64_t i = e->integers[0]; i > 0; --i) frame = frame->outer;
        return variable(*frame, e->type, path);
      }
      case Pattern::literal:
        return word_of_bits(e->type->scalar, e->bits);
      case Pattern::iota:
        return word_of_integer(e->type->element->scalar, path->value);
      case Pattern::call: {
        uint64_t a[3] = {};
        for (size_t i = 0; i < e->children.size(); ++i) a[i] = at(child(i), env, nullptr);
        if (parameters_.observer != nullptr) (*parameters_.observer)(e, {a, a + e->children.size()});
        return compute(e->function, child(0)->type->scalar, a[0], a[1], a[2]);
      }
      case Pattern::select:
        return at(child(at(child(0), env, nullptr) != 0 ? 1 : 2), env, path);
      case Pattern::cast: {
        const uint64_t from = at(child(0), env, nullptr);
        if (parameters_.observer != nullptr) (*parameters_.observer)(e, {from});
        return convert(child(0)->type->scalar, e->type->scalar, from);
      }
      case Pattern::reinterpret:
        return reinterpret(child(0)->type->scalar, at(child(0), env, nullptr));
      case Pattern::let:
        return let(e, env, path);
      case Pattern::tuple:
        return at(child(static_cast<size_t>(path->value)), env, path->rest);
      case Pattern::get: {
        Cell component{e->integers[0], path};
        return at(child(0), env, &component);
      }
      case Pattern::identity:
        return at(child(0), env, path);
      case Pattern::materialise:
        return materialised(e, env, path);
      case Pattern::map: {
        Frame element{env, env, child(1), path->value, nullptr, 0, nullptr};
        ElementMemo memo;
        if (ElementMemo::holds(child(1)->type->element)) element.element = &memo;
        return at(child(0)->children[0], &element, path->rest);
      }
      case Pattern::reduce:
      case Pattern::fold:
      case Pattern::iterate:
        return folded(e, env, path);
      case Pattern::scan:
        return scanned(e, env, path);
      case Pattern::scatter:
        return scattered(e, env, path);
      case Pattern::host:
        return called_on_host(e, env, path);
      case Pattern::zip: {
        Cell inner{path->value, path->rest->rest};
        return at(child(static_cast<size_t>(path->rest->value)), env, &inner);
      }
      case Pattern::repeat:
        return at(child(0), env, path->rest);
      case Pattern::transpose:
        return transposed(e, env, path);
      case Pattern::pad:
        return padded(e, env, path);
      case Pattern::concat: {
        size_t i = 0;
        int64_t position = path->value;
        for (; position >= extent(child(i)); ++i) position -= extent(child(i));
        Cell inner{position, path->rest};
        return at(child(i), env, &inner);
      }
      case Pattern::index: {
        int64_t position = integer_of_word(child(0)->type->scalar, at(child(0), env, nullptr));
        if (position < 0 || position >= extent(child(1))) {
          return fault(*e, fmt::format("position {} lies outside 0..{}", position, extent(child(1)) - 1));
        }
        Cell inner{position, path};
        return at(child(1), env, &inner);
      }
      case Pattern::split: {
        Cell inner{path->value * e->sizes[0].value() + path->rest->value, path->rest->rest};
        return at(child(0), env, &inner);
      }
      case Pattern::join: {
        int64_t k = extent_of(child(0)->type->element);
        Cell column{path->value % k, path->rest}, row{path->value / k, &column};
        return at(child(0), env, &row);
      }
      case Pattern::slide: {
        Cell inner{path->value * e->sizes[1].value() + path->rest->value * e->sizes[2].value(), path->rest->rest};
        return at(child(0), env, &inner);
      }
      case Pattern::slice: {
        Cell inner{e->sizes[0].value() + path->value * e->integers[0], path->rest};
        return at(child(0), env, &inner);
      }
      case Pattern::tile: {
        int64_t k = e->sizes[0].value();
        Cell inner{std::min(path->value * k, extent(child(0)) - k) + path->rest->value, path->rest->rest};
        return at(child(0), env, &inner);
      }
      case Pattern::untile: {
        int64_t k = extent_of(child(0)->type->element), n = e->sizes[0].value();
        int64_t tile = path->value / k;
        Cell column{path->value - std::min(tile * k, n - k), path->rest}, row{tile, &column};
        return at(child(0), env, &row);
      }
      case Pattern::operator_call:  // inlined before
      case Pattern::function:
      case Pattern::meta:
        break;
    }
    HOIST_CHECK(false, "a term that has no value: " + std::string(row(e->pattern).name));
    return 0;
  }

  static int64_t extent_of(Type type) { return type->size.value(); }
  static int64_t extent(Expr array) { return extent_of(array->type); }

  uint64_t variable(const Frame& frame, Type type, const Cell* path) {
    if (frame.forced != nullptr) return frame.forced[offset_of(layouts_.of(type), path)];
    if (frame.position >= 0) {
      Cell inner{frame.position, path};
      if (frame.element == nullptr) return at(frame.value, frame.env, &inner);
      const int64_t i = path == nullptr ? 0 : path->value;
      if (!frame.element->known[i]) {
        frame.element->words[i] = at(frame.value, frame.env, &inner);
        frame.element->known[i] = true;
      }
      return frame.element->words[i];
    }
    if (frame.memo != nullptr) return remembered(*frame.memo, frame.value, frame.env, path);
    return at(frame.value, frame.env, path);
  }

  uint64_t element_of_parameter(Expr e, const Cell* path) {
    if (parameters_.elements != nullptr)
      return word_of_bits(leaf_of(e->type)->scalar, (*parameters_.elements)(e->name, position_of(e->type, path)));
    const Tensor*& tensor = tensors_[e];
    if (tensor == nullptr) tensor = &parameters_.bindings->at(e->name);
    return element_of(*tensor, e->type, path);
  }

  static int64_t position_of(Type type, const Cell* path) {
    int64_t position = 0;
    for (; type->is_array(); type = type->element, path = path->rest)
      position = position * extent_of(type) + path->value;
    return position;
  }

  static uint64_t element_of(const Tensor& tensor, Type type, const Cell* path) {
    return word_at(tensor, position_of(type, path));
  }

  uint64_t transposed(Expr e, const Frame* env, const Cell* path) {
    const size_t n = e->integers.size();
    Cell few[8];
    std::vector<Cell> many(n > 8 ? n : 0);
    Cell* cells = n > 8 ? many.data() : few;
    for (size_t i = 0; i < n; ++i, path = path->rest) cells[e->integers[i]].value = path->value;
    for (size_t i = 0; i < n; ++i) cells[i].rest = i + 1 < n ? &cells[i + 1] : path;
    return at(e->children[0], env, cells);
  }

  uint64_t padded(Expr e, const Frame* env, const Cell* path) {
    const int64_t n = extent(e->children[0]);
    Cell inner{path->value - e->sizes[0].value(), path->rest};
    int64_t& i = inner.value;
    if (i < 0 || i >= n) {
      if (e->border == Border::value) return at(e->children[1], env, path->rest);
      if (e->border == Border::undefined) return 0;
      if (n == 0) return fault(*e, fmt::format("{} has no element to take", text(e->children[0]->type)));
      if (e->border == Border::clamp)
        i = i < 0 ? 0 : n - 1;
      else if (e->border == Border::mirror)
        i = i < 0 ? -i : 2 * (n - 1) - i;
      else
        i = (i % n + n) % n;
    }
    return at(e->children[0], env, &inner);
  }

  // ---- Memoisation -------------------------------------------------------------------------------------------------

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

  std::shared_ptr<Memo> memo_of(Expr e, const Frame* env) {
    Slot& slot = slots_[e];
    const size_t n = slot.entries.size();
    for (size_t i = 0; i < n; ++i) {
      const size_t k = (slot.recent + i) % n;
      if (!slot.entries[k].is_for(env)) continue;
      slot.recent = k;
      return slot.entries[k].memo;
    }
    if (n < Slot::capacity) slot.entries.emplace_back();
    slot.recent = n < Slot::capacity ? n : (slot.recent + 1) % n;
    Entry& entry = slot.entries[slot.recent];
    entry.surroundings.clear();
    for (const Frame* f = env; f != nullptr; f = f->outer)
      entry.surroundings.push_back({f->value, f->position, f->version});
    entry.memo = std::make_shared<Memo>();
    return entry.memo;
  }

  uint64_t remembered(Memo& memo, Expr value, const Frame* env, const Cell* path) {
    const Layout* layout = layouts_.of(value->type);
    const int64_t offset = offset_of(layout, path);
    if (memo.pages.empty()) memo.pages.resize(static_cast<size_t>(layout->count / Memo::page_size + 1));
    auto& page = memo.pages[static_cast<size_t>(offset / Memo::page_size)];
    if (page == nullptr) page = std::make_unique<Memo::Page>();
    const int64_t i = offset % Memo::page_size;
    if (!page->known[i]) {
      page->words[i] = looked_up(value, env, path);
      page->known[i] = true;
    }
    return page->words[i];
  }

  uint64_t materialised(Expr e, const Frame* env, const Cell* path) {
    if (!worth_remembering(e->children[0])) return at(e->children[0], env, path);
    auto memo = memo_of(e, env);
    return remembered(*memo, e->children[0], env, path);
  }

  uint64_t let(Expr e, const Frame* env, const Cell* path) {
    Expr value = e->children[0];
    Frame frame{env, env, value, -1, nullptr, 0, nullptr};
    if (worth_remembering(value)) frame.memo = memo_of(value, env);
    return at(e->children[1]->children[0], &frame, path);
  }

  // True if recomputing costs more than memoising. Values with a memo of their own are not memoised again.
  bool worth_remembering(Expr value) {
    switch (value->pattern) {
      case Pattern::reduce:
      case Pattern::fold:
      case Pattern::iterate:
      case Pattern::scan:
      case Pattern::materialise:
      case Pattern::host:
        return false;
      default:
        break;
    }
    return computes(value) && layouts_.of(value->type)->count <= memory_limit / 16;
  }

  bool computes(Expr e) {
    switch (e->pattern) {
      case Pattern::call:
      case Pattern::reduce:
      case Pattern::fold:
      case Pattern::iterate:
      case Pattern::scan:
      case Pattern::scatter:
      case Pattern::host:
        return true;
      default:
        break;
    }
    if (e->children.empty()) return false;
    auto [place, is_new] = computes_.emplace(e, false);
    if (!is_new) return place->second;
    bool any = false;
    for (Expr c : e->children) any = any || computes(c);
    return computes_[e] = any;
  }

  // Equal subterms are one node. If a term written as a tree would be far larger than its graph, subterms with several
  // uses are memoised like lets; otherwise recomputing them is cheaper.
  void find_shared(Expr root) {
    std::unordered_map<Expr, int> users;
    std::unordered_map<Expr, double> written_out;
    std::vector<std::pair<Expr, size_t>> walk = {{root, 0}};
    while (!walk.empty()) {
      auto& [e, next] = walk.back();
      if (next < e->children.size()) {
        Expr c = e->children[next++];
        if (++users[c] == 1) walk.emplace_back(c, 0);
        continue;
      }
      double size = 1;
      for (Expr c : e->children) size += written_out[c];
      written_out[e] = size;
      walk.pop_back();
    }
    constexpr double much = 1e4;
    if (written_out[root] < much || written_out[root] < 16 * static_cast<double>(users.size())) return;
    for (auto [e, count] : users) {
      if (count > 1 && e->pattern != Pattern::function && worth_remembering(e)) shared_.insert(e);
    }
  }

  // ---- Accumulators ------------------------------------------------------------------------------------------------

  // Computes all scalars of a term.
  bool force(Expr e, const Frame* env, std::vector<uint64_t>& words, std::vector<Cell>& cells) {
    const Layout* layout = layouts_.of(e->type);
    for (int64_t i = 0; i < layout->count && !stopped(); ++i) {
      words[static_cast<size_t>(i)] = at(e, env, path_to(layout, i, cells));
    }
    return !stopped();
  }

  bool fits(Expr e, int64_t states, const Layout* state) {
    int64_t words = 0;
    if (!__builtin_mul_overflow(states, state->count, &words) && words <= memory_limit / 8) return true;
    fault(*e,
          fmt::format("{} accumulators of type {} need more than {} GiB", states, text(e->type), memory_limit >> 30));
    return false;
  }

  // One step: the body's accumulator is `before`, its element is number `step` of the array (iterate has none).
  bool advance(Expr e, const Frame* env, int64_t step, const std::vector<uint64_t>& before,
               std::vector<uint64_t>& after, std::vector<Cell>& cells) {
    Frame state{env, env, nullptr, -1, before.data(), ++versions_, nullptr};
    Expr body = e->children[0]->children[0];
    if (e->pattern == Pattern::iterate) return force(body, &state, after, cells);
    Frame element{&state, env, e->children[2], step, nullptr, 0, nullptr};
    ElementMemo memo;
    if (ElementMemo::holds(e->children[2]->type->element)) element.element = &memo;
    return force(body, &element, after, cells);
  }

  uint64_t folded(Expr e, const Frame* env, const Cell* path) {
    const Layout* layout = layouts_.of(e->type);
    auto memo = memo_of(e, env);
    if (!memo->complete) {
      if (!fits(e, 2, layout)) return 0;
      const int64_t steps = e->pattern == Pattern::iterate ? e->sizes[0].value() : extent(e->children[2]);
      std::vector<uint64_t> before(static_cast<size_t>(layout->count)), after(before.size());
      std::vector<Cell> cells;
      if (!force(e->children[1], env, before, cells)) return 0;
      for (int64_t i = 0; i < steps; ++i) {
        if (!advance(e, env, i, before, after, cells)) return 0;
        std::swap(before, after);
      }
      memo->words = std::move(before);
      memo->complete = true;
    }
    return memo->words[static_cast<size_t>(offset_of(layout, path))];
  }

  // Computes the accumulators up to the requested one; later ones are computed on demand.
  uint64_t scanned(Expr e, const Frame* env, const Cell* path) {
    const Layout* layout = layouts_.of(e->children[1]->type);
    const auto count = static_cast<size_t>(layout->count);
    if (!fits(e, extent(e), layout)) return 0;
    auto memo = memo_of(e, env);
    std::vector<uint64_t>& words = memo->words;
    const size_t wanted = (static_cast<size_t>(path->value) + 1) * count;
    if (words.size() < wanted) {
      std::vector<uint64_t> before(count), after(count);
      std::vector<Cell> cells;
      if (words.empty()) {
        if (!force(e->children[1], env, before, cells)) return 0;
      } else {
        before.assign(words.end() - layout->count, words.end());
      }
      while (words.size() < wanted) {
        if (!advance(e, env, static_cast<int64_t>(words.size() / count), before, after, cells)) return 0;
        words.insert(words.end(), after.begin(), after.end());
        std::swap(before, after);
      }
    }
    return words[static_cast<size_t>(path->value) * count + static_cast<size_t>(offset_of(layout, path->rest))];
  }

  // Computes the whole result at once, from whole arrays.
  uint64_t called_on_host(Expr e, const Frame* env, const Cell* path) {
    auto memo = memo_of(e, env);
    if (!memo->complete) {
      std::vector<Tensor> arrays;
      std::vector<Cell> cells;
      for (Expr child : e->children) {
        const Layout* layout = layouts_.of(child->type);
        if (!fits(child, 1, layout)) return 0;
        std::vector<uint64_t> words(static_cast<size_t>(layout->count));
        if (!force(child, env, words, cells)) return 0;
        Tensor array(leaf_of(child->type)->scalar, shape_of(child->type));
        std::byte* bytes = array.data();
        for (size_t i = 0; i < words.size(); ++i)
          write_column(&words[i], array.scalar(), bytes, static_cast<int64_t>(i), 1);
        arrays.push_back(std::move(array));
      }
      if (!fits(e, 1, layouts_.of(e->type))) return 0;
      const auto result = evaluate_host_call(e->name, std::move(arrays), e->type);
      if (!result.ok()) return fault(*e, result.errors()[0].what, result.errors()[0].hint);
      memo->words.resize(static_cast<size_t>(result->size()));
      for (size_t i = 0; i < memo->words.size(); ++i) memo->words[i] = word_at(*result, static_cast<int64_t>(i));
      memo->complete = true;
    }
    return memo->words[static_cast<size_t>(offset_of(layouts_.of(e->type), path))];
  }

  // The update that each element of the base takes is computed once.
  uint64_t scattered(Expr e, const Frame* env, const Cell* path) {
    constexpr uint64_t none = ~uint64_t{0};
    Expr positions = e->children[0];
    auto memo = memo_of(e, env);
    if (!memo->complete) {
      const int64_t n = extent(e);
      if (!fits(e, n, layouts_.of(scalar_type(Scalar::i64)))) return 0;
      std::vector<uint64_t> winner(static_cast<size_t>(n), none);
      for (int64_t i = 0; i < extent(positions) && !stopped(); ++i) {
        Cell cell{i, nullptr};
        int64_t position = integer_of_word(positions->type->element->scalar, at(positions, env, &cell));
        if (position >= 0 && position < n) winner[static_cast<size_t>(position)] = static_cast<uint64_t>(i);
      }
      memo->words = std::move(winner);
      memo->complete = true;
    }
    const uint64_t update = memo->words[static_cast<size_t>(path->value)];
    if (update == none) return at(e->children[2], env, path);
    Cell inner{static_cast<int64_t>(update), path->rest};
    return at(e->children[1], env, &inner);
  }

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
  interpretation::Layouts layouts_;
};

struct Run {
  Expr e;
  Parameters parameters;
  const std::vector<int64_t>& positions;
  Tensor out;
  bool too_deep = false;
  std::vector<Diagnostic> faults;
  std::exception_ptr thrown;  // by the thread with the large stack

  void with_stack(size_t stack) {
    Interpreter interpreter(parameters, stack);
    interpreter.run(e, positions, out);
    too_deep = interpreter.too_deep();
    faults = interpreter.faults();
  }
};

// Lets that refer to each other nest as deeply as the sum of their terms; such terms run on a separate, large stack.
constexpr size_t usual_stack = size_t{1} << 20;
constexpr size_t large_stack = size_t{1} << 30;

bool run_on_large_stack(Run& run) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_t thread;
  auto body = [](void* argument) -> void* {
    Run& run = *static_cast<Run*>(argument);
    try {
      run.with_stack(large_stack - usual_stack);
    } catch (...) {
      run.thrown = std::current_exception();
    }
    return nullptr;
  };
  bool ran = pthread_attr_setstacksize(&attributes, large_stack) == 0 &&
             pthread_create(&thread, &attributes, body, &run) == 0 && pthread_join(thread, nullptr) == 0;
  pthread_attr_destroy(&attributes);
  return ran;
}

Result<Tensor> values(Expr e, const Parameters& parameters, const std::vector<int64_t>& positions) {
  Run run{e,     parameters, positions, Tensor(leaf_of(e->type)->scalar, {static_cast<int64_t>(positions.size())}),
          false, {},         {}};
  run.with_stack(usual_stack);
  if (run.too_deep && !run_on_large_stack(run)) return Diagnostic{"", "no memory for a stack of 1 GiB", ""};
  if (run.thrown) std::rethrow_exception(run.thrown);
  if (run.too_deep) return Diagnostic{"", "the term nests too deeply to be interpreted", "materialise or split it"};
  if (!run.faults.empty()) return run.faults;
  return run.out;
}

Result<Tensor> values_at(Expr e, const Parameters& parameters, const std::vector<int64_t>& positions) {
  e = without_operator_calls(e);
  HOIST_TRY_VOID(check_computable(e, parameters.bindings));
  const int64_t size = scalar_count_of(e->type).value();
  for (int64_t position : positions) {
    if (position < 0 || position >= size) {
      return Diagnostic{"", fmt::format("position {} lies outside 0..{} of the result", position, size - 1), ""};
    }
  }
  return values(e, parameters, positions);
}

Result<Tensor> whole_value(Expr e, const Bindings& bindings, const OperationObserver* observer) {
  e = without_operator_calls(e);
  HOIST_TRY_VOID(check_whole_computable(e, bindings));
  std::vector<int64_t> positions(static_cast<size_t>(scalar_count_of(e->type).value()));
  for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<int64_t>(i);
  HOIST_TRY(Tensor flat, values(e, {&bindings, nullptr, observer}, positions));
  return flat.reshaped(shape_of(e->type));
}

}  // namespace

Result<Tensor> interpret_at(Expr e, const Bindings& bindings, const std::vector<int64_t>& positions) {
  return values_at(e, {.bindings = &bindings}, positions);
}

Result<Tensor> interpret_made_at(Expr e, const ElementSource& elements, const std::vector<int64_t>& positions) {
  return values_at(e, {.elements = &elements}, positions);
}

Result<Tensor> interpret(Expr e, const Bindings& bindings) { return whole_value(e, bindings, nullptr); }

Result<Tensor> interpret_observed(Expr e, const Bindings& bindings, const OperationObserver& observer) {
  return whole_value(e, bindings, &observer);
}

Tensor elements_at(const Tensor& from, const std::vector<int64_t>& positions) {
  Tensor out(from.scalar(), {static_cast<int64_t>(positions.size())});
  for (size_t i = 0; i < positions.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    if (is_float(from.scalar()))
      out.set_float(at, from.float_at(positions[i]));
    else
      out.set_integer(at, from.integer_at(positions[i]));
  }
  return out;
}

std::vector<int64_t> sample_positions(int64_t size, int64_t count, uint64_t seed) {
  std::vector<int64_t> all;
  if (count >= size) {
    for (int64_t i = 0; i < size; ++i) all.push_back(i);
    return all;
  }
  if (size <= 0 || count <= 0) return all;
  std::set<int64_t> chosen = {0, size - 1};
  while (static_cast<int64_t>(chosen.size()) < count)
    chosen.insert(static_cast<int64_t>(next_random(seed) % static_cast<uint64_t>(size)));
  return {chosen.begin(), chosen.end()};
}

}  // namespace hoist
