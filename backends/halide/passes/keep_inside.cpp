// Moves computations back into the kernel. Halide evaluates before the kernel if a selection uses a fold, and computes
// values there that are equal for all work-items. The host code can neither load the kernel's arrays nor call its
// functions nor pass scalars: kernels have array arguments only. So everything but the arrays is computed at its use.
#include "backends/halide/passes/mutators.h"
#include "backends/halide/passes/passes.h"

namespace hoist::emission {
namespace {

class KeepInside : public IRMutator {
  using IRMutator::visit;

  static bool belongs_inside(const HExpr& e) {
    if (e.type().is_handle()) return false;
    struct Finder : IRGraphVisitor {
      using IRGraphVisitor::visit;
      bool found = false;
      void visit(const Call* op) override {
        found = found || op->name.rfind("halide_", 0) == 0 || op->name.rfind("_halide_", 0) == 0;
        IRGraphVisitor::visit(op);
      }
    } of_host;
    e.accept(&of_host);
    return !of_host.found;
  }

  Stmt visit(const LetStmt* op) override {
    return belongs_inside(op->value) ? mutate(substitute(op->name, op->value, op->body)) : IRMutator::visit(op);
  }
  Stmt visit(const For* op) override {
    const bool kernel = op->for_type == ForType::GPUBlock || op->for_type == ForType::GPUThread;
    return kernel ? Stmt(op) : IRMutator::visit(op);
  }
};

}  // namespace

MadePass keep_inside(const PassInput&) { return std::make_unique<KeepInside>(); }

}  // namespace hoist::emission
