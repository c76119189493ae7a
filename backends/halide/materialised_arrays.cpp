// The arrays that a kernel stores: folds, scans and materialised arrays become Funcs. Their dimensions are their own
// (an array for a register tile), the unroll and vec loops around their place (so that a fold under a vec map is a fold
// of vectors), and the other enclosing loops, which have one value where the Func is computed.
//
// A fold under a data-dependent condition is always computed: otherwise the selection would be between a value and
// memory that was never written, and PoCL 3.1 (LLVM 14) reads that memory, for vectors even under a condition of
// indices. A fold under a condition of indices (a border) leaves zeros where it is skipped, and a scan starts full of
// its initial value: the indices of a fold are inside its array only where the condition holds, so the fold cannot be
// computed everywhere.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <span>

#include "backends/halide/emitter.h"
#include "backends/halide/stage_loops.h"

namespace hoist::emission {
namespace {

// Simplifies the indices of loads only: simplifying values would not be exact on floats.
class SimplifyIndices : public H::Internal::IRGraphMutator {
 protected:
  using IRGraphMutator::visit;
  H::Internal::Scope<H::Internal::Interval> extents_;  // extents of the enclosing loops, if they are known

  H::Expr simple(const H::Expr& e) const { return H::Internal::simplify(e, true, extents_); }

  H::Expr visit(const H::Internal::Call* op) override {
    const bool is_load = op->call_type == H::Internal::Call::Halide || op->call_type == H::Internal::Call::Image;
    std::vector<H::Expr> args;
    for (const H::Expr& a : op->args) args.push_back(is_load ? simple(mutate(a)) : mutate(a));
    return H::Internal::Call::make(op->type, op->name, args, op->call_type, op->func, op->value_index, op->image,
                                   op->param);
  }
};

// Replaces variables; values share subexpressions, so each is visited once.
class Replace : public H::Internal::IRGraphMutator {
 public:
  explicit Replace(const Substitution& by) : by_(by) {}

 private:
  using IRGraphMutator::visit;
  const Substitution& by_;
  H::Expr visit(const H::Internal::Variable* op) override {
    auto found = by_.find(op->name);
    return found == by_.end() ? H::Expr(op) : found->second;
  }
};

H::Expr replace(const H::Expr& e, const Substitution& by) { return SimplifyIndices().mutate(Replace(by).mutate(e)); }

// Simplifies indices and conditions of indices by the known ranges of the enclosing loops: (4 * x + i) / 4 is x if i is
// one of four.
class DecideIndices : public SimplifyIndices {
 public:
  DecideIndices(const std::vector<Loop>& around, const std::vector<Loop>& own) {
    for (const auto* loops : {&around, &own}) {
      for (const Loop& l : *loops) extents_.push(l.name(), H::Internal::Interval(0, number(l.extent - 1)));
    }
  }

  std::vector<H::Expr> decided(const std::vector<H::Expr>& values) {
    std::vector<H::Expr> out;
    for (const H::Expr& value : values) out.push_back(mutate(value));
    return out;
  }

 private:
  using SimplifyIndices::visit;

  H::Expr visit(const H::Internal::Select* op) override {
    return H::Internal::Select::make(is_of_indices(op->condition) ? simple(op->condition) : mutate(op->condition),
                                     mutate(op->true_value), mutate(op->false_value));
  }

