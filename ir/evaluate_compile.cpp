// Compiles by evaluating symbolically. As in the interpreter, one function gives the scalar of a term at a path and a
// map binds a variable to one element; but here the indices of a path are positions in terms of variables, and what
// comes out is scalar code. Folds become loops whose accumulators are the scalars that their bodies turn out to need.
// What would be computed again at many positions becomes a stage of its own over the elements that the maps around it
// run over (their "domains"); what mixes an accumulator's elements becomes a serial stage.
#include "ir/evaluate_compile.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "ir/interpret_check.h"

namespace hoist {
namespace {

using Path = std::vector<IndexId>;  // indices and (constant) components, outermost first

// A bound variable. Frames are interned, so that equal surroundings have equal numbers.
struct Frame {
  enum Kind : uint8_t { element, whole, accumulators, state } kind;
  int outer, env;  // the next variable outwards; where `value` is to be read
  Expr value;      // of element and whole
  IndexId index;   // of element
  int fold;        // of accumulators the open loop, of state the serial stage
  bool operator<(const Frame& f) const {
    return std::tie(kind, outer, env, value, index, fold) < std::tie(f.kind, f.outer, f.env, f.value, f.index, f.fold);
  }
};

struct OpenLoop {
  std::vector<Path> paths;  // of its slots
};

constexpr size_t most_slots = 64;
constexpr int64_t most_stage_elements = int64_t{1} << 28;
constexpr size_t most_values = size_t{1} << 21;
constexpr size_t usual_stack = size_t{3} << 20;

class Compiler {
 public:
  Compiler(const Bindings& bindings, Compiled& out) : bindings_(bindings), out_(out), indices_(out.indices) {
    char here;
    base_ = reinterpret_cast<uintptr_t>(&here);
  }

  bool run(Expr e) {
    std::vector<int64_t> extents = shape_of(e->type);
    evaluations_ = plain_ = static_cast<double>(scalar_count_of(e->type).value());
    Path path;
    for (int64_t extent : extents) path.push_back(indices_.variable(extent, 0));
    int root = value(e, -1, path);
    if (failed_) return false;
    add_plain_stage(root, extents, path);
    return true;
  }

 private:
  // ---- Values ------------------------------------------------------------------------------------------------------

  int intern(Value v) {
    auto [place, is_new] = value_ids_.emplace(v, static_cast<int>(out_.values.size()));
    if (is_new) out_.values.push_back(v);
    return place->second;
  }

  const Value& at(int v) const { return out_.values[static_cast<size_t>(v)]; }

  int literal(Scalar scalar, uint64_t word) {
    Value v{Value::literal};
    v.scalar = scalar;
    v.low = word;
    return intern(v);
  }

  int load(int buffer, IndexId offset) {
    Value v{Value::load};
    v.scalar = out_.buffers[static_cast<size_t>(buffer)].scalar;
    v.a = buffer;
    v.index = offset;
    v.scope = indices_[offset].scope;
    return intern(v);
  }

  int select(int condition, int a, int b) {
    if (a == b) return a;
    Value v{Value::selection};
    v.scalar = at(a).scalar;
    v.a = condition;
    v.b = a;
    v.c = b;
    v.scope = indices_.deeper(at(condition).scope, indices_.deeper(at(a).scope, at(b).scope));
    return intern(v);
  }

  // Whether low <= index < high; empty where it always holds or never.
  std::optional<int> within(IndexId index, int64_t low, int64_t high) {
    const Index& i = indices_[index];
    if (i.low >= low && i.high < high) return std::nullopt;
    Value v{Value::within};
    v.scalar = Scalar::boolean;
    v.index = index;
    v.low = static_cast<uint64_t>(low);
    v.high = static_cast<uint64_t>(high);
    v.scope = i.scope;
    return intern(v);
  }

  int fail() {
    failed_ = true;
    return literal(Scalar::boolean, 0);
  }

  // ---- Frames ------------------------------------------------------------------------------------------------------

  int bind(Frame frame) {
    auto [place, is_new] = frame_ids_.emplace(frame, static_cast<int>(frames_.size()));
    if (is_new) {
      frames_.push_back(frame);
      const bool own = frame.kind == Frame::element || frame.kind == Frame::whole;
      clean_.push_back(own && is_clean(frame.outer));
    }
    return place->second;
  }

