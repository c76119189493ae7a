// Keeps private arrays on the stack. Halide allocates stack arrays of more than 16 KiB with halide_malloc, which native
// kernels do not have. An array in MemoryType::Register stays on the stack whatever its size.
#include "backends/halide/passes/mutators.h"
#include "backends/halide/passes/passes.h"

namespace hoist::emission {
namespace {

class StayOnStack : public IRMutator {
  using IRMutator::visit;

  Stmt visit(const Allocate* op) override {
    const Stmt body = mutate(op->body);
    const bool moves = op->memory_type == Halide::MemoryType::Stack;
    return Allocate::make(op->name, op->type, moves ? Halide::MemoryType::Register : op->memory_type, op->extents,
                          op->condition, body, op->new_expr, op->free_function, op->padding);
  }
};

}  // namespace

MadePass stay_on_stack(const PassInput&) { return std::make_unique<StayOnStack>(); }

}  // namespace hoist::emission