  // True for integers that no array stores.
  static bool is_of_indices(const H::Expr& condition) {
    struct Loads : H::Internal::IRGraphVisitor {
      bool any = false;
      using IRGraphVisitor::visit;
      void visit(const H::Internal::Call*) override { any = true; }
      void visit(const H::Internal::FloatImm*) override { any = true; }
    } loads;
    condition.accept(&loads);
    return !loads.any;
  }
};

// True if the term materialises an array in local memory.
bool fills_local(Expr e, std::set<Expr>& seen) {
  if (!seen.insert(e).second) return false;
  if (e->pattern == Pattern::materialise && e->memory == Memory::local) return true;
  return std::any_of(e->children.begin(), e->children.end(), [&](Expr c) { return fills_local(c, seen); });
}

// Extents of a fold and of the folds inside its body that may pass its accumulator on, outermost first.
void fold_extents(Expr e, std::vector<Nat>& extents) {
  switch (e->pattern) {
    case Pattern::reduce:
    case Pattern::fold:
      if (e->mode == Mode::vec) return;
      extents.push_back(e->children[2]->type->size);
      return fold_extents(e->children[0]->children[0], extents);
    case Pattern::map:
      return fold_extents(e->mode == Mode::view ? e->children[1] : e->children[0]->children[0], extents);
    case Pattern::let:
      return fold_extents(e->children[1]->children[0], extents);
    case Pattern::join:
    case Pattern::split:
    case Pattern::transpose:
    case Pattern::slice:
    case Pattern::identity:
      return fold_extents(e->children[0], extents);
    default:
      return;
  }
}

}  // namespace

WriteView place_of_element(size_t rank, const std::vector<H::Expr>& so_far) {
  if (rank == 0) return WriteView{nullptr, so_far};
  return WriteView{[=](const H::Expr& i) {
                     std::vector<H::Expr> next = so_far;
                     next.push_back(i);
                     return place_of_element(rank - 1, next);
                   },
                   {}};
}

bool mention(const std::vector<H::Expr>& values, const std::string& variable) {
  return std::any_of(values.begin(), values.end(),
                     [&](const H::Expr& value) { return H::Internal::expr_uses_var(value, variable); });
}

Layout layout_of(Type type) {
  Layout out;
  if (type->is_tuple() && type->parts[0]->is_array()) {
    out = layout_of(type->parts[0]);
    out.tuple_outside = true;
    for (size_t i = 1; i < type->parts.size(); ++i) {
      Layout part = layout_of(type->parts[i]);
      if (part.shape != out.shape || part.scalars.size() != 1) {
        unsupported(fmt::format("a value of type {} materialised in a kernel", text(type)),
                    "components need the same shape");
      }
      out.scalars.push_back(part.scalars[0]);
    }
    return out;
  }
  out.shape = sizes_of(type);
  Type leaf = leaf_of(type);
  if (leaf->is_scalar()) {
    out.scalars = {leaf->scalar};
    return out;
  }
  if (!leaf->is_tuple()) unsupported(fmt::format("a value of type {} materialised in a kernel", text(type)));
  for (Type part : leaf->parts) {
    if (!part->is_scalar()) {
      unsupported(fmt::format("a value of type {} materialised in a kernel", text(type)),
                  "use a tuple of arrays, or an array of tuples of scalars");
    }
    out.scalars.push_back(part->scalar);
  }
  return out;
}

struct Emitter::Holder {
  H::Func func;
  Layout layout;
  std::vector<H::Var> own;      // outermost first
  std::vector<Loop> spread;     // outermost first
  std::vector<Loop> enclosing;  // without spread, outermost first
  size_t own_offset = 0;
  std::vector<H::Var> all;  // all dimensions in the Func's order, innermost first
  Substitution inward;      // reduction variables of enclosing loops -> the Func's dimensions for them

  // The Func's value with enclosing loops as seen from outside or from its own definition.
  Value value(bool inside) const {
    std::vector<H::Expr> before, after;
    for (const Loop& l : spread) {
      if (l.mode == Mode::vec) before.push_back(l.variable);
    }
    for (size_t i = spread.size(); i-- > 0;) {
      if (spread[i].mode != Mode::vec) after.push_back(spread[i].variable);
    }
    for (size_t i = enclosing.size(); i-- > 0;) {
      const Loop& l = enclosing[i];
      after.push_back(inside && l.is_reduction ? inward.at(l.name()) : l.expr());
    }
    H::Func f = func;
    std::vector<Scalar> scalars = layout.scalars;
    auto component = [=](const std::vector<H::Expr>& index, size_t c) {
      std::vector<H::Expr> args = before;
      args.insert(args.end(), index.rbegin(), index.rend());
      args.insert(args.end(), after.begin(), after.end());
      H::Expr e = scalars.size() == 1 ? H::Expr(f(args)) : H::Expr(f(args)[static_cast<int>(c)]);
      return Value{from_private(scalars[c], e), nullptr, {}};
    };
    size_t rank = layout.shape.size(), count = scalars.size();
    if (layout.tuple_outside) {
      Value out;
      for (size_t c = 0; c < count; ++c) {
        out.parts.push_back(indexed(rank, [=](const std::vector<H::Expr>& i) { return component(i, c); }));
      }
      return out;
    }
    return indexed(rank, [=](const std::vector<H::Expr>& i) {
      if (count == 1) return component(i, 0);
      Value out;
      for (size_t c = 0; c < count; ++c) out.parts.push_back(component(i, c));
      return out;
    });
  }

