// What is done to the lowered program just before it is split into host code and kernel.
#include <fmt/format.h>

#include <set>

#include "backends/halide/emitter.h"

namespace hoist::emission {
namespace {

using namespace Halide::Internal;  // NOLINT: this file is about nothing else
using HExpr = Halide::Expr;

// The values of the lets around, so that an index can be seen as a whole.
class WithLets : public IRMutator {
 protected:
  using IRMutator::visit;
  std::map<std::string, HExpr> lets_;

  Stmt visit(const LetStmt* op) override {
    HExpr value = mutate(op->value);
    lets_[op->name] = value;
    Stmt body = mutate(op->body);
    lets_.erase(op->name);
    return LetStmt::make(op->name, value, body);
  }
  HExpr visit(const Let* op) override {
    HExpr value = mutate(op->value);
    lets_[op->name] = value;
    HExpr body = mutate(op->body);
    lets_.erase(op->name);
    return Let::make(op->name, value, body);
  }
  HExpr expanded(HExpr e) const {
    for (;;) {
      HExpr next = substitute(lets_, e);
      if (next.same_as(e)) return e;
      e = next;
    }
  }
};

// result[...] = hoist_store(index, condition, value) becomes if (condition) result[index] = value.
class StoreAtIndex : public WithLets {
 public:
  explicit StoreAtIndex(std::string result) : result_(std::move(result)) {}

 private:
  using WithLets::visit;
  std::string result_;

  Stmt visit(const Store* op) override {
    if (op->name != result_) return WithLets::visit(op);
    HExpr value = op->value;
    std::vector<std::pair<std::string, HExpr>> inner;
    while (const Let* let = value.as<Let>()) {
      inner.emplace_back(let->name, let->value);
      value = let->body;
    }
    const Call* marker = value.as<Call>();
    if (marker == nullptr || marker->name != store_marker) unsupported("a result whose store was moved");
    Stmt s = store(op, marker->args[0], marker->args[1], marker->args[2], inner);
    return s;
  }

  Stmt wrap(Stmt s, const std::vector<std::pair<std::string, HExpr>>& inner) {
    for (size_t i = inner.size(); i-- > 0;) s = LetStmt::make(inner[i].first, inner[i].second, s);
    return s;
  }

  Stmt store(const Store* op, const HExpr& index, HExpr condition, const HExpr& value,
             const std::vector<std::pair<std::string, HExpr>>& inner) {
    std::map<std::string, HExpr> saved = lets_;
    for (const auto& [name, e] : inner) lets_[name] = e;
    HExpr whole = simplify(expanded(index));
    HExpr known = simplify(expanded(condition));
    lets_ = saved;
    if (const Broadcast* b = condition.as<Broadcast>()) condition = b->value;
    if (const Broadcast* b = known.as<Broadcast>()) {
      known = b->value;
      condition = known;
    }
    if (is_const_one(known))
      return wrap(Store::make(op->name, value, kept(whole, index), op->param, const_true(value.type().lanes()),
                              alignment(whole)),
                  inner);
    if (known.type().lanes() == 1) {
      return wrap(IfThenElse::make(condition.type().lanes() == 1 ? condition : known,
                                   Store::make(op->name, value, kept(whole, index), op->param,
                                               const_true(value.type().lanes()), alignment(whole))),
                  inner);
    }
    // A condition that differs between the elements of a vector: one by one.
    std::vector<Stmt> lanes;
    std::string name = unique_name("lanes");
    HExpr vector = Variable::make(value.type(), name);
    for (int i = 0; i < value.type().lanes(); ++i) {
      lanes.push_back(IfThenElse::make(simplify(extract_lane(known, i)),
                                       Store::make(op->name, extract_lane(vector, i), simplify(extract_lane(whole, i)),
                                                   op->param, const_true(), ModulusRemainder())));
    }
    return wrap(LetStmt::make(name, value, Block::make(lanes)), inner);
  }

  // A vector's index is written out, so that it is seen to be dense; a scalar's keeps its shared parts.
  static HExpr kept(const HExpr& whole, const HExpr& index) { return whole.type().lanes() > 1 ? whole : index; }

  static ModulusRemainder alignment(const HExpr& index) {
    const Ramp* ramp = index.as<Ramp>();
    return modulus_remainder(ramp != nullptr ? ramp->base : index.type().lanes() == 1 ? index : HExpr(0));
  }
};

// An array in registers at a group's loop is allocated for all work-items of the group; each needs its own part only.
// Indices are the same function of the work-item everywhere, which is checked, so the part is found by setting it to 0.
class CompactRegisters : public WithLets {
  using WithLets::visit;
  struct Array {
    int64_t size = 0;
    std::map<std::string, int64_t> steps;  // of each work-item loop
    bool seen = false;
  };
  std::map<std::string, Array> arrays_;
  std::vector<std::string> items_;

  static std::string suffix(const std::string& name) { return name.substr(name.rfind('.') + 1); }

