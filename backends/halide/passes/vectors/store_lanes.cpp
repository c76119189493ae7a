// Stores a strided vector lane by lane, at constant distances from the first lane, which addresses can include. Halide
// prints a vector of indices, which PoCL computes as a vector and splits again.
#include <string>
#include <vector>

#include "backends/halide/passes/mutators.h"
#include "backends/halide/passes/passes.h"

namespace hoist::emission {
namespace {

class StoreLanes : public IRMutator {
  using IRMutator::visit;

  Stmt visit(const Store* op) override {
    const Ramp* ramp = op->index.as<Ramp>();
    if (ramp == nullptr || is_const_one(ramp->stride) || ramp->base.type().lanes() > 1 || !is_const_one(op->predicate))
      return IRMutator::visit(op);
    const std::string name = unique_name("value"), first_name = unique_name("first");
    const HExpr value = Variable::make(op->value.type(), name), first = Variable::make(ramp->base.type(), first_name);
    std::vector<Stmt> stores;
    for (int lane = 0; lane < ramp->lanes; ++lane) {
      stores.push_back(Store::make(op->name, Shuffle::make_extract_element(value, lane),
                                   simplify(first + ramp->stride * lane), op->param, const_true(), ModulusRemainder()));
    }
    return LetStmt::make(name, mutate(op->value), LetStmt::make(first_name, ramp->base, Block::make(stores)));
  }
};

}  // namespace

MadePass store_lanes(const PassInput&) { return std::make_unique<StoreLanes>(); }

}  // namespace hoist::emission
