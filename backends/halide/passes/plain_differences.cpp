// Replaces saturating subtractions by plain ones. Halide compares lane numbers in few bits by a difference that
// saturates; if the difference fits the type, a plain subtraction is one operation instead of eight.
#include "backends/halide/passes/mutators.h"
#include "backends/halide/passes/passes.h"

namespace hoist::emission {
namespace {

class PlainDifferences : public IRMutator {
  using IRMutator::visit;
  Scope<ConstantInterval> ranges_;

  Stmt visit(const For* op) override {
    const ConstantInterval first = constant_integer_bounds(op->min, ranges_);
    const ConstantInterval last = constant_integer_bounds(op->min + op->extent - 1, ranges_);
    const ScopedBinding<ConstantInterval> bound(ranges_, op->name, ConstantInterval::make_union(first, last));
    return IRMutator::visit(op);
  }
  Stmt visit(const LetStmt* op) override {
    const HExpr value = mutate(op->value);
    const ScopedBinding<ConstantInterval> bound(ranges_, op->name, constant_integer_bounds(value, ranges_));
    return LetStmt::make(op->name, value, mutate(op->body));
  }
  HExpr visit(const Let* op) override {
    const HExpr value = mutate(op->value);
    const ScopedBinding<ConstantInterval> bound(ranges_, op->name, constant_integer_bounds(value, ranges_));
    return Let::make(op->name, value, mutate(op->body));
  }
  HExpr visit(const Call* op) override {
    HExpr out = IRMutator::visit(op);
    const Call* call = out.as<Call>();
    if (call == nullptr || !call->is_intrinsic(Call::saturating_sub) || !out.type().is_int()) return out;
    const auto range = [&](const HExpr& e) { return constant_integer_bounds(e, ranges_); };
    const ConstantInterval difference = range(call->args[0]) - range(call->args[1]);
    return out.type().can_represent(difference) ? call->args[0] - call->args[1] : out;
  }
};

}  // namespace

MadePass plain_differences(const PassInput&) { return std::make_unique<PlainDifferences>(); }

}  // namespace hoist::emission
