// Puts one guard around the computation of a tuple in local memory by some of the work-items. Halide loads the old
// components in all work-items and guards each store alone, so idle work-items load while others store. The barriers
// between the stores are removed, since all stored values were loaded before.
#include <vector>

#include "backends/halide/passes/mutators.h"
#include "backends/halide/passes/passes.h"

namespace hoist::emission {
namespace {

bool is_barrier(const Stmt& s) {
  const Evaluate* evaluate = s.as<Evaluate>();
  const Call* call = evaluate != nullptr ? evaluate->value.as<Call>() : nullptr;
  return call != nullptr && call->is_intrinsic(Call::gpu_thread_barrier);
}

class GuardReads : public IRMutator {
  using IRMutator::visit;

  static void flatten(const Stmt& s, std::vector<Stmt>& out) {
    const Block* block = s.as<Block>();
    if (block == nullptr) return out.push_back(s);
    flatten(block->first, out);
    flatten(block->rest, out);
  }

  Stmt visit(const LetStmt* op) override {
    std::vector<const LetStmt*> lets;
    Stmt body = op;
    for (const LetStmt* let; (let = body.as<LetStmt>()) != nullptr; body = let->body) lets.push_back(let);
    std::vector<Stmt> parts, guarded;
    flatten(body, parts);
    HExpr condition;
    for (const Stmt& part : parts) {
      if (is_barrier(part)) continue;
      const IfThenElse* guard = part.as<IfThenElse>();
      if (guard == nullptr || guard->else_case.defined() || loads(guard->then_case)) return IRMutator::visit(op);
      if (condition.defined() && !equal(condition, guard->condition)) return IRMutator::visit(op);
      condition = guard->condition;
      guarded.push_back(guard->then_case);
    }
    if (guarded.size() < 2) return IRMutator::visit(op);
    Stmt all = Block::make(guarded);
    for (size_t i = lets.size(); i-- > 0;) {
      if (expr_uses_var(condition, lets[i]->name)) return IRMutator::visit(op);
      all = LetStmt::make(lets[i]->name, lets[i]->value, all);
    }
    Stmt guard = IfThenElse::make(condition, all);
    return is_barrier(parts.back()) ? Block::make(guard, parts.back()) : guard;
  }
};

}  // namespace

MadePass guard_reads(const PassInput&) { return std::make_unique<GuardReads>(); }

}  // namespace hoist::emission