  void define(const std::vector<H::Expr>& values, const std::map<size_t, H::RVar>& at = {}) const {
    std::vector<H::Expr> args(all.begin(), all.end());
    for (const auto& [position, r] : at) args[position] = r;
    std::vector<H::Expr> kept;
    for (size_t c = 0; c < values.size(); ++c) {
      kept.push_back(replace(values[c], inward));
    }
    H::Func f = func;
    if (kept.size() == 1) {
      f(args) = kept[0];
      return;
    }
    // Halide stores the components of a tuple one after the other unless each depends on the old values of the others,
    // so all are made to depend on them.
    if (f.defined()) {
      for (size_t c = 0; c < kept.size(); ++c) {
        for (size_t other = 0; other < kept.size(); ++other) {
          if (other == c) continue;
          H::Expr old = f(args)[static_cast<int>(other)];
          kept[c] =
              H::Internal::Call::make(kept[c].type(), "hoist_first", {kept[c], old}, H::Internal::Call::PureExtern);
        }
      }
    }
    f(args) = H::Tuple(kept);
  }

  std::vector<H::Expr> kept(const std::vector<H::Expr>& values, const Substitution& by) const {
    std::vector<H::Expr> out;
    for (size_t c = 0; c < values.size(); ++c) out.push_back(to_private(layout.scalars[c], replace(values[c], by)));
    return out;
  }