  HExpr own_part(const std::string& name, const HExpr& index) {
    HExpr whole = expanded(index);
    std::map<std::string, HExpr> zero;
    for (const std::string& item : items_) zero[item] = 0;
    HExpr part = simplify(substitute(zero, whole));
    Array& array = arrays_[name];
    std::map<std::string, int64_t> steps;
    for (const std::string& item : items_) {
      std::map<std::string, HExpr> one = zero;
      one[item] = 1;
      HExpr step = substitute(one, whole);
      HExpr difference = simplify(step - substitute(zero, whole));
      if (const Broadcast* b = difference.as<Broadcast>()) difference = b->value;
      auto constant = as_const_int(difference);
      if (!constant) unsupported("a register tile whose index depends on the work-item in two ways");
      steps[suffix(item)] = *constant;
    }
    if (array.seen && array.steps != steps) {
      unsupported("work-items that read register tiles of others",
                  "use the same local maps around the fold's body and around what reads it");
    }
    array.seen = true;
    array.steps = steps;
    const Ramp* ramp = part.as<Ramp>();
    auto base = as_const_int(ramp != nullptr ? ramp->base : part);
    auto stride = ramp != nullptr ? as_const_int(ramp->stride) : std::optional<int64_t>(0);
    int lanes = part.type().lanes();
    if (base && stride) {
      array.size = std::max(array.size, *base + *stride * (lanes - 1) + 1);
    } else {
      auto bounds = bounds_of_expr_in_scope(part, loops_);
      HExpr high = bounds.has_upper_bound() ? simplify(bounds.max) : HExpr();
      auto most = high.defined() ? as_const_int(high) : std::nullopt;
      if (!most) unsupported("a register tile with an index that is not known");
      array.size = std::max(array.size, *most + 1);
    }
    return part;
  }

  Scope<Interval> loops_;

  Stmt visit(const For* op) override {
    if (op->for_type == ForType::GPUThread) {
      items_.push_back(op->name);
      Stmt s = WithLets::visit(op);
      items_.pop_back();
      return s;
    }
    ScopedBinding<Interval> bound(loops_, op->name, Interval(op->min, simplify(op->min + op->extent - 1)));
    return WithLets::visit(op);
  }
  Stmt visit(const Allocate* op) override {
    if (op->memory_type != Halide::MemoryType::Register) return WithLets::visit(op);
    arrays_[op->name] = {};
    Stmt body = mutate(op->body);
    int64_t size = arrays_[op->name].size;
    arrays_.erase(op->name);
    return Allocate::make(op->name, op->type, op->memory_type, {HExpr(static_cast<int32_t>(size))}, op->condition,
                          body);
  }
  HExpr visit(const Load* op) override {
    if (arrays_.count(op->name) == 0) return WithLets::visit(op);
    HExpr index = own_part(op->name, op->index);
    return Load::make(op->type, op->name, index, op->image, op->param, op->predicate, ModulusRemainder());
  }
  Stmt visit(const Store* op) override {
    if (arrays_.count(op->name) == 0) return WithLets::visit(op);
    HExpr index = own_part(op->name, op->index);
    return Store::make(op->name, mutate(op->value), index, op->param, op->predicate, ModulusRemainder());
  }
};

// Halide loads the few elements that a vector of indices can reach as one vector of just so many lanes and shuffles
// it; OpenCL has vectors of some widths only, so elements of the others are loaded one by one.
class LoadLanes : public IRMutator {
  using IRMutator::visit;

  static bool has_width(int lanes) { return lanes <= 4 || lanes == 8 || lanes == 16; }

  HExpr visit(const Shuffle* op) override {
    std::vector<HExpr> lanes;
    bool all_legal = true, all_known = true;
    for (const HExpr& vector : op->vectors) {
      const Load* load = vector.as<Load>();
      const Ramp* ramp = load != nullptr ? load->index.as<Ramp>() : nullptr;
      all_legal &= has_width(vector.type().lanes());
      all_known &= ramp != nullptr && is_const_one(load->predicate);
      for (int i = 0; all_known && i < vector.type().lanes(); ++i) {
        lanes.push_back(Load::make(load->type.element_of(), load->name, simplify(mutate(ramp->base) + ramp->stride * i),
                                   load->image, load->param, const_true(), ModulusRemainder()));
      }
    }
    if (all_legal || !all_known) return IRMutator::visit(op);
    std::vector<HExpr> picked;
    for (int i : op->indices) picked.push_back(lanes[static_cast<size_t>(i)]);
    return Shuffle::make_concat(picked);
  }
};

}  // namespace

std::vector<std::unique_ptr<IRMutator>> lowering_passes(const std::string& result_name) {
  std::vector<std::unique_ptr<IRMutator>> passes;
  passes.push_back(std::make_unique<StoreAtIndex>(result_name));
  passes.push_back(std::make_unique<CompactRegisters>());
  passes.push_back(std::make_unique<LoadLanes>());
  return passes;
}

}  // namespace hoist::emission
