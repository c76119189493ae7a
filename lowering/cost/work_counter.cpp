// One function gives the scalar of a term at a path of symbolic positions, as the compiler of ir/evaluate does. Scalars
// are interned, so that equal scalars at equal positions are one, and each has the set of positions on which it
// depends.
#include "lowering/cost/work_counter.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "ir/base/hash.h"
#include "ir/evaluate/evaluate_index.h"
#include "ir/properties/properties.h"
#include "lowering/cost/position_sets.h"
#include "lowering/terms/saturated.h"
#include "lowering/terms/terms.h"

namespace hoist {
namespace counting {
namespace {

using Positions = std::vector<IndexId>;  // indices and constant tuple components, outermost first

// The loops around the use of a scalar and the loops around the place of its term. `bound` is the number of
// dimensions whose index is known at that place.
struct Where {
  PositionSet around = 0, place = 0;
  int bound = 0;
};

// A bound variable; interned, so that equal environments are equal numbers.
struct Frame {
  enum Kind : uint8_t { element, whole, accumulator } kind;
  int outer, env;  // the next enclosing variable; the environment of `value`
  Expr value;
  IndexId index;      // index of an element
  int loop;           // accumulator's loop
  PositionSet place;  // the loops around `value`; not part of the identity
};

// The scalars of a loop's state or of a materialised array, by the leaves of its type.
struct Instance {
  PositionSet around = 0;  // the loops around it
  PositionSet inside = 0;  // the loops around it and its own steps
};

struct KeyHash {
  size_t operator()(const std::vector<int64_t>& key) const {
    uint64_t h = 0;
    for (int64_t part : key) h = mixed(h, static_cast<uint64_t>(part));
    return h;
  }
};
template <class T>
using ByKey = std::unordered_map<std::vector<int64_t>, T, KeyHash>;

class Counter {
 public:
  // False for a term that is too large or too deep.
  bool count(Expr term, CountedTerm& out) {
    char here;
    base_ = reinterpret_cast<uintptr_t>(&here);
    for_each_leaf(term->type, 0, [&](const Positions& path) { value(term, -1, path, {}); });
    if (failed_) return false;
    for (const Operation& each : operations_)
      out.nodes.push_back(
          {each.node, sets_.combinations(each.loops), sets_.combinations(sets_of_scalars_[each.scalar])});
    out.read = std::move(reads_);
    return true;
  }

 private:
  // ---- Scalars -----------------------------------------------------------------------------------------------------

  enum Kind : int64_t { literal, load, position, operation, choice, held, leaf };

  // `node` is the operation that computes the scalar, null if none is needed.
  int scalar(std::vector<int64_t> key, PositionSet set, Expr node = nullptr, PositionSet around = 0) {
    auto [place, is_new] = scalars_.emplace(std::move(key), static_cast<int>(sets_of_scalars_.size()));
    if (is_new) {
      sets_of_scalars_.push_back(set);
      if (node != nullptr)
        operations_.push_back({static_cast<size_t>(place->second), node, sets_.repeating(set, around, spread_)});
    }
    return place->second;
  }

  // A choice among scalars by position or by a selection.
  int chosen(const std::vector<int>& among, PositionSet set, Expr node = nullptr, PositionSet around = 0) {
    std::vector<int64_t> key = {choice, node == nullptr ? 0 : 1};
    for (int one : among) {
      key.push_back(one);
      set = sets_.united(set, sets_of_scalars_[static_cast<size_t>(one)]);
    }
    return scalar(std::move(key), set, node, around);
  }

  int bind(const Frame& frame) {
    auto [place, is_new] =
        frame_ids_.emplace(std::vector<int64_t>{frame.kind, frame.outer, frame.env,
                                                frame.value == nullptr ? 0 : static_cast<int64_t>(frame.value->serial),
                                                frame.index, frame.loop},
                           static_cast<int>(frames_.size()));
    if (is_new) frames_.push_back(frame);
    return place->second;
  }

