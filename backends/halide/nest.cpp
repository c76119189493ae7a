// Write views: the result's nest walked from the outside. Layout patterns around the nest are inverted and give the
// place of an element, a map with a mode opens a loop, and at the bottom are the values and the index.
#include <fmt/format.h>

#include "backends/halide/emitter.h"

namespace hoist::emission {
namespace {

bool is_turnable(Expr e) {
  switch (e->pattern) {
    case Pattern::join:
    case Pattern::split:
    case Pattern::transpose:
    case Pattern::slice:
    case Pattern::untile:
      return true;
    case Pattern::pad:
      return e->border == Border::undefined;
    default:
      return false;
  }
}

// True if the body of a function of one argument consists of layout patterns around that argument alone.
bool is_layout_body(Expr body) {
  if (body->pattern == Pattern::bound) return body->integers[0] == 0;
  if (is_turnable(body)) return is_layout_body(body->children[0]);
  if (body->pattern == Pattern::map && body->mode == Mode::view) {
    return is_layout_body(body->children[0]->children[0]) && is_layout_body(body->children[1]);
  }
  return false;
}

WriteView write(std::function<WriteView(H::Expr)> at) { return WriteView{std::move(at), {}}; }

WriteView write_permuted(const WriteView& w, const std::vector<int64_t>& permutation,
                         const std::vector<H::Expr>& so_far) {
  if (so_far.size() == permutation.size()) {
    WriteView out = w;
    for (int64_t p : permutation) out = out.at(so_far[static_cast<size_t>(p)]);
    return out;
  }
  return write([=](const H::Expr& i) {
    std::vector<H::Expr> next = so_far;
    next.push_back(i);
    return write_permuted(w, permutation, next);
  });
}

}  // namespace

// The write view of a layout pattern's argument, from that of its result.
WriteView Emitter::turn(Expr e, const WriteView& w, Nest& nest) {
  switch (e->pattern) {
    case Pattern::join: {
      H::Expr k = number(e->children[0]->type->element->size);
      return write([=](const H::Expr& o) { return write([=](const H::Expr& i) { return w.at(o * k + i); }); });
    }
    case Pattern::split: {
      H::Expr k = number(e->sizes[0]);
      return write([=](const H::Expr& i) { return w.at(i / k).at(i % k); });
    }
    case Pattern::transpose:
      return write_permuted(w, e->integers, {});
    case Pattern::pad: {
      H::Expr left = number(e->sizes[0]);
      return write([=](const H::Expr& i) { return w.at(i + left); });
    }
    case Pattern::slice: {
      const Nat start = e->sizes[0], count = e->sizes[1];
      if (e->integers[0] != 1)
        unsupported(fmt::format("a slice with step {} around the written array", e->integers[0]), "use step 1");
      const Nat whole = e->children[0]->type->size;
      return write([=, &nest](const H::Expr& i) {
        if (start != Nat(0) || count != whole) nest.limits.push_back({i, start, start + count});
        return w.at(start == Nat(0) ? i : i - number(start));
      });
    }
    case Pattern::untile: {
      const Nat k = e->children[0]->type->element->size, n = e->sizes[0];
      return write([=](const H::Expr& o) {
        H::Expr start = hoist::divides(k, n) == Answer::yes ? o * number(k) : H::min(o * number(k), number(n - k));
        return write([=](const H::Expr& i) { return w.at(start + i); });
      });
    }
    case Pattern::map:
      return write(
          [=, this, &nest](const H::Expr& i) { return turn_body(e->children[0]->children[0], w.at(i), nest); });
    default:
      HOIST_CHECK(false, "not a layout pattern");
      std::abort();
  }
}

WriteView Emitter::turn_body(Expr body, const WriteView& w, Nest& nest) {
  if (body->pattern == Pattern::bound) return w;
  Expr inner = body->pattern == Pattern::map ? body->children[1] : body->children[0];
  return turn_body(inner, turn(body, w, nest), nest);
}

Loop Emitter::open(const Nat& extent, Mode mode, int dimension, const Nest& nest) {
  if (extent == Nat(0)) unsupported("an empty array inside a kernel");
  const int64_t steps = extent.constant().value_or(0);  // 0: known at run time
  if (mode == Mode::vec && steps != 2 && steps != 4 && steps != 8 && steps != 16) {
    unsupported(fmt::format("a vec map over {} elements", extent.text()),
                "vectors have 2, 4, 8 or 16 elements: split the array first");
  }
  if (mode == Mode::unroll && (steps == 0 || steps > 1024)) {
    unsupported(fmt::format("an unroll map over {} elements", extent.text()), "at most 1024 are unrolled");
  }
  static constexpr std::string_view names[] = {"seq", "seq", "unroll", "vec", "group", "group", "local", "matrix"};
  Loop loop;
  loop.variable = H::Var(fmt::format("{}v{}", names[static_cast<size_t>(mode)], fresh_++));
  loop.extent = extent;
  loop.mode = mode == Mode::view ? Mode::seq : mode;
  loop.dimension = dimension;
  loop.owner = nest.func.name();
  return loop;
}

// True if an inner fold starts from the same element of the accumulator that it will write; both folds are then one
// reduction.
bool Emitter::passes_on(const Value& initial, Type type, const WriteView& w, Nest& nest) {
  Layout layout = layout_of(type);
  if (layout.tuple_outside) return false;
  std::vector<Limit> limits = nest.limits;
  Value v = initial;
  WriteView target = w;
  for (size_t i = 0; i < layout.shape.size(); ++i) {
    H::Var d(fmt::format("probe{}", i));
    v = v.at(d);
    target = target.at(d);
  }
  nest.limits = limits;
  if (target.index.size() != nest.own_rank) return false;
  std::vector<Value> components = v.parts.empty() ? std::vector<Value>{v} : v.parts;
  for (size_t c = 0; c < components.size(); ++c) {
    H::Expr e = components[c].scalar;
    if (const auto* compared = e.as<H::Internal::NE>()) e = compared->a;
    const auto* call = e.as<H::Internal::Call>();
    if (call == nullptr || call->name != nest.func.name() || call->value_index != static_cast<int>(c)) return false;
    for (size_t i = 0; i < nest.own_rank; ++i) {
      // Own dimensions are stored innermost first.
      H::Expr difference = H::Internal::simplify(call->args[nest.own_offset + nest.own_rank - 1 - i] - target.index[i]);
      if (!H::Internal::is_const_zero(difference)) return false;
    }
  }
  return true;
}

void Emitter::finish(Nest& nest, const Value& v, Type type, const WriteView& w) {
  Layout layout = layout_of(type);
  HOIST_CHECK(layout.shape.empty(), "the bottom of a nest is a scalar");
  nest.index = w.index;
  if (v.parts.empty()) nest.values = {v.scalar};
  for (const Value& part : v.parts) nest.values.push_back(part.scalar);
}

// An array without a nest of its own: plain loops over it.
void Emitter::copy(const Value& v, Type type, const WriteView& w, Nest& nest) {
  Layout layout = layout_of(type);
  Value element = v;
  WriteView target = w;
  Inside inside(*this);
  for (const Nat& n : layout.shape) {
    Loop loop = open(n, Mode::seq, 0, nest);
    nest.loops.push_back(loop);
    inside.push(loop);
    if (layout.tuple_outside) {
      for (Value& part : element.parts) part = part.at(loop.variable);
    } else {
      element = element.at(loop.variable);
    }
    target = target.at(loop.variable);
  }
  nest.index = target.index;
  if (element.parts.empty()) nest.values = {element.scalar};
  for (const Value& part : element.parts) nest.values.push_back(part.scalar);
}

// The nest writes the initial elements first; the updates follow in order. The open loops enclose both: each iteration
// writes elements of its own.
void Emitter::walk_updates(const std::function<void()>& first, const Nat& count, Nest& nest,
                           const std::function<void(const Loop& step, Nest& updates)>& update) {
  nest.is_result = false;
  nest.around = nest.loops.size();
  nest.func = H::Func("hoist_base");
  const std::vector<Limit> around = nest.limits;
  const size_t first_of_base = stored_.size();
  first();
  // Enclosing loops that are neither groups nor work-items run in both parts.
  const auto belong_to = [&](size_t from, const H::Func& func) {
    for (size_t i = from; i < stored_.size(); ++i) {
      for (Loop& l : stored_[i].enclosing) {
        if (!l.is_launched() && !l.is_reduction) l.owner = func.name();
      }
    }
  };
  belong_to(first_of_base, nest.func);
  auto updates = std::make_shared<Nest>();
  updates->func = H::Func("hoist_updates");
  const size_t first_of_updates = stored_.size();
  const std::vector<Limit> of_base = nest.limits;
  nest.limits = around;  // the views around it add their limits for each index
  change_context();
  if (count != Nat(0)) {
    Loop step;
    step.reduction = H::RDom({{0, number(count)}}, fmt::format("steps{}", fresh_++))[0];
    step.is_reduction = true;
    step.extent = count;
    step.owner = updates->func.name();
    updates->loops.push_back(step);
    Inside inside(*this);
    inside.push(step);
    update(step, *updates);
    belong_to(first_of_updates, updates->func);
    updates->limits.insert(updates->limits.end(), nest.limits.begin(), nest.limits.end());
    nest.updates = updates;
  }
  nest.limits = of_base;
}

// Each update is written where its position says.
void Emitter::walk_scatter(const ScatterForm& e, const WriteView& w, const Environment& env, Nest& nest) {
  const Nat count = e.positions->type->size, n = e.base->type->size;
  const auto base = [&] { walk(e.base, w, env, nest); };
  walk_updates(base, count, nest, [&](const Loop& step, Nest& updates) {
    updates.combine = e.combine;
    const H::Expr position = read(e.positions, env).at(step.reduction).scalar;
    const H::Expr first = H::Internal::make_zero(position.type());
    updates.condition = position >= first && position < H::cast(position.type(), number(n));
    const H::Expr place = H::unsafe_promise_clamped(H::cast<int32_t>(position), 0, number(n - 1));
    const Expr all = e.updates;
    const bool nested = all->pattern == Pattern::map && (all->mode == Mode::view || all->mode == Mode::seq);
    const Value element = read(nested ? all->children[1] : all, env).at(step.reduction);
    if (nested)
      walk(all->children[0]->children[0], w.at(place), extend(env, element), updates);
    else if (all->type->element->is_scalar())
      finish(updates, element, all->type->element, w.at(place));
    else
      copy(element, all->type->element, w.at(place), updates);
  });
}

namespace {

// True if the expression reads only that element of the result.
bool reads_only(const std::vector<H::Expr>& values, const H::Expr& index) {
  struct Reads : H::Internal::IRGraphVisitor {
    H::Expr index;
    bool others = false;
    using IRGraphVisitor::visit;
    void visit(const H::Internal::Call* op) override {
      IRGraphVisitor::visit(op);
      if (op->name == old_marker) others |= !H::Internal::is_const_zero(H::Internal::simplify(op->args[0] - index));
    }
  } reads;
  reads.index = index;
  for (const H::Expr& value : values) value.accept(&reads);
  return !reads.others;
}

}  // namespace

bool Emitter::writes_all(Type type, const WriteView& w, Nest& nest) {
  const std::vector<Limit> limits = nest.limits;
  WriteView place = w;
  for (size_t i = 0; i < sizes_of(type).size(); ++i) place = place.at(H::Var(fmt::format("probe{}", i)));
  const bool all = nest.limits.size() == limits.size();
  nest.limits = limits;
  return all;
}

Value Emitter::held_value(Type type, const WriteView& w, Nest& nest) const {
  const Layout layout = layout_of(type);
  return indexed(layout.shape.size(), [=, this, &nest](const std::vector<H::Expr>& index) {
    const std::vector<Limit> limits = nest.limits;  // these limits apply to written arrays
    WriteView place = w;
    for (const H::Expr& i : index) place = place.at(i);
    nest.limits = limits;
    return Value{scalars_.from_stored(layout.scalars[0], held(flat_index(place.index))), nullptr, {}};
  });
}

// The state of the fold is the result itself. A step folds the old result into temporary arrays, and then changes each
// element separately.
void Emitter::walk_steps(Expr e, const WriteView& w, const Environment& env, Nest& nest) {
  if (!writes_all(e->type, w, nest)) unsupported("a part of an array that steps change", "slice it in another kernel");
  const Value state = held_value(e->type, w, nest);
  const auto start = [&] { walk(e->children[1], w, env, nest); };
  walk_updates(start, e->children[2]->type->size, nest, [&](const Loop& step, Nest& updates) {
    const Value element = read(e->children[2], env).at(step.reduction);
    walk(e->children[0]->children[0], w, extend(extend(env, state), element), updates);
    updates.values = repeated(updates.values, {step.reduction});
    if (!reads_only(updates.values, flat_index(updates.index)))
      unsupported("a fold whose steps read other elements of the array that they change",
                  "fold them by a let around the map that changes it");
  });
}

// Each step reads the result of the previous step.
void Emitter::walk_scan(Expr e, const WriteView& w, const Environment& env, Nest& nest) {
  const Expr body = e->children[0]->children[0];
  const Value elements = read(e->children[2], env);
  const auto first = [&] { walk(body, w.at(0), extend(extend(env, read(e->children[1], env)), elements.at(0)), nest); };
  walk_updates(first, e->type->size - 1, nest, [&](const Loop& step, Nest& updates) {
    const H::Expr before = step.reduction, own = before + 1;
    const Value state = held_value(e->type->element, w.at(before), nest);
    walk(body, w.at(own), extend(extend(env, state), read(e->children[2], env).at(own)), updates);
  });
}

void Emitter::walk(Expr e, const WriteView& w, const Environment& env, Nest& nest) {
  if (is_turnable(e)) return walk(e->children[0], turn(e, w, nest), env, nest);
  switch (e->pattern) {
    case Pattern::map: {
      if (e->mode == Mode::view && is_layout_body(e->children[0]->children[0])) {
        return walk(e->children[1], turn(e, w, nest), env, nest);
      }
      Value a = read(e->children[1], env);
      const Nat n = e->children[1]->type->size;
      Inside inside(*this);
      auto body = [&](const H::Expr& i) { walk(e->children[0]->children[0], w.at(i), extend(env, a.at(i)), nest); };
      auto push = [&](const Nat& extent, Mode mode) {
        Loop loop = open(extent, mode, e->dimension, nest);
        nest.loops.push_back(loop);
        inside.push(loop);
        return H::Expr(loop.variable);
      };
      if (e->mode == Mode::global && options_.gpu) {
        // One element per work-item; a size that divides evenly if there is one, else the last group has idle
        // work-items.
        int64_t most = e->dimension == 0 ? 64 : 4, items = std::min(most, upper_bound(n));
        for (int64_t k = items; k >= most / 2 && k > 0; --k) {
          if (hoist::divides(k, n) == Answer::yes) {
            items = k;
            break;
          }
        }
        H::Expr group = push(ceiling_division(n, items), Mode::group);
        H::Expr item = push(items, Mode::local);
        H::Expr i = group * number(items) + item;
        if (hoist::divides(items, n) != Answer::yes) {
          nest.limits.push_back({i, 0, n});
          i = H::min(i, number(n - 1));
        }
        return body(i);
      }
      return body(push(n, e->mode == Mode::global ? Mode::group : e->mode));
    }
    case Pattern::let:
      return walk(e->children[1]->children[0], w, extend(env, read(e->children[0], env)), nest);
    case Pattern::identity:
      return walk(e->children[0], w, env, nest);
    case Pattern::scan:
      if (nest.is_result && leaf_of(e->type)->is_scalar() && at_most(e->type->size, 1) != Answer::yes &&
          writes_all(e->type, w, nest))
        return walk_scan(e, w, env, nest);
      break;
    case Pattern::scatter:
    case Pattern::reduce:
    case Pattern::fold:
      if (nest.is_result) {
        if (const auto scattered = scatter_form(e)) return walk_scatter(*scattered, w, env, nest);
        if (looks_before_changes(e)) return walk_steps(e, w, env, nest);
      }
      if (e->pattern == Pattern::scatter) break;
      if (e->mode != Mode::vec && nest.merged < nest.pending.size()) {
        Value initial = read(e->children[1], env);
        if (passes_on(initial, e->type, w, nest)) {
          Loop loop;
          loop.reduction = nest.pending[nest.merged++];
          loop.is_reduction = true;
          loop.extent = e->children[2]->type->size;
          loop.mode = e->mode == Mode::view ? Mode::seq : e->mode;
          loop.owner = nest.func.name();
          nest.loops.push_back(loop);
          Inside inside(*this);
          inside.push(loop);
          Value element = read(e->children[2], env).at(loop.reduction);
          return walk(e->children[0]->children[0], w, extend(extend(env, initial), element), nest);
        }
      }
      break;
    default:
      break;
  }
  Value v = read(e, env);
  if (layout_of(e->type).shape.empty()) return finish(nest, v, e->type, w);
  copy(v, e->type, w, nest);
}

}  // namespace hoist::emission