  const Frame& frame(int f) const { return frames_[static_cast<size_t>(f)]; }
  // No accumulator is in sight: what is computed here can be computed beforehand.
  bool is_clean(int f) const { return f < 0 || clean_[static_cast<size_t>(f)]; }

  // ---- The scalar of a term at a path ------------------------------------------------------------------------------

  using Key = std::tuple<Expr, int, int, Path>;

  int value(Expr e, int env, const Path& path) {
    char here;
    if (base_ - reinterpret_cast<uintptr_t>(&here) > usual_stack || memo_.size() > most_values) failed_ = true;
    if (failed_) return fail();
    if (e->pattern == Pattern::bound) return variable(e, env, path);
    const Key key{e, e->open == 0 ? -1 : env, scope_, path};
    auto place = memo_.find(key);
    if (place != memo_.end()) return place->second;
    const int v = compute(e, e->open == 0 ? -1 : env, path);
    if (!failed_) memo_.emplace(key, v);
    return v;
  }

  int compute(Expr e, int env, const Path& path) {
    auto child = [&](size_t i) { return e->children[i]; };
    auto rest = [&](size_t from) { return Path(path.begin() + static_cast<ptrdiff_t>(from), path.end()); };
    auto with = [&](std::vector<IndexId> front, size_t from) {
      front.insert(front.end(), path.begin() + static_cast<ptrdiff_t>(from), path.end());
      return front;
    };
    switch (e->pattern) {
      case Pattern::parameter:
        return element_of(parameter_buffer(e), e->type, path);
      case Pattern::constant:
        return element_of(constant_buffer(e), e->type, path);
      case Pattern::literal:
        return literal(e->type->scalar, word_of_bits(e->type->scalar, e->bits));
      case Pattern::iota: {
        Value v{Value::position};
        v.scalar = e->type->element->scalar;
        v.index = path[0];
        v.scope = indices_[path[0]].scope;
        return intern(v);
      }
      case Pattern::call: {
        Value v{Value::operation};
        v.scalar = e->type->scalar;
        v.from = child(0)->type->scalar;
        v.function = e->function;
        int* operands[] = {&v.a, &v.b, &v.c};
        for (size_t i = 0; i < e->children.size(); ++i) {
          *operands[i] = value(child(i), env, {});
          v.scope = indices_.deeper(v.scope, at(*operands[i]).scope);
        }
        return intern(v);
      }
      case Pattern::cast: {
        Value v{Value::conversion};
        v.scalar = e->type->scalar;
        v.from = child(0)->type->scalar;
        v.a = value(child(0), env, {});
        v.scope = at(v.a).scope;
        return intern(v);
      }
      case Pattern::select: {
        const int condition = value(child(0), env, {});
        const int a = value(child(1), env, path);
        return select(condition, a, value(child(2), env, path));
      }
      case Pattern::let: {
        const int f = bind({Frame::whole, env, env, child(0), -1, -1});
        return value(child(1)->children[0], f, path);
      }
      case Pattern::tuple:
        return value(child(static_cast<size_t>(component(path[0]))), env, rest(1));
      case Pattern::get:
        return value(child(0), env, with({indices_.constant(e->integers[0])}, 0));
      case Pattern::identity:
        return value(child(0), env, path);
      case Pattern::materialise:
        return kept(child(0), env, path);
      case Pattern::map: {
        const int f = bind({Frame::element, env, env, child(1), path[0], -1});
        return value(child(0)->children[0], f, rest(1));
      }
      case Pattern::reduce:
      case Pattern::fold:
      case Pattern::iterate:
        return folded(e, env, path);
      case Pattern::scan:
      case Pattern::scatter:
        return staged_or_fail(e, env, path);
      case Pattern::zip:
        return value(child(static_cast<size_t>(component(path[1]))), env, with({path[0]}, 2));
      case Pattern::repeat:
        return value(child(0), env, rest(1));
      case Pattern::transpose: {
        Path inner = path;
        for (size_t i = 0; i < e->integers.size(); ++i) inner[static_cast<size_t>(e->integers[i])] = path[i];
        return value(child(0), env, inner);
      }
      case Pattern::pad:
        return padded(e, env, path);
      case Pattern::concat:
        return concatenated(e, env, path);
      case Pattern::index: {
        const int64_t n = extent(child(1));
        const int position = value(child(0), env, {});
        if (n == 0) return fail();  // whether anybody asks for it is not known here
        return value(child(1), env, with({computed(position, n)}, 0));
      }
      case Pattern::split:
        return value(child(0), env, with({indices_.sum({{path[0], e->sizes[0].value()}, {path[1], 1}})}, 2));
      case Pattern::join: {
        const int64_t k = child(0)->type->element->size.value();
        return value(child(0), env, with({indices_.quotient(path[0], k), indices_.modulus(path[0], k)}, 1));
      }
      case Pattern::slide:
        return value(child(0), env,
                     with({indices_.sum({{path[0], e->sizes[1].value()}, {path[1], e->sizes[2].value()}})}, 2));
      case Pattern::slice:
        return value(child(0), env, with({indices_.sum({{path[0], e->integers[0]}}, e->sizes[0].value())}, 1));
      case Pattern::tile: {
        const int64_t k = e->sizes[0].value();
        const IndexId first = indices_.clamp(indices_.sum({{path[0], k}}), 0, extent(child(0)) - k);
        return value(child(0), env, with({indices_.sum({{first, 1}, {path[1], 1}})}, 2));
      }
      case Pattern::untile: {
        const int64_t k = child(0)->type->element->size.value(), n = e->sizes[0].value();
        const IndexId row = indices_.quotient(path[0], k);
        const IndexId first = indices_.clamp(indices_.sum({{row, k}}), 0, n - k);
        return value(child(0), env, with({row, indices_.sum({{path[0], 1}, {first, -1}})}, 1));
      }
      case Pattern::bound:
      case Pattern::function:
      case Pattern::meta:
        break;
    }
    HOIST_CHECK(false, "a term that has no value: " + std::string(row(e->pattern).name));
    return -1;
  }

