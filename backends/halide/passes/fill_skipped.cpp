// Fills the array of a fold with zeros if a selection by indices, at a border for instance, skips the fold. It cannot
// be computed anyway, as always_fold.cpp does, since its own indices are inside the array only if it is needed. For
// arrays of one work-item only.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "backends/halide/passes/mutators.h"
#include "backends/halide/passes/passes.h"

namespace hoist::emission {
namespace {

class FillSkipped : public IRMutator {
  using IRMutator::visit;
  struct Array {
    Halide::Type type;
    int64_t size = 1;
  };
  std::map<std::string, Array> arrays_;

  Stmt zeros(const std::string& name) const {
    const Array& array = arrays_.at(name);
    const std::string i = unique_name("skipped");
    Stmt store = Store::make(name, make_zero(array.type), Variable::make(Halide::Int(32), i), Halide::Parameter(),
                             const_true(), ModulusRemainder());
    return For::make(i, 0, static_cast<int32_t>(array.size), ForType::Serial, Halide::Partition::Never,
                     Halide::DeviceAPI::None, store);
  }

  // Adds an else branch that writes the zeros if a condition surrounds the whole fold and precedes its first store;
  // conditions inside the fold's loops are unchanged.
  Stmt filled_at_start(const Stmt& s, const std::string& name) const {
    if (const LetStmt* let = s.as<LetStmt>())
      return LetStmt::make(let->name, let->value, filled_at_start(let->body, name));
    if (const Block* block = s.as<Block>()) return Block::make(filled_at_start(block->first, name), block->rest);
    const IfThenElse* choice = s.as<IfThenElse>();
    if (choice == nullptr || choice->else_case.defined()) return s;
    return IfThenElse::make(choice->condition, choice->then_case, zeros(name));
  }

  Stmt visit(const Allocate* op) override {
    Array array{op->type, 1};
    bool known = op->memory_type == Halide::MemoryType::Stack;
    for (const HExpr& extent : op->extents) {
      auto n = as_const_int(extent);
      known = known && n && *n > 0;
      if (known) array.size *= *n;
    }
    if (!known) return IRMutator::visit(op);
    arrays_[op->name] = array;
    Stmt s = IRMutator::visit(op);
    arrays_.erase(op->name);
    return s;
  }
  Stmt visit(const ProducerConsumer* op) override {
    Stmt s = IRMutator::visit(op);
    const ProducerConsumer* made = s.as<ProducerConsumer>();
    if (!op->is_producer || made == nullptr || arrays_.count(op->name) == 0) return s;
    return ProducerConsumer::make(op->name, true, filled_at_start(made->body, op->name));
  }
  Stmt visit(const IfThenElse* op) override {
    if (op->else_case.defined()) return IRMutator::visit(op);
    struct Finder : IRGraphVisitor {
      using IRGraphVisitor::visit;
      std::set<std::string> names;
      void visit(const ProducerConsumer* op) override {
        if (op->is_producer) names.insert(op->name);
        IRGraphVisitor::visit(op);
      }
    } finder;
    op->then_case.accept(&finder);
    std::vector<Stmt> fills;
    for (const std::string& name : finder.names) {
      if (arrays_.count(name) != 0) fills.push_back(zeros(name));
    }
    Stmt then_case = mutate(op->then_case);
    return IfThenElse::make(op->condition, then_case, fills.empty() ? Stmt() : Block::make(fills));
  }
};

}  // namespace

MadePass fill_skipped(const PassInput&) { return std::make_unique<FillSkipped>(); }

}  // namespace hoist::emission