  int fail() {
    failed_ = true;
    return scalar({literal}, 0);
  }

  // The scalar of a term at a path.
  int value(Expr e, int env, const Positions& path, Where where) {
    constexpr size_t most_scalars = size_t{1} << 20, most_stack = size_t{3} << 20;
    char here;
    if (base_ - reinterpret_cast<uintptr_t>(&here) > most_stack || known_.size() > most_scalars) failed_ = true;
    if (failed_) return fail();
    if (e->pattern == Pattern::bound) return variable(e, env, path, where);
    if (e->free == 0) env = -1;
    std::vector<int64_t> key = {static_cast<int64_t>(e->serial), env};
    key.insert(key.end(), path.begin(), path.end());
    if (auto found = known_.find(key); found != known_.end()) return found->second;
    const int out = computed(e, env, path, where);
    known_.emplace(std::move(key), out);
    return out;
  }

  // Scalars are computed where they are bound, elements of arrays where they are used.
  int variable(Expr e, int env, const Positions& path, Where where) {
    for (int64_t i = e->integers[0]; i > 0; --i) env = frames_[static_cast<size_t>(env)].outer;
    const Frame frame = frames_[static_cast<size_t>(env)];
    if (frame.kind == Frame::accumulator) return held_scalar(frame.loop, path, true);
    const bool is_element = frame.kind == Frame::element;
    const PositionSet bound = is_element ? sets_.united(frame.place, sets_.of(frame.index)) : frame.place;
    const int known = path.empty() ? 0 : where.bound;
    const Where at = {holds_arrays(e->type) ? where.around : bound, frame.place, is_element ? known + 1 : known};
    return value(frame.value, frame.env, is_element ? with({frame.index}, path, 0) : path, at);
  }

  static Positions with(Positions front, const Positions& path, size_t from) {
    front.insert(front.end(), path.begin() + static_cast<ptrdiff_t>(from), path.end());
    return front;
  }

  int computed(Expr e, int env, const Positions& path, Where where) {
    const auto child = [&](size_t i, const Positions& at) { return value(e->children[i], env, at, where); };
    switch (e->pattern) {
      case Pattern::parameter:
      case Pattern::constant:
        return loaded(e, path);
      case Pattern::literal:
        return scalar({literal, static_cast<int64_t>(e->type->scalar), static_cast<int64_t>(e->bits)}, 0);
      case Pattern::iota:
        return scalar({position, static_cast<int64_t>(e->type->element->scalar), path[0]}, sets_.of(path[0]));
      case Pattern::call:
      case Pattern::cast:
      case Pattern::reinterpret:
        return operated(e, env, where);
      case Pattern::select: {
        const int condition = child(0, {}), usual = child(2, path);
        if (is_rare(e)) return chosen({condition, usual}, 0);
        const int first = child(1, path);
        return first == usual ? usual : chosen({condition, first, usual}, 0, e, where.around);
      }
      case Pattern::let: {
        const int frame = bind({Frame::whole, env, env, e->children[0], -1, -1, where.place});
        return value(e->children[1]->children[0], frame, path, where);
      }
      case Pattern::tuple:
        return child(static_cast<size_t>(indices_[path[0]].constant), with({}, path, 1));
      case Pattern::get:
        return child(0, with({indices_.constant(e->integers[0])}, path, 0));
      case Pattern::identity:
        return child(0, path);
      case Pattern::map: {
        // The element that a function binds is computed at that place, other elements at their uses.
        const int frame = bind({Frame::element, env, env, e->children[1], path[0], -1, where.place});
        const PositionSet inside = sets_.united(where.around, sets_.of(path[0]));
        if (e->mode == Mode::unroll || e->mode == Mode::vec || e->mode == Mode::matrix)
          spread_ = sets_.united(spread_, sets_.of(path[0]));
        const Where at = where.bound > 0 ? Where{inside, sets_.united(where.place, sets_.of(path[0])), where.bound - 1}
                                         : everywhere(inside);
        return value(e->children[0]->children[0], frame, with({}, path, 1), at);
      }
      case Pattern::reduce:
      case Pattern::fold:
      case Pattern::iterate:
      case Pattern::scan:
        return looped(e, env, path, where.place);
      case Pattern::scatter:
      case Pattern::host:
        return whole(e, env, path, where.place);
      case Pattern::materialise:
        return e->type->is_scalar() ? child(0, path) : whole(e, env, path, where.place);
      case Pattern::index: {
        const int64_t n = e->children[1]->type->size.value();
        if (n == 0) return fail();
        return child(1, with({indices_.computed(child(0, {}), n, 0)}, path, 0));
      }
      case Pattern::concat:
        return concatenated(e, env, path, where);
      case Pattern::pad:
        return padded(e, env, path, where);
      default:
        where.bound = bound_of(e, where.bound);
        return child(e->pattern == Pattern::zip ? static_cast<size_t>(indices_[path[1]].constant) : 0, viewed(e, path));
    }
  }

