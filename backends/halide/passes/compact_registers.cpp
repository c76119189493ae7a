// Shrinks an array in registers, which is allocated for all work-items at a group's loop, to the part of one work-item.
// Every index must be the same function of the work-item, which is checked; setting the work-item to 0 gives the index
// in the part.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backends/halide/passes/mutators.h"
#include "backends/halide/passes/passes.h"

namespace hoist::emission {
namespace {

class CompactRegisters : public WithLets {
  using WithLets::visit;
  struct Array {
    int64_t size = 0;
    std::map<std::string, int64_t> steps;  // steps of each work-item loop
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
                  "use the same local maps around the fold's body and around its consumer");
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
      if (!most) unsupported("a register tile with an unknown index");
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

}  // namespace

MadePass compact_registers(const PassInput&) { return std::make_unique<CompactRegisters>(); }

}  // namespace hoist::emission