  static int64_t extent(Expr array) { return array->type->size.value(); }
  int64_t component(IndexId id) const { return indices_[id].constant; }

  int variable(Expr e, int env, const Path& path) {
    for (int64_t i = e->integers[0]; i > 0; --i) env = frame(env).outer;
    const Frame f = frame(env);
    switch (f.kind) {
      case Frame::accumulators:
        return accumulator(f.fold, leaf_of_path(e->type, path).second, path);
      case Frame::state: {
        auto [leaf, scalar] = leaf_of_path(e->type, path);
        const Stage& stage = serial_[static_cast<size_t>(f.fold)];
        return load(stage.states[static_cast<size_t>(leaf)], offset(e->type, path));
      }
      case Frame::whole:
        return kept(f.value, f.env, path);
      case Frame::element:
        break;
    }
    Path inner = {f.index};
    inner.insert(inner.end(), path.begin(), path.end());
    return value(f.value, f.env, inner);
  }

  // A value that has a place: a stage where it is an array that costs something, else it is seen through.
  int kept(Expr e, int env, const Path& path) {
    if (e->type->is_array() && computes(e)) {
      if (auto v = staged(e, env, path)) return *v;
    }
    return value(e, env, path);
  }

  bool computes(Expr e) {
    switch (e->pattern) {
      case Pattern::call:
        return true;
      case Pattern::reduce:
      case Pattern::fold:
      case Pattern::iterate:
      case Pattern::scan:
      case Pattern::scatter:
      case Pattern::materialise:
        return false;  // they have stages of their own
      default:
        break;
    }
    auto [place, is_new] = computes_.emplace(e, false);
    if (!is_new) return place->second;
    bool any = false;
    for (Expr c : e->children) any = any || computes(c);
    return computes_[e] = any;
  }

  IndexId computed(int position, int64_t n) {
    const Value v = at(position);
    if (v.kind == Value::position && indices_[v.index].low >= 0 && indices_[v.index].high < n &&
        row(v.scalar).bits >= 32) {
      return v.index;
    }
    return indices_.computed(position, n, v.scope);
  }

  int padded(Expr e, int env, const Path& path) {
    const int64_t n = extent(e->children[0]), left = e->sizes[0].value();
    const IndexId i = indices_.sum({{path[0], 1}}, -left);
    const Index range = indices_[i];
    Path rest(path.begin() + 1, path.end());
    auto outside = [&]() -> int {
      if (e->border == Border::value) return value(e->children[1], env, rest);
      return literal(leaf_of_path(e->type, path).second, 0);
    };
    auto inside = [&](IndexId position) {
      rest.insert(rest.begin(), position);
      const int v = value(e->children[0], env, rest);
      rest.erase(rest.begin());
      return v;
    };
    switch (e->border) {
      case Border::value:
      case Border::open:
        break;
      case Border::clamp:
        return n == 0 ? fail() : inside(indices_.clamp(i, 0, n - 1));
      case Border::mirror:
        return n == 0 ? fail() : inside(indices_.mirror(i, n));
      case Border::wrap:
        return n == 0 ? fail() : inside(indices_.modulus(i, n));
    }
    if (n == 0 || range.high < 0 || range.low >= n) return outside();
    const auto condition = within(i, 0, n);
    const int a = inside(indices_.clamp(i, 0, n - 1));
    return condition ? select(*condition, a, outside()) : a;
  }