  // The element of a value that has the layout, at the Func's own dimensions.
  std::vector<H::Expr> element(const Value& v) const {
    std::vector<H::Expr> out;
    if (layout.tuple_outside) {
      for (Value part : v.parts) {
        for (const H::Var& d : own) part = part.at(d);
        out.push_back(part.scalar);
      }
      return out;
    }
    Value element = v;
    for (const H::Var& d : own) element = element.at(d);
    if (element.parts.empty()) return {element.scalar};
    for (const Value& part : element.parts) out.push_back(part.scalar);
    return out;
  }
};

Emitter::Holder Emitter::hold(const std::string& name, const Layout& layout, Spread spread_over) {
  Holder h;
  // The names have equal lengths, so that their order is the order of creation (see emit.cpp).
  h.func = H::Func(fmt::format("{}__{:03}", name, fresh_++));
  h.layout = layout;
  // A vector's loop is always spread; an unrolled loop is if all loops inside it are.
  const bool spread = spread_over != Spread::nothing;
  auto spreads = [&](const Loop& l) {
    return !l.is_reduction && (l.spreads() || (spread_over == Spread::work_items && l.mode == Mode::local));
  };
  size_t around = loops_.size();
  while (spread && around > 0 && spreads(loops_[around - 1])) --around;
  if (spread_over == Spread::work_items && has_local(std::span(loops_).first(around))) {
    unsupported("a fold over local tiles inside a loop of one work-item", "put it directly inside the local maps");
  }
  for (size_t i = 0; i < loops_.size(); ++i) {
    bool inside = i >= around || (spread && loops_[i].mode == Mode::vec && !loops_[i].is_reduction);
    (inside ? h.spread : h.enclosing).push_back(loops_[i]);
  }
  for (size_t i = 0; i < layout.shape.size(); ++i) h.own.push_back(H::Var(fmt::format("dim{}", fresh_++)));
  for (const Loop& l : h.spread) {
    if (l.mode == Mode::vec) h.all.push_back(l.variable);
  }
  if (h.all.size() > 1) unsupported("a vec map inside a vec map");
  h.own_offset = h.all.size();
  h.all.insert(h.all.end(), h.own.rbegin(), h.own.rend());
  for (size_t i = h.spread.size(); i-- > 0;) {
    if (h.spread[i].mode != Mode::vec) h.all.push_back(h.spread[i].variable);
  }
  for (size_t i = h.enclosing.size(); i-- > 0;) {
    const Loop& l = h.enclosing[i];
    H::Var v = l.is_reduction ? H::Var(fmt::format("step{}", fresh_++)) : l.variable;
    if (l.is_reduction) h.inward[l.name()] = v;
    h.all.push_back(v);
  }
  return h;
}

void Emitter::keep(const Holder& h, const Nest& nest, bool is_local) {
  H::Func f = h.func;
  // Memory on the stack is that of the largest size.
  const auto bound = [&](const H::Var& dimension, const Nat& extent) {
    f.bound(dimension, 0, number(extent));
    if (!extent.is_constant()) f.bound_storage(dimension, static_cast<int32_t>(upper_bound(extent)));
  };
  for (size_t i = 0; i < h.own.size(); ++i) bound(h.own[i], h.layout.shape[i]);
  for (const Loop& l : h.spread) bound(l.variable, l.extent);
  f.never_partition_all();
  Stored stored{f, h.enclosing, false, is_local, nest.loops, h.spread};
  for (size_t i = 0; i < h.own.size(); ++i) stored.own.emplace_back(h.own[i], h.layout.shape[i]);
  stored.has_local_loops = has_local(nest.loops) || has_local(h.spread);
  stored_.push_back(std::move(stored));
}

Value Emitter::fold(Expr e, const Environment& env) {
  if (e->mode == Mode::vec) return dot(e, env);
  std::vector<Nat> extents;
  fold_extents(e, extents);
  // A fold over no elements inside another fold has its initial value.
  const auto first_empty = std::find(extents.begin() + 1, extents.end(), Nat(0));
  size_t merge = static_cast<size_t>(first_empty - extents.begin()) - 1;
  for (;;) {
    size_t kept = stored_.size();
    merge_failed_ = false;
    Value v = fold_merging(e, env, merge);
    if (!merge_failed_) return v;
    merge = merge_reached_;
    stored_.erase(stored_.begin() + static_cast<int64_t>(kept), stored_.end());
    change_context();  // reads cached meanwhile may depend on discarded Funcs
  }
}

std::vector<H::Expr> repeated(std::vector<H::Expr> values, const std::vector<H::RVar>& steps) {
  for (const H::Expr& value : values) {
    for (const H::RVar& step : steps) {
      if (H::Internal::expr_uses_var(value, step.name())) return values;
    }
  }
  values[0] =
      H::Internal::Call::make(values[0].type(), "hoist_first", {values[0], steps[0]}, H::Internal::Call::PureExtern);
  return values;
}

Value Emitter::fold_merging(Expr e, const Environment& env, size_t merge) {
  std::vector<Nat> extents;
  fold_extents(e, extents);
  extents.resize(merge + 1);
  std::vector<H::Range> ranges;
  for (size_t i = extents.size(); i-- > 0;) {
    if (extents[i] == Nat(0)) return read(e->children[1], env);  // the outermost
    ranges.emplace_back(0, number(extents[i]));
  }
  H::RDom domain(ranges, fmt::format("steps{}", fresh_++));
  std::vector<H::RVar> reductions;
  for (size_t i = extents.size(); i-- > 0;) reductions.push_back(domain[static_cast<int>(i)]);

  Layout layout = layout_of(e->type);
  std::set<Expr> seen;
  const bool tiles = has_local(loops_) && fills_local(e->children[0], seen);
  Holder h = hold("fold", layout, tiles ? Spread::work_items : Spread::registers);
  h.define(h.kept(h.element(read(e->children[1], env)), {}));

  Nest nest;
  nest.func = h.func;
  nest.pending.assign(reductions.begin() + 1, reductions.end());
  nest.own_rank = h.own.size();
  nest.own_offset = h.own_offset;
  Loop first;
  first.reduction = reductions[0];
  first.is_reduction = true;
  first.extent = extents[0];
  first.mode = e->mode == Mode::view ? Mode::seq : e->mode;
  first.owner = h.func.name();
  if (first.mode != Mode::seq && first.mode != Mode::unroll && first.mode != Mode::matrix) {
    unsupported(fmt::format("a fold with mode {}", name_of(e->mode)), "folds run seq, unroll or matrix");
  }
  nest.loops.push_back(first);
  {
    Inside inside(*this);
    inside.push(first);
    Value element = read(e->children[2], env).at(first.reduction);
    walk(e->children[0]->children[0], place_of_element(h.own.size()), extend(extend(env, h.value(true)), element),
         nest);
  }
  if (nest.merged < nest.pending.size()) {
    merge_failed_ = true;
    merge_reached_ = nest.merged;
    return {};
  }
  merge_failed_ = false;
  const auto splits = splits_of(nest, h.layout.shape);
  h.define(repeated(h.kept(nest.values, inverted(splits, h.own)), reductions));
  schedule_loops(h.func, h.own, splits, h.spread, nest.loops);
  H::Stage update = h.func.update();
  schedule_loops(update, h.own, splits, h.spread, nest.loops,
                 {.reductions = true, .outside = tile_depth_[h.func.name()]});
  update.never_partition_all();
  keep(h, nest, false);
  return bounded(h.value(false), layout.shape);
}

// All accumulators of a fold: an array over the steps, each written from the one before it. It starts full of the
// initial value, so that the first step reads that value and no step reads unwritten memory.
Value Emitter::scan(Expr e, const Environment& env) {
  const Nat n = e->type->size;
  Layout state = layout_of(e->children[1]->type);
  if (state.tuple_outside) unsupported("a scan whose accumulator is a tuple of arrays");
  Layout layout = state;
  layout.shape.insert(layout.shape.begin(), n);
  if (n == Nat(0)) unsupported("a scan over an empty array");
  H::RDom domain({{0, number(n)}}, fmt::format("steps{}", fresh_++));
  Holder h = hold("scan", layout, Spread::registers);
  Value initial = read(e->children[1], env);
  h.define(h.kept(h.element(indexed(1, [initial](const std::vector<H::Expr>&) { return initial; })), {}));

  Nest nest;
  nest.func = h.func;
  nest.own_rank = h.own.size();
  nest.own_offset = h.own_offset;
  Loop first;
  first.reduction = domain[0];
  first.is_reduction = true;
  first.extent = n;
  first.owner = h.func.name();
  nest.loops.push_back(first);
  {
    Inside inside(*this);
    inside.push(first);
    H::Expr step = first.reduction;
    Value accumulator = h.value(true).at(H::max(step - 1, 0));
    Value element = read(e->children[2], env).at(step);
    walk(e->children[0]->children[0], place_of_element(h.own.size() - 1), extend(extend(env, accumulator), element),
         nest);
  }
  Holder inner = h;
  inner.layout = state;
  inner.own.erase(inner.own.begin());
  const auto splits = splits_of(nest, inner.layout.shape);
  h.define(h.kept(nest.values, inverted(splits, inner.own)), {{h.own_offset + h.own.size() - 1, first.reduction}});
  schedule_loops(h.func, inner.own, splits, h.spread, nest.loops);
  H::Stage update = h.func.update();
  schedule_loops(update, inner.own, splits, h.spread, nest.loops, {.reductions = true});
  update.never_partition_all();
  keep(h, nest, false);
  return bounded(h.value(false), layout.shape);
}

// The loop over the parts is outside the loops of the other work-items, so each of them holds the value of its part, as
// it would without parts.
Value Emitter::shared_parts(Expr e, const Environment& env) {
  const Expr parts = e->children[0];
  const Layout layout = layout_of(e->type);
  if (layout.shape.size() != 1 || layout.scalars.size() != 1)
    unsupported("arrays in local memory with work-items of their own inside a local map", "keep numbers");
  const std::vector<Loop> around = loops_;
  const uint64_t context = context_;
  Nest nest;
  const Loop part = open(layout.shape[0], Mode::local, parts->dimension, nest);
  loops_.insert(std::find_if(loops_.begin(), loops_.end(), [](const Loop& l) { return l.mode == Mode::local; }), part);
  change_context();
  Holder h = hold("parts", {{}, layout.scalars, false}, Spread::work_items);
  for (auto* loops : {&loops_, &h.spread}) {
    for (Loop& l : *loops) {
      if (l.mode == Mode::local) l.owner = h.func.name();
    }
  }
  const Value value = apply(parts->children[0], env, {read(parts->children[1], env).at(part.variable)});
  h.define(h.kept({value.scalar}, {}));
  schedule_loops(h.func, h.own, Splits(), h.spread, nest.loops);
  loops_ = around;
  context_ = context;
  keep(h, nest, true);
  const H::Expr one = h.value(false).scalar;
  const std::string name = part.name();
  return bounded(indexed(1,
                         [=](const std::vector<H::Expr>& index) {
                           return Value{H::Internal::substitute(name, index[0], one), nullptr, {}};
                         }),
                 layout.shape);
}

Value Emitter::materialise(Expr e, const Environment& env) {
  Expr child = e->children[0];
  if (e->memory == Memory::global) {
    unsupported("materialise in global memory inside a kernel", "it needs its own kernel");
  }
  bool is_local = e->memory == Memory::local;
  if (!is_local &&
      (child->pattern == Pattern::fold || child->pattern == Pattern::reduce || child->pattern == Pattern::scan)) {
    return read(child, env);
  }
  if (is_local && has_local(loops_)) {
    const bool parts = child->pattern == Pattern::map && child->mode == Mode::local;
    return parts ? shared_parts(e, env) : local_tile(e, env);
  }
  Layout layout = layout_of(e->type);
  Holder h = hold(is_local ? "shared" : "kept", layout, is_local ? Spread::nothing : Spread::registers);
  Nest nest;
  nest.func = h.func;
  nest.own_rank = h.own.size();
  nest.own_offset = h.own_offset;
  const size_t first_inside = stored_.size();
  walk(child, place_of_element(h.own.size()), env, nest);
  if (!is_local) {
    // Computed in the innermost loop that it depends on, so that the loops that read its elements share it. Its
    // operands are computed there too, in the single iteration of an added loop.
    const std::vector<Loop> around = loops_;
    nest.values = DecideIndices(around, nest.loops).decided(nest.values);
    std::set<std::string> left;
    for (const Loop& l : around) {
      const bool may_be = l.is_reduction || l.mode == Mode::seq || l.mode == Mode::unroll || l.mode == Mode::vec;
      if (may_be && !mention(nest.values, l.name())) left.insert(l.name());
    }
    const auto is_left = [&](const Loop& l) { return left.count(l.name()) != 0; };
    if (std::erase_if(loops_, is_left) > 0) {
      h = hold("kept", layout, Spread::registers);
      h.func = nest.func;  // the loops inside belong to that Func
      for (size_t i = first_inside; i < stored_.size(); ++i) std::erase_if(stored_[i].enclosing, is_left);
    }
    loops_ = around;
  }
  const auto splits = splits_of(nest, h.layout.shape);
  h.define(h.kept(nest.values, inverted(splits, h.own)));
  schedule_loops(h.func, h.own, splits, h.spread, nest.loops, {.guarded = !nest.limits.empty()});
  keep(h, nest, is_local);
  stored_.back().has_rows = is_local && h.own.size() > 1;
  return bounded(h.value(false), layout.shape);
}

}  // namespace hoist::emission