  int operated(Expr e, int env, Where where) {
    std::vector<int64_t> key = {operation, static_cast<int64_t>(e->pattern), static_cast<int64_t>(e->function),
                                static_cast<int64_t>(e->children[0]->type->scalar),
                                static_cast<int64_t>(e->type->scalar)};
    PositionSet set = 0;
    for (Expr operand : e->children) {
      const int one = value(operand, env, {}, where);
      key.push_back(one);
      set = sets_.united(set, sets_of_scalars_[static_cast<size_t>(one)]);
    }
    return scalar(std::move(key), set, e, where.around);
  }

  // The path in the argument of a view that moves elements.
  Positions viewed(Expr e, const Positions& path) {
    const auto size = [&](size_t i) { return e->sizes[i].value(); };
    switch (e->pattern) {
      case Pattern::zip:
        return with({path[0]}, path, 2);
      case Pattern::repeat:
        return with({}, path, 1);
      case Pattern::transpose: {
        Positions inner = path;
        for (size_t i = 0; i < e->integers.size(); ++i) inner[static_cast<size_t>(e->integers[i])] = path[i];
        return inner;
      }
      case Pattern::split:
        return with({indices_.sum({{path[0], size(0)}, {path[1], 1}})}, path, 2);
      case Pattern::join: {
        const int64_t k = e->children[0]->type->element->size.value();
        return with({indices_.quotient(path[0], k), indices_.modulus(path[0], k)}, path, 1);
      }
      case Pattern::slide:
        return with({indices_.sum({{path[0], size(1)}, {path[1], size(2)}})}, path, 2);
      case Pattern::slice:
        return with({indices_.sum({{path[0], e->integers[0]}}, size(0))}, path, 1);
      case Pattern::tile: {
        const int64_t last = e->children[0]->type->size.value() - size(0);
        const IndexId first = indices_.clamp(indices_.sum({{path[0], size(0)}}), 0, last);
        return with({indices_.sum({{first, 1}, {path[1], 1}})}, path, 2);
      }
      case Pattern::untile: {
        const int64_t k = e->children[0]->type->element->size.value();
        const IndexId row = indices_.quotient(path[0], k);
        const IndexId first = indices_.clamp(indices_.sum({{row, k}}), 0, size(0) - k);
        return with({row, indices_.sum({{path[0], 1}, {first, -1}})}, path, 1);
      }
      default:
        break;
    }
    HOIST_CHECK(false, "a term that has no value: " + std::string(row(e->pattern).name));
    return path;
  }