  int concatenated(Expr e, int env, const Path& path) {
    const Index range = indices_[path[0]];
    int so_far = -1;
    int64_t first = 0;
    for (Expr part : e->children) {
      const int64_t n = extent(part), begin = first;
      first += n;
      if (n == 0 || range.high < begin || range.low >= first) continue;
      Path inner = path;
      inner[0] = indices_.clamp(indices_.sum({{path[0], 1}}, -begin), 0, n - 1);
      const int v = value(part, env, inner);
      if (failed_) return v;
      // Parts after this one decide for themselves.
      so_far = so_far < 0 ? v : select(*within(path[0], begin, std::max(begin, indices_[path[0]].high) + 1), v, so_far);
    }
    return so_far < 0 ? fail() : so_far;
  }

  // ---- Buffers -----------------------------------------------------------------------------------------------------

  int add_buffer(Scalar scalar, int64_t count) {
    out_.buffers.push_back({scalar, count, nullptr, {}});
    return static_cast<int>(out_.buffers.size()) - 1;
  }

  int tensor_buffer(const Tensor& tensor) {
    const int id = add_buffer(tensor.scalar(), tensor.size());
    Buffer& buffer = out_.buffers.back();
    if (row(tensor.scalar()).bits == 4 || tensor.scalar() == Scalar::boolean) {
      buffer.own.resize(static_cast<size_t>(buffer.count));
      read_column(tensor, 0, buffer.count, buffer.own.data());
      buffer.data = buffer.own.data();
    } else {
      buffer.data = tensor.data();
    }
    return id;
  }

  int parameter_buffer(Expr e) {
    auto [place, is_new] = tensors_.emplace(e, -1);
    if (is_new) place->second = tensor_buffer(bindings_.at(e->name));
    return place->second;
  }

  int constant_buffer(Expr e) {
    auto [place, is_new] = tensors_.emplace(e, -1);
    if (is_new) place->second = tensor_buffer(e->constant);
    return place->second;
  }

  int element_of(int buffer, Type type, const Path& path) { return load(buffer, offset(type, path)); }

  // Row-major offset of the indices of a path among the scalars with the same components.
  IndexId offset(Type type, const Path& path) {
    std::vector<std::pair<IndexId, int64_t>> parts;
    for (IndexId i : path) {
      if (type->is_array()) {
        for (auto& part : parts) part.second *= type->size.value();
        parts.emplace_back(i, 1);
        type = type->element;
      } else {
        type = type->parts[static_cast<size_t>(component(i))];
      }
    }
    return indices_.sum(parts);
  }

  // The scalars of a type without their array indices: (a, [4](b, c)) has three. Their extents and types.
  struct Leaf {
    Path components;  // -1 where an index belongs
    std::vector<int64_t> extents;
    Scalar scalar;
  };
  static std::vector<Leaf> leaves(Type type) {
    std::vector<Leaf> out;
    if (type->is_scalar()) return {{{}, {}, type->scalar}};
    if (type->is_array()) {
      out = leaves(type->element);
      for (Leaf& leaf : out) {
        leaf.components.insert(leaf.components.begin(), -1);
        leaf.extents.insert(leaf.extents.begin(), type->size.value());
      }
      return out;
    }
    for (size_t i = 0; i < type->parts.size(); ++i) {
      for (Leaf& leaf : leaves(type->parts[i])) {
        leaf.components.insert(leaf.components.begin(), static_cast<IndexId>(i));
        out.push_back(std::move(leaf));
      }
    }
    return out;
  }
  static size_t leaf_count(Type type) {
    if (type->is_scalar()) return 1;
    if (type->is_array()) return leaf_count(type->element);
    size_t n = 0;
    for (Type part : type->parts) n += leaf_count(part);
    return n;
  }
  std::pair<size_t, Scalar> leaf_of_path(Type type, const Path& path) const {
    size_t leaf = 0;
    for (IndexId i : path) {
      if (type->is_array()) {
        type = type->element;
      } else {
        const auto c = static_cast<size_t>(component(i));
        for (size_t k = 0; k < c; ++k) leaf += leaf_count(type->parts[k]);
        type = type->parts[c];
      }
    }
    return {leaf, type->scalar};
  }
  // A path to the leaf with fresh variables as its indices; the variables are added to `variables`.
  Path fresh_path(const Leaf& leaf, std::vector<IndexId>& variables) {
    Path path;
    size_t dimension = 0;
    for (IndexId c : leaf.components) {
      if (c < 0) {
        path.push_back(indices_.variable(leaf.extents[dimension++], 0));
        variables.push_back(path.back());
      } else {
        path.push_back(indices_.constant(c));
      }
    }
    return path;
  }

