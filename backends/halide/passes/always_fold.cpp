// Computes a fold even if a data-dependent selection may not need its result. Otherwise the selection is between a
// value and memory that was never written, and PoCL 3.1 (LLVM 14) then selects the memory.
#include "backends/halide/passes/mutators.h"
#include "backends/halide/passes/passes.h"

namespace hoist::emission {
namespace {

bool produces(const Stmt& s) {
  struct Finder : IRGraphVisitor {
    using IRGraphVisitor::visit;
    bool found = false;
    void visit(const ProducerConsumer* op) override {
      found = found || op->is_producer;
      IRGraphVisitor::visit(op);
    }
  } finder;
  s.accept(&finder);
  return finder.found;
}

class AlwaysFold : public WithLets {
  using WithLets::visit;

  Stmt visit(const IfThenElse* op) override {
    const bool skips = !op->else_case.defined() && produces(op->then_case);
    if (skips && loads(Evaluate::make(expanded(op->condition)))) return mutate(op->then_case);
    return WithLets::visit(op);
  }
};

}  // namespace

MadePass always_fold(const PassInput&) { return std::make_unique<AlwaysFold>(); }

}  // namespace hoist::emission