  // The number of leading dimensions of the argument whose index follows from the first `bound` indices of a view.
  static int bound_of(Expr e, int bound) {
    if (bound == 0) return 0;
    switch (e->pattern) {
      case Pattern::join:
      case Pattern::untile:
        return bound + 1;
      case Pattern::split:
      case Pattern::slide:
      case Pattern::tile:
      case Pattern::repeat:
        return bound - 1;
      case Pattern::transpose: {
        const auto rank = static_cast<int>(e->integers.size());
        if (bound >= rank) return bound;
        std::vector<bool> known(e->integers.size());
        for (int i = 0; i < bound; ++i) known[static_cast<size_t>(e->integers[static_cast<size_t>(i)])] = true;
        return static_cast<int>(std::find(known.begin(), known.end(), false) - known.begin());
      }
      default:
        return bound;
    }
  }

  int concatenated(Expr e, int env, const Positions& path, Where where) {
    const Index range = indices_[path[0]];
    std::vector<int> parts;
    int64_t begin = 0;
    for (Expr part : e->children) {
      const int64_t n = part->type->size.value(), first = begin;
      begin += n;
      if (n == 0 || range.high < first || range.low >= begin) continue;
      const IndexId inner = indices_.clamp(indices_.sum({{path[0], 1}}, -first), 0, n - 1);
      parts.push_back(value(part, env, with({inner}, path, 1), where));
    }
    if (parts.empty()) return fail();
    return parts.size() == 1 ? parts[0] : chosen(parts, sets_.of(path[0]));
  }

  int padded(Expr e, int env, const Positions& path, Where where) {
    const int64_t n = e->children[0]->type->size.value();
    const IndexId i = indices_.sum({{path[0], 1}}, -e->sizes[0].value());
    const Index range = indices_[i];
    const auto outside = [&] {
      return e->border == Border::value ? value(e->children[1], env, with({}, path, 1), where) : scalar({literal}, 0);
    };
    const bool has_value = e->border == Border::value || e->border == Border::undefined;
    if (n == 0 || (has_value && (range.high < 0 || range.low >= n))) return outside();
    const IndexId inner = e->border == Border::mirror ? indices_.mirror(i, n)
                          : e->border == Border::wrap ? indices_.modulus(i, n)
                                                      : indices_.clamp(i, 0, n - 1);
    const int inside = value(e->children[0], env, with({inner}, path, 1), where);
    if (e->border != Border::value || (range.low >= 0 && range.high < n)) return inside;
    return chosen({inside, outside()}, sets_.of(path[0]));
  }

  // ---- Loops and materialised arrays -------------------------------------------------------------------------------

  // Fresh positions for each scalar of a type, which are loops inside those around it.
  void for_each_leaf(Type type, PositionSet around, const std::function<void(const Positions& path)>& visit) {
    const PositionSet outer = wanted_;
    const std::function<void(Type, const Positions&)> descend = [&](Type t, const Positions& path) {
      if (t->is_scalar()) {
        wanted_ = sets_.united(around, sets_.of(path));
        visit(path);
        wanted_ = outer;
        return;
      }
      if (t->is_array()) {
        if (t->size.value() > 0) descend(t->element, with(path, {indices_.variable(t->size.value(), 0)}, 0));
        return;
      }
      for (size_t i = 0; i < t->parts.size(); ++i)
        descend(t->parts[i], with(path, {indices_.constant(static_cast<int64_t>(i))}, 0));
    };
    descend(type, {});
  }

  // The scalar of a loop's result, or inside of the loop that of its accumulator.
  int held_scalar(int instance, const Positions& path, bool inside) {
    const Instance& of = instances_[static_cast<size_t>(instance)];
    std::vector<int64_t> key = {inside ? leaf : held, instance};
    key.insert(key.end(), path.begin(), path.end());
    return scalar(std::move(key), sets_.united(inside ? of.inside : of.around, sets_.of(path)));
  }

  std::pair<int, bool> instance_of(Expr e, int env, PositionSet around) {
    auto [place, is_new] = instance_ids_.emplace(std::vector<int64_t>{static_cast<int64_t>(e->serial), env},
                                                 static_cast<int>(instances_.size()));
    // The loops over the counted elements repeat it, and so do all loops outside the innermost of them.
    const PositionSet loops = sets_.repeating(around, wanted_, spread_);
    if (is_new) instances_.push_back({loops, loops});
    return {place->second, is_new};
  }