  // ---- Folds as loops ----------------------------------------------------------------------------------------------

  static bool has_elements(Expr fold) { return fold->pattern != Pattern::iterate; }
  static int64_t steps_of(Expr fold) { return has_elements(fold) ? extent(fold->children[2]) : fold->sizes[0].value(); }

  int folded(Expr e, int env, const Path& path) {
    if (steps_of(e) == 0) return value(e->children[1], env, path);
    if (is_clean(env)) {
      if (auto v = staged(e, env, path)) return *v;
      if (failed_) return fail();
    }
    return looped(e, env, path);
  }

  // An inline loop; fails where the accumulator's elements mix. A loop is complete when this returns: what later asks
  // for a scalar that it does not have gets another loop, since it may depend on this one's result.
  int looped(Expr e, int env, const Path& path) {
    const Scalar scalar = leaf_of_path(e->type, path).second;
    auto result = [&](int id, size_t slot) {
      Value v{Value::result};
      v.scalar = scalar;
      v.a = id;
      v.b = static_cast<int>(slot);
      v.scope = scope_;
      return intern(v);
    };
    std::vector<int>& earlier = loop_ids_[std::tuple(e, env, scope_)];
    for (int id : earlier) {
      const auto& paths = open_[static_cast<size_t>(id)].paths;
      const auto place = std::find(paths.begin(), paths.end(), path);
      if (place != paths.end()) return result(id, static_cast<size_t>(place - paths.begin()));
    }
    const auto id = static_cast<int>(out_.loops.size());
    const int scope = indices_.new_scope(scope_), outer_scope = scope_;
    const double outer_evaluations = evaluations_;
    const IndexId variable = indices_.variable(steps_of(e), scope);
    out_.loops.push_back({scope, steps_of(e), variable, {}});
    open_.emplace_back();
    slot_of(id, path, scalar);
    int f = bind({Frame::accumulators, env, env, nullptr, -1, id});
    if (has_elements(e)) f = bind({Frame::element, f, env, e->children[2], variable, -1});
    // The body may ask for scalars of the accumulator that nobody asked for yet: they become slots further on.
    for (size_t i = 0; i < open_[static_cast<size_t>(id)].paths.size() && !failed_; ++i) {
      const Path wanted = open_[static_cast<size_t>(id)].paths[i];
      const int initial = value(e->children[1], env, wanted);
      scope_ = scope;
      evaluations_ *= static_cast<double>(steps_of(e));
      const int body = value(e->children[0]->children[0], f, wanted);
      scope_ = outer_scope;
      evaluations_ = outer_evaluations;
      Loop::Slot& slot = out_.loops[static_cast<size_t>(id)].slots[i];
      slot.initial = initial;
      slot.body = body;
    }
    if (failed_) return fail();
    loop_ids_[std::tuple(e, env, scope_)].push_back(id);
    return result(id, 0);
  }

  size_t slot_of(int loop, const Path& path, Scalar scalar) {
    auto& paths = open_[static_cast<size_t>(loop)].paths;
    const auto place = std::find(paths.begin(), paths.end(), path);
    const auto slot = static_cast<size_t>(place - paths.begin());
    if (place == paths.end()) {
      paths.push_back(path);
      out_.loops[static_cast<size_t>(loop)].slots.push_back({-1, -1, scalar});
    }
    return slot;
  }

