// A selection that is marked as rare becomes a branch around the innermost loops in which its condition changes. Each
// of the two branches has the loops with its value and the stored arrays that it needs: the usual branch is the code
// without the selection, and the rare branch costs nothing unless it is taken.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "backends/halide/passes/mutators.h"
#include "backends/halide/passes/passes.h"

namespace hoist::emission {
namespace {

bool is_marker(const Call* op) { return op->name == rare_marker; }

// The single value of a condition in all lanes; undefined if they differ.
HExpr in_every_lane(const HExpr& condition) {
  HExpr first = simplify(lane_of(condition, 0));
  for (int i = 1; i < condition.type().lanes(); ++i) {
    if (!equal(first, simplify(lane_of(condition, i)))) return {};
  }
  return first;
}

// The condition of the first marked choice that is known before a statement begins, so it uses no name defined inside
// the statement.
class FirstCondition : public IRVisitor {
 public:
  HExpr found;

 private:
  using IRVisitor::visit;
  std::map<std::string, HExpr> lets_;
  std::set<std::string> loops_, kept_;  // inside

  bool is_known_before(const HExpr& condition) const {
    struct Reads : IRGraphVisitor {
      using IRGraphVisitor::visit;
      const std::set<std::string>& kept;
      bool any = false;
      explicit Reads(const std::set<std::string>& arrays) : kept(arrays) {}
      void visit(const Load* op) override {
        any |= kept.count(op->name) != 0;
        IRGraphVisitor::visit(op);
      }
    } reads(kept_);
    condition.accept(&reads);
    return !reads.any && std::none_of(loops_.begin(), loops_.end(),
                                      [&](const std::string& loop) { return expr_uses_var(condition, loop); });
  }

  template <class Op>
  void visit_let(const Op* op) {
    op->value.accept(this);
    if (found.defined()) return;
    const auto before = lets_.find(op->name);
    const std::optional<HExpr> hidden = before == lets_.end() ? std::nullopt : std::optional(before->second);
    lets_[op->name] = substitute(lets_, op->value);
    op->body.accept(this);
    if (hidden)
      lets_[op->name] = *hidden;
    else
      lets_.erase(op->name);
  }
  void visit(const LetStmt* op) override { visit_let(op); }
  void visit(const Let* op) override { visit_let(op); }
  void visit(const For* op) override {
    loops_.insert(op->name);
    IRVisitor::visit(op);
  }
  void visit(const Allocate* op) override {
    kept_.insert(op->name);
    IRVisitor::visit(op);
  }
  void visit(const Call* op) override {
    if (found.defined()) return;
    IRVisitor::visit(op);
    if (found.defined() || !is_marker(op)) return;
    const HExpr condition = in_every_lane(simplify(substitute(lets_, op->args[0])));
    if (condition.defined() && is_known_before(condition)) found = condition;
  }
};

// The statement under the assumption that a condition holds, or that it does not.
class Chosen : public IRMutator {
 public:
  Chosen(HExpr condition, bool holds) : condition_(std::move(condition)), holds_(holds) {}

 private:
  using IRMutator::visit;
  HExpr condition_;
  bool holds_;
  std::map<std::string, HExpr> lets_;

  Stmt visit(const LetStmt* op) override {
    HExpr value = mutate(op->value);
    lets_[op->name] = substitute(lets_, op->value);
    return LetStmt::make(op->name, value, mutate(op->body));
  }
  HExpr visit(const Let* op) override {
    HExpr value = mutate(op->value);
    lets_[op->name] = substitute(lets_, op->value);
    return Let::make(op->name, value, mutate(op->body));
  }
  HExpr visit(const Call* op) override {
    if (!is_marker(op)) return IRMutator::visit(op);
    const HExpr condition = in_every_lane(simplify(substitute(lets_, op->args[0])));
    if (!condition.defined() || !equal(condition, condition_)) return IRMutator::visit(op);
    return mutate(op->args[holds_ ? 1 : 2]);
  }
};

// The arrays allocated in a statement that it needs: arrays whose elements reach a store to another array.
class Needed : public IRVisitor {
 public:
  std::set<std::string> kept, needed;

  void look(const Stmt& s) {
    do {
      changed_ = false;
      s.accept(this);
    } while (changed_);
  }

 private:
  using IRVisitor::visit;
  bool changed_ = false;
  std::set<std::string> used_;  // variables

