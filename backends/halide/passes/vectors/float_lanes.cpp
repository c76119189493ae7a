// Restores vectors of two floats that Halide's simplifier has made ramps. The simplifier replaces a vector of two
// scalars a and b by a ramp, whose second lane is a + (b - a). Floats round that sum, so a kernel would differ from its
// term.
#include "backends/halide/passes/mutators.h"
#include "backends/halide/passes/passes.h"

namespace hoist::emission {
namespace {

// The scalar b of base = a and stride = b - a, as the simplifier writes the difference; undefined for other strides.
HExpr second_lane(const HExpr& base, const HExpr& stride) {
  if (is_const_zero(stride)) return base;
  if (const Sub* difference = stride.as<Sub>()) return equal(difference->b, base) ? difference->a : HExpr();
  const Select *chosen = stride.as<Select>(), *from = base.as<Select>();
  if (chosen == nullptr || from == nullptr || !equal(chosen->condition, from->condition)) return {};
  const HExpr yes = second_lane(from->true_value, chosen->true_value);
  const HExpr no = second_lane(from->false_value, chosen->false_value);
  return yes.defined() && no.defined() ? Select::make(chosen->condition, yes, no) : HExpr();
}

class FloatLanes : public IRMutator {
  using IRMutator::visit;

  HExpr visit(const Ramp* op) override {
    if (op->type.is_float() && op->lanes == 2) {
      const HExpr second = second_lane(op->base, op->stride);
      if (second.defined()) return Shuffle::make_concat({mutate(op->base), mutate(second)});
    }
    return IRMutator::visit(op);
  }
};

}  // namespace

MadePass float_lanes(const PassInput&) { return std::make_unique<FloatLanes>(); }

}  // namespace hoist::emission