  int accumulator(int loop, Scalar scalar, const Path& path) {
    OpenLoop& open = open_[static_cast<size_t>(loop)];
    const int scope = out_.loops[static_cast<size_t>(loop)].scope;
    // A position that changes inside the loop, or ever more positions: the elements mix.
    bool mixes = open.paths.size() >= most_slots;
    for (IndexId i : path) {
      mixes = mixes || indices_.scope(indices_[i].scope).depth >= indices_.scope(scope).depth;
    }
    if (mixes) return fail();
    Value v{Value::accumulator};
    v.scalar = scalar;
    v.a = loop;
    v.b = static_cast<int>(slot_of(loop, path, scalar));
    v.scope = scope;
    return intern(v);
  }

  // ---- Stages ------------------------------------------------------------------------------------------------------

  // The same surroundings with every map's element at a variable of its own, which runs over the whole array.
  struct Domain {
    IndexId variable, index;  // the map's own position in the surroundings that asked
    int64_t extent;
  };
  int widened(int f, std::vector<Domain>& domains, std::map<int, int>& done) {
    if (f < 0) return -1;
    if (auto place = done.find(f); place != done.end()) return place->second;
    const Frame old = frame(f);
    Frame fresh = old;
    fresh.outer = widened(old.outer, domains, done);
    fresh.env = widened(old.env, domains, done);
    if (old.kind == Frame::element) {
      auto [place, is_new] = domain_variables_.emplace(std::tuple(fresh.outer, fresh.env, old.value), -1);
      if (is_new) place->second = indices_.variable(extent(old.value), 0);
      fresh.index = place->second;
      domains.push_back({fresh.index, old.index, extent(old.value)});
    }
    return done[f] = bind(fresh);
  }

  // What stands in a stage's buffer: the variables of the domains that are its leading dimensions.
  struct Kept {
    bool usable = false;
    int buffer = -1;
    std::vector<IndexId> variables;
  };

  // The scalar out of a stage that computes all of `e`; empty where that would be more work than it saves.
  std::optional<int> staged(Expr e, int env, const Path& path) {
    if (e->open == 0) env = -1;
    if (!is_clean(env)) return std::nullopt;
    std::vector<Domain> domains;
    std::map<int, int> done;
    const int wide = widened(env, domains, done);
    const size_t leaf = leaf_of_path(e->type, path).first;
    const auto key = std::tuple(e, wide, leaf);
    auto place = kept_.find(key);
    if (place == kept_.end()) {
      make_stage(e, wide, domains, leaf);
      if (failed_) return std::nullopt;
      place = kept_.find(key);
    }
    const Kept& kept = place->second;
    if (!kept.usable) return std::nullopt;
    std::vector<std::pair<IndexId, int64_t>> parts;
    auto append = [&](IndexId i, int64_t n) {
      for (auto& part : parts) part.second *= n;
      parts.emplace_back(i, 1);
    };
    for (size_t i = 0; i < kept.variables.size(); ++i) {
      for (const Domain& d : domains) {
        if (d.variable == kept.variables[i]) {
          append(d.index, d.extent);
          break;
        }
      }
    }
    Type type = e->type;
    for (IndexId i : path) {
      if (type->is_array()) {
        append(i, type->size.value());
        type = type->element;
      } else {
        type = type->parts[static_cast<size_t>(component(i))];
      }
    }
    return load(kept.buffer, indices_.sum(parts));
  }

  int staged_or_fail(Expr e, int env, const Path& path) {
    if (e->pattern == Pattern::scatter && extent(e->children[0]) == 0) return value(e->children[2], env, path);
    auto v = staged(e, env, path);
    return v ? *v : fail();
  }

  // Adds the stage that computes `e` in the widened surroundings and enters it in kept_, or enters that it is not worth
  // it.
  void make_stage(Expr e, int env, const std::vector<Domain>& domains, size_t leaf) {
    const int outer_scope = scope_;
    const double outer_evaluations = evaluations_, outer_plain = plain_;
    scope_ = 0;
    double all = static_cast<double>(scalar_count_of(e->type).value());
    for (const Domain& d : domains) all *= static_cast<double>(d.extent);
    evaluations_ = plain_ = all;
    const bool is_loop = e->pattern == Pattern::fold || e->pattern == Pattern::reduce || e->pattern == Pattern::iterate;
    if (e->pattern == Pattern::scan)
      make_serial_stage(e, env, domains);
    else if (e->pattern == Pattern::scatter)
      make_scatter_stage(e, env, domains);
    else if (!make_plain_stage(e, env, domains, leaf, is_loop, outer_plain, outer_evaluations) && is_loop) {
      failed_ = false;
      make_serial_stage(e, env, domains);
    }
    scope_ = outer_scope;
    evaluations_ = outer_evaluations;
    plain_ = outer_plain;
  }