  template <class Op>
  void visit_let(const Op* op) {
    op->body.accept(this);
    if (used_.count(op->name) != 0) op->value.accept(this);
  }
  void visit(const LetStmt* op) override { visit_let(op); }
  void visit(const Let* op) override { visit_let(op); }
  void visit(const Variable* op) override { changed_ |= used_.insert(op->name).second; }
  void visit(const Allocate* op) override {
    kept.insert(op->name);
    IRVisitor::visit(op);
  }
  void visit(const Load* op) override {
    changed_ |= needed.insert(op->name).second;
    IRVisitor::visit(op);
  }
  void visit(const Store* op) override {
    if (kept.count(op->name) != 0 && needed.count(op->name) == 0) return;
    IRVisitor::visit(op);
  }
};

// Removes unneeded code: arrays, stores to them, unused lets, and empty loops.
class WithoutUnneeded : public IRMutator {
 public:
  explicit WithoutUnneeded(const Needed& arrays) : arrays_(arrays) {}
  bool changed = false;

 private:
  using IRMutator::visit;
  const Needed& arrays_;

  bool goes(const std::string& name) const { return arrays_.kept.count(name) != 0 && arrays_.needed.count(name) == 0; }
  Stmt nothing() {
    changed = true;
    return Evaluate::make(0);
  }
  static bool is_nothing(const Stmt& s) {
    const Evaluate* evaluate = s.as<Evaluate>();
    return evaluate != nullptr && is_const(evaluate->value);
  }

  Stmt visit(const Allocate* op) override {
    if (!goes(op->name)) return IRMutator::visit(op);
    changed = true;
    return mutate(op->body);
  }
  Stmt visit(const Free* op) override { return goes(op->name) ? nothing() : IRMutator::visit(op); }
  Stmt visit(const Store* op) override { return goes(op->name) ? nothing() : IRMutator::visit(op); }
  Stmt visit(const Block* op) override {
    Stmt first = mutate(op->first), rest = mutate(op->rest);
    if (is_nothing(first)) return rest;
    return is_nothing(rest) ? first : Block::make(first, rest);
  }
  Stmt without_empty(const Stmt& s, const Stmt& body) { return is_nothing(body) ? nothing() : s; }
  Stmt visit(const For* op) override {
    const Stmt s = IRMutator::visit(op);
    return without_empty(s, s.as<For>()->body);
  }
  Stmt visit(const ProducerConsumer* op) override {
    const Stmt s = IRMutator::visit(op);
    return without_empty(s, s.as<ProducerConsumer>()->body);
  }
  Stmt visit(const IfThenElse* op) override {
    Stmt s = IRMutator::visit(op);
    const IfThenElse* choice = s.as<IfThenElse>();
    if (choice == nullptr || (choice->else_case.defined() && !is_nothing(choice->else_case))) return s;
    return without_empty(s, choice->then_case);
  }
  Stmt visit(const LetStmt* op) override {
    Stmt s = IRMutator::visit(op);
    const LetStmt* let = s.as<LetStmt>();
    if (let == nullptr) return s;
    if (is_nothing(let->body)) return nothing();
    if (stmt_uses_var(let->body, let->name)) return s;
    changed = true;
    return let->body;
  }
  HExpr visit(const Let* op) override {
    const HExpr e = IRMutator::visit(op);
    const Let* let = e.as<Let>();
    return let != nullptr && !expr_uses_var(let->body, let->name) ? let->body : e;
  }
};

Stmt chosen(const Stmt& s, const HExpr& condition, bool holds) {
  Stmt out = Chosen(condition, holds).mutate(s);
  for (;;) {
    Needed arrays;
    arrays.look(out);
    WithoutUnneeded without(arrays);
    out = without.mutate(out);
    if (!without.changed) return out;
  }
}

bool is_of_gpu(ForType type) {
  return type == ForType::GPUBlock || type == ForType::GPUThread || type == ForType::GPULane;
}

class RareBranches : public IRMutator {
 private:
  using IRMutator::visit;

  struct Loops : IRVisitor {
    using IRVisitor::visit;
    bool of_gpu = false;
    void visit(const For* op) override {
      of_gpu |= is_of_gpu(op->for_type);
      IRVisitor::visit(op);
    }
  };

  // True if the loop encloses nothing that work-items or groups divide.
  Stmt visit(const For* op) override {
    Loops loops;
    op->body.accept(&loops);
    const Stmt body = loops.of_gpu ? mutate(op->body) : branched(op->body);
    return For::make(op->name, op->min, op->extent, op->for_type, op->partition_policy, op->device_api, body);
  }

  Stmt branched(const Stmt& s) {
    FirstCondition first;
    s.accept(&first);
    if (!first.found.defined()) return mutate(s);
    // Both branches have the same names, which is valid for all passes: each is in a scope of its own.
    return IfThenElse::make(first.found, branched(chosen(s, first.found, true)),
                            branched(chosen(s, first.found, false)));
  }

  // True outside of all loops, or if the condition differs between lanes.
  HExpr visit(const Call* op) override {
    if (!is_marker(op)) return IRMutator::visit(op);
    return selected(mutate(op->args[0]), mutate(op->args[1]), mutate(op->args[2]));
  }
};

}  // namespace

MadePass rare_branches(const PassInput&) { return std::make_unique<RareBranches>(); }

}  // namespace hoist::emission