  static Where everywhere(PositionSet loops) { return {loops, loops, 0}; }

  // Every step forces the whole accumulator.
  int looped(Expr e, int env, const Positions& path, PositionSet around) {
    const bool has_elements = e->pattern != Pattern::iterate;
    const int64_t steps = has_elements ? e->children[2]->type->size.value() : e->sizes[0].value();
    if (steps == 0) return value(e->children[1], env, path, everywhere(around));
    const auto [id, is_new] = instance_of(e, env, around);
    if (is_new) {
      const IndexId step = indices_.variable(steps, 0);
      const PositionSet inside = sets_.united(instances_[static_cast<size_t>(id)].around, sets_.of(step));
      instances_[static_cast<size_t>(id)].inside = inside;
      int frame = bind({Frame::accumulator, env, env, nullptr, -1, id, around});
      if (has_elements) frame = bind({Frame::element, frame, env, e->children[2], step, -1, around});
      for_each_leaf(e->children[1]->type, inside, [&](const Positions& at) {
        value(e->children[1], env, at, everywhere(around));
        value(e->children[0]->children[0], frame, at, everywhere(inside));
      });
    }
    return held_scalar(id, path, false);
  }

  // All elements of the children, computed once.
  int whole(Expr e, int env, const Positions& path, PositionSet around) {
    const auto [id, is_new] = instance_of(e, env, around);
    if (is_new) {
      for (Expr child : e->children) {
        for_each_leaf(child->type, around, [&](const Positions& at) { value(child, env, at, everywhere(around)); });
      }
    }
    return held_scalar(id, path, false);
  }

  // ---- Reads -------------------------------------------------------------------------------------------------------

  int loaded(Expr e, const Positions& path) {
    std::vector<int64_t> key = {load, static_cast<int64_t>(e->serial)};
    key.insert(key.end(), path.begin(), path.end());
    const PositionSet set = sets_.of(path);
    if (e->pattern == Pattern::parameter && scalars_.find(key) == scalars_.end()) note_read(e, path, set);
    return scalar(std::move(key), set);
  }

  // Counts the elements at a path, at most all. Reads of one array may overlap, so only the largest counts.
  void note_read(Expr e, const Positions& path, PositionSet set) {
    Type type = e->type;
    int64_t elements = 1;
    for (IndexId i : path) {
      if (!type->is_array()) break;
      const Index& index = indices_[i];
      elements = saturated_product(
          elements, std::min({type->size.value(), index.high - index.low + 1, sets_.combinations(sets_.of(i))}));
      type = type->element;
    }
    while (type->is_tuple()) type = type->parts[0];
    const int64_t bits = type->is_scalar() ? row(type->scalar).bits : 8;
    int64_t& bytes = reads_[e->name];
    bytes = std::max(bytes, saturated_sum(saturated_product(std::min(elements, sets_.combinations(set)), bits), 7) / 8);
  }

  Indices indices_;
  std::vector<PositionSet> sets_of_scalars_;
  PositionSets sets_{indices_, sets_of_scalars_};
  uintptr_t base_ = 0;
  bool failed_ = false;
  std::vector<Frame> frames_;
  ByKey<int> frame_ids_, scalars_, known_, instance_ids_;
  struct Operation {
    size_t scalar;
    Expr node;
    PositionSet loops;  // loops that repeat the operation
  };
  std::vector<Operation> operations_;
  PositionSet spread_ = 0;  // loops that run inside folds
  PositionSet wanted_ = 0;  // loops over the elements that are being counted
  std::vector<Instance> instances_;
  std::map<std::string, int64_t> reads_;
};

}  // namespace
}  // namespace counting

bool count_nodes(Expr term, CountedTerm& out) { return counting::Counter().count(term, out); }

}  // namespace hoist