  bool make_plain_stage(Expr e, int env, const std::vector<Domain>& domains, size_t leaf_number, bool is_loop,
                        double plain, double evaluations) {
    const Leaf leaf = leaves(e->type)[leaf_number];
    std::vector<IndexId> variables;
    const Path path = fresh_path(leaf, variables);
    const int root = is_loop ? looped(e, env, path) : value(e, env, path);
    if (failed_) return false;
    const std::vector<Domain> used = used_domains(domains, {root});
    std::vector<int64_t> extents;
    std::vector<IndexId> all_variables;
    Kept kept;
    for (const Domain& d : used) {
      extents.push_back(d.extent);
      all_variables.push_back(d.variable);
    }
    kept.variables = all_variables;
    extents.insert(extents.end(), leaf.extents.begin(), leaf.extents.end());
    all_variables.insert(all_variables.end(), variables.begin(), variables.end());
    double count = 1;
    for (int64_t extent : extents) count *= static_cast<double>(extent);
    kept.usable = count <= static_cast<double>(most_stage_elements) && (count <= plain || count <= evaluations / 2);
    if (kept.usable) kept.buffer = add_plain_stage(root, extents, all_variables);
    kept_.emplace(std::tuple(e, env, leaf_number), kept);
    return true;
  }

  int add_plain_stage(int root, const std::vector<int64_t>& extents, const std::vector<IndexId>& variables) {
    Stage stage;
    stage.programs.push_back(emit(out_, root, extents, variables));
    stage.buffers.push_back(add_buffer(at(root).scalar, stage.programs[0].count));
    out_.stages.push_back(std::move(stage));
    return out_.stages.back().buffers[0];
  }

  // A fold, scan or iterate whose states are kept whole, each computed from the one before.
  void make_serial_stage(Expr e, int env, const std::vector<Domain>& domains) {
    const Type type = e->children[1]->type;
    const std::vector<Leaf> all = leaves(type);
    Stage stage;
    stage.kind = Stage::serial;
    stage.keeps_all = e->pattern == Pattern::scan;
    stage.steps = steps_of(e);
    stage.step = indices_.variable(stage.steps, 0);
    for (const Leaf& leaf : all) stage.states.push_back(add_buffer(leaf.scalar, product(leaf.extents)));
    const auto id = static_cast<int>(serial_.size());
    serial_.push_back(stage);
    int f = bind({Frame::state, env, env, nullptr, -1, id});
    if (has_elements(e)) f = bind({Frame::element, f, env, e->children[2], stage.step, -1});
    std::vector<int> roots;
    std::vector<std::vector<IndexId>> variables;
    for (bool first : {true, false}) {
      for (const Leaf& leaf : all) {
        variables.emplace_back();
        const Path path = fresh_path(leaf, variables.back());
        roots.push_back(first ? value(e->children[1], env, path) : value(e->children[0]->children[0], f, path));
        if (failed_) return;
      }
    }
    std::vector<const Leaf*> shapes;
    for (size_t i = 0; i < roots.size(); ++i) shapes.push_back(&all[i % all.size()]);
    finish(std::move(stage), e, env, domains, all, roots, variables, shapes);
  }

  void make_scatter_stage(Expr e, int env, const std::vector<Domain>& domains) {
    Expr positions = e->children[0];
    const std::vector<Leaf> updates = leaves(e->children[1]->type), bases = leaves(e->type);
    const std::vector<Leaf> places = leaves(positions->type);
    Stage stage;
    stage.kind = Stage::scatter;
    stage.steps = extent(positions);
    stage.base_count = extent(e);
    std::vector<int> roots;
    std::vector<std::vector<IndexId>> variables;
    std::vector<const Leaf*> shapes;
    auto add = [&](Expr part, const Leaf& leaf) {
      variables.emplace_back();
      const Path path = fresh_path(leaf, variables.back());
      roots.push_back(value(part, env, path));
      shapes.push_back(&leaf);
    };
    add(positions, places[0]);
    for (const Leaf& leaf : updates) add(e->children[1], leaf);
    for (const Leaf& leaf : bases) add(e->children[2], leaf);
    if (failed_) return;
    finish(std::move(stage), e, env, domains, bases, roots, variables, shapes);
  }

