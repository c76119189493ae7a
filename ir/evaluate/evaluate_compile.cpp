// Compiles by symbolic evaluation. As in the interpreter, one function computes the scalar of a term at a path and a
// map binds a variable to one element; here, however, the indices of a path are positions in terms of variables, and
// the result is scalar code. Folds become loops whose accumulators are the scalars that the loop bodies use. A value
// that would be recomputed at many positions becomes a stage over the elements that the enclosing maps range over
// (their "domains"); a fold that mixes its accumulator's elements becomes a serial stage.
#include "ir/evaluate/evaluate_compile.h"

#include <algorithm>

#include "ir/evaluate/evaluate_compiler.h"
#include "ir/evaluate/interpreter/interpret_check.h"

namespace hoist {
namespace evaluation {

bool Compiler::run(Expr e) {
  std::vector<int64_t> extents = shape_of(e->type);
  evaluations_ = plain_ = static_cast<double>(scalar_count_of(e->type).value());
  Path path;
  for (int64_t extent : extents) path.push_back(indices_.variable(extent, 0));
  int root = value(e, -1, path);
  if (failed_) return false;
  add_plain_stage(root, extents, path);
  return true;
}

bool Compiler::formula(Expr e, ElementFormula& out) {
  if (!leaf_of(e->type)->is_scalar() || e->free > 0) return false;
  const Bindings none;
  Compiler compiler(none, out.parts);
  compiler.reads_ = &out.reads;
  for (int64_t extent : shape_of(e->type)) {
    if (extent == 0) return false;
    out.position.push_back(compiler.indices_.variable(extent, 0));
  }
  out.root = compiler.value(e, -1, out.position);
  return !compiler.failed_;
}

// ---- Values ------------------------------------------------------------------------------------------------------

int Compiler::intern(Value v) {
  auto [place, is_new] = value_ids_.emplace(v, static_cast<int>(out_.values.size()));
  if (is_new) out_.values.push_back(v);
  return place->second;
}

int Compiler::literal(Scalar scalar, uint64_t word) {
  Value v{Value::literal};
  v.scalar = scalar;
  v.low = word;
  return intern(v);
}

int Compiler::load(int buffer, IndexId offset) {
  Value v{Value::load};
  v.scalar = out_.buffers[static_cast<size_t>(buffer)].scalar;
  v.a = buffer;
  v.index = offset;
  v.scope = indices_[offset].scope;
  return intern(v);
}

int Compiler::select(int condition, int a, int b) {
  if (a == b) return a;
  Value v{Value::selection};
  v.scalar = at(a).scalar;
  v.a = condition;
  v.b = a;
  v.c = b;
  v.scope = indices_.deeper(at(condition).scope, indices_.deeper(at(a).scope, at(b).scope));
  return intern(v);
}

std::optional<int> Compiler::within(IndexId index, int64_t low, int64_t high) {
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

int Compiler::fail() {
  failed_ = true;
  return literal(Scalar::boolean, 0);
}

// ---- Frames ------------------------------------------------------------------------------------------------------

int Compiler::bind(Frame frame) {
  auto [place, is_new] = frame_ids_.emplace(frame, static_cast<int>(frames_.size()));
  if (is_new) {
    frames_.push_back(frame);
    const bool own = frame.kind == Frame::element || frame.kind == Frame::whole;
    clean_.push_back(own && is_clean(frame.outer));
  }
  return place->second;
}

// ---- The scalar of a term at a path ------------------------------------------------------------------------------

int Compiler::value(Expr e, int env, const Path& path) {
  char here;
  if (base_ - reinterpret_cast<uintptr_t>(&here) > usual_stack ||
      memo_.size() > (reads_ == nullptr ? most_values : most_formula_values))
    failed_ = true;
  if (failed_) return fail();
  if (e->pattern == Pattern::bound) return variable(e, env, path);
  const Place place{e, e->free == 0 ? -1 : env, scope_, path};
  auto found = memo_.find(place);
  if (found != memo_.end()) return found->second;
  const int v = compute(e, place.env, path);
  if (!failed_) memo_.emplace(place, v);
  return v;
}

int Compiler::compute(Expr e, int env, const Path& path) {
  auto child = [&](size_t i) { return e->children[i]; };
  auto rest = [&](size_t from) { return Path(path.begin() + static_cast<ptrdiff_t>(from), path.end()); };
  switch (e->pattern) {
    case Pattern::parameter: {
      if (reads_ != nullptr && !leaf_of(e->type)->is_scalar()) return fail();
      const int v = element_of(parameter_buffer(e), e->type, path);
      if (reads_ != nullptr) reads_->emplace(v, ElementFormula::Read{e->name, path});
      return v;
    }
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
    case Pattern::cast:
    case Pattern::reinterpret: {
      Value v{Value::conversion};
      v.same_bits = e->pattern == Pattern::reinterpret;
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
    case Pattern::host:
      return staged_or_fail(e, env, path);
    default:
      return viewed(e, env, path);
  }
}

int Compiler::viewed(Expr e, int env, const Path& path) {
  auto child = [&](size_t i) { return e->children[i]; };
  auto with = [&](std::vector<IndexId> front, size_t from) {
    front.insert(front.end(), path.begin() + static_cast<ptrdiff_t>(from), path.end());
    return front;
  };
  switch (e->pattern) {
    case Pattern::get:
      return value(child(0), env, with({indices_.constant(e->integers[0])}, 0));
    case Pattern::zip:
      return value(child(static_cast<size_t>(component(path[1]))), env, with({path[0]}, 2));
    case Pattern::repeat:
      return value(child(0), env, Path(path.begin() + 1, path.end()));
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
      if (n == 0) return fail();  // only the interpreter can report the error if the element is used
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
    default:  // operator calls are inlined before
      break;
  }
  HOIST_CHECK(false, "a term that has no value: " + std::string(row(e->pattern).name));
  return -1;
}

int Compiler::variable(Expr e, int env, const Path& path) {
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

int Compiler::kept(Expr e, int env, const Path& path) {
  if (e->type->is_array() && computes(e)) {
    if (auto v = staged(e, env, path)) return *v;
  }
  return value(e, env, path);
}

bool Compiler::computes(Expr e) {
  switch (e->pattern) {
    case Pattern::call:
      return true;
    case Pattern::reduce:
    case Pattern::fold:
    case Pattern::iterate:
    case Pattern::scan:
    case Pattern::scatter:
    case Pattern::host:
    case Pattern::materialise:
      return false;  // they have their own stages
    default:
      break;
  }
  auto [place, is_new] = computes_.emplace(e, false);
  if (!is_new) return place->second;
  bool any = false;
  for (Expr c : e->children) any = any || computes(c);
  return computes_[e] = any;
}

IndexId Compiler::computed(int position, int64_t n) {
  const Value v = at(position);
  if (v.kind == Value::position && indices_[v.index].low >= 0 && indices_[v.index].high < n &&
      row(v.scalar).bits >= 32) {
    return v.index;
  }
  return indices_.computed(position, n, v.scope);
}

int Compiler::padded(Expr e, int env, const Path& path) {
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
    case Border::undefined:
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

int Compiler::concatenated(Expr e, int env, const Path& path) {
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
    // Later parts select themselves, so there is no upper bound here.
    so_far = so_far < 0 ? v : select(*within(path[0], begin, std::max(begin, indices_[path[0]].high) + 1), v, so_far);
  }
  return so_far < 0 ? fail() : so_far;
}

}  // namespace evaluation

namespace {

// Drops stages whose buffers have no use: candidates that did not pay off.
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

std::unique_ptr<ElementFormula> element_formula(Expr term) {
  auto out = std::make_unique<ElementFormula>();
  return evaluation::Compiler::formula(term, *out) ? std::move(out) : nullptr;
}

std::unique_ptr<Compiled> compile(Expr e, const Bindings& bindings) {
  auto compiled = std::make_unique<Compiled>();
  evaluation::Compiler compiler(bindings, *compiled);
  if (!compiler.run(e)) return nullptr;
  drop_unread_stages(*compiled);
  return compiled;
}

}  // namespace hoist