  // Programs, buffers and kept entries of a stage that computes all scalars of its value at once.
  void finish(Stage stage, Expr e, int env, const std::vector<Domain>& domains, const std::vector<Leaf>& all,
              const std::vector<int>& roots, const std::vector<std::vector<IndexId>>& variables,
              const std::vector<const Leaf*>& shapes) {
    const std::vector<Domain> used = used_domains(domains, roots);
    double count = stage.keeps_all ? static_cast<double>(stage.steps) : 1;
    for (const Domain& d : used) {
      stage.outer.push_back(d.extent);
      stage.outer_variables.push_back(d.variable);
      count *= static_cast<double>(d.extent);
    }
    for (size_t i = 0; i < roots.size(); ++i)
      stage.programs.push_back(emit(out_, roots[i], shapes[i]->extents, variables[i]));
    for (const Leaf& leaf : all) {
      const int64_t size = product(leaf.extents);
      if (count * static_cast<double>(size) > static_cast<double>(most_stage_elements)) {
        fail();
        return;
      }
      stage.buffers.push_back(add_buffer(leaf.scalar, static_cast<int64_t>(count) * size));
    }
    for (size_t i = 0; i < all.size(); ++i) {
      kept_[std::tuple(e, env, i)] = {true, stage.buffers[i], stage.outer_variables};
    }
    out_.stages.push_back(std::move(stage));
  }

  static int64_t product(const std::vector<int64_t>& extents) {
    int64_t n = 1;
    for (int64_t extent : extents) n *= extent;
    return n;
  }

  // Those domains whose variable one of the values depends on.
  std::vector<Domain> used_domains(const std::vector<Domain>& domains, const std::vector<int>& roots) const {
    const Reach reach = reach_of(out_, roots);
    std::vector<Domain> used;
    for (const Domain& d : domains) {
      const Index& i = indices_[d.variable];
      if (!i.terms.empty() && reach.variables.count(i.terms[0].first) > 0) used.push_back(d);
    }
    return used;
  }

  const Bindings& bindings_;
  Compiled& out_;
  Indices& indices_;
  uintptr_t base_ = 0;
  bool failed_ = false;
  int scope_ = 0;           // of the innermost loop being compiled
  double evaluations_ = 1;  // how often what is being compiled will be computed
  double plain_ = 1;        // the same without its loops
  std::map<Value, int> value_ids_;
  std::vector<Frame> frames_;
  std::vector<bool> clean_;
  std::map<Frame, int> frame_ids_;
  std::map<Key, int> memo_;
  std::unordered_map<Expr, int> tensors_;
  std::unordered_map<Expr, bool> computes_;
  std::vector<OpenLoop> open_;  // by loop
  std::map<std::tuple<Expr, int, int>, std::vector<int>> loop_ids_;
  std::vector<Stage> serial_;
  std::map<std::tuple<int, int, Expr>, IndexId> domain_variables_;
  std::map<std::tuple<Expr, int, size_t>, Kept> kept_;
};

// Stages whose buffers nobody reads in the end are left out: they were tried and not worth it.
void drop_unread_stages(Compiled& compiled) {
  std::vector<bool> read(compiled.buffers.size());
  std::vector<Stage> kept;
  read[static_cast<size_t>(compiled.stages.back().buffers[0])] = true;
  for (size_t i = compiled.stages.size(); i-- > 0;) {
    Stage& stage = compiled.stages[i];
    const bool wanted =
        std::any_of(stage.buffers.begin(), stage.buffers.end(), [&](int b) { return read[static_cast<size_t>(b)]; });
    if (!wanted) continue;
    for (const CompiledTerm& program : stage.programs) {
      for (const auto& list : program.lists) {
        for (const Instruction& instruction : list) {
          if (instruction.kind == Instruction::load) read[static_cast<size_t>(instruction.a)] = true;
        }
      }
    }
    kept.push_back(std::move(stage));
  }
  std::reverse(kept.begin(), kept.end());
  compiled.stages = std::move(kept);
}

}  // namespace

std::unique_ptr<Compiled> compile(Expr e, const Bindings& bindings) {
  auto compiled = std::make_unique<Compiled>();
  Compiler compiler(bindings, *compiled);
  if (!compiler.run(e)) return nullptr;
  drop_unread_stages(*compiled);
  return compiled;
}

}  // namespace hoist
