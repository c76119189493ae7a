// Near a border the indices of a vector are clamped, and each lane is a separate load. This pass tests that no lane is
// clamped and then loads one contiguous vector. If the vector is one side of a selection at a border, a second test
// skips the selection if all lanes come from the vector.
#include <algorithm>
#include <optional>

#include "backends/halide/passes/mutators.h"
#include "backends/halide/passes/passes.h"

namespace hoist::emission {
namespace {

class LoadInside : public WithUsedLets {
  using WithUsedLets::visit;

  // Removes the clamps of an index and collects the condition under which none of them has an effect.
  struct Unclamped : IRMutator {
    HExpr inside = const_true();
    bool any = false;

   private:
    using IRMutator::visit;
    static const Broadcast* limit_of(const HExpr& a, const HExpr& b) {
      const Broadcast* limit = b.as<Broadcast>();
      return limit != nullptr ? limit : a.as<Broadcast>();
    }
    template <class Op>
    HExpr without(const Op* op, bool is_least) {
      const Broadcast* limit = limit_of(op->a, op->b);
      if (!op->type.is_vector() || limit == nullptr || limit->value.type().is_vector()) return IRMutator::visit(op);
      HExpr lanes = simplify(mutate(limit == op->b.get() ? op->a : op->b));
      const Ramp* ramp = lanes.as<Ramp>();
      if (ramp == nullptr || !is_const_one(ramp->stride)) return IRMutator::visit(op);
      any = true;
      inside = inside && (is_least ? ramp->base >= limit->value : ramp->base + (ramp->lanes - 1) <= limit->value);
      return lanes;
    }
    HExpr visit(const Max* op) override { return without(op, true); }
    HExpr visit(const Min* op) override { return without(op, false); }
  };

  // A vector condition with its lets expanded, and the scalar condition that it holds in all lanes; empty if it is more
  // than a comparison or two.
  struct Lanes {
    HExpr condition, all;
  };
  std::optional<Lanes> lanes_of(const HExpr& e) const {
    if (const Variable* name = e.as<Variable>()) {
      const auto value = lets_.find(name->name);
      return value == lets_.end() ? std::nullopt : lanes_of(value->second);
    }
    if (const Broadcast* same = e.as<Broadcast>()) {
      return same->value.type().is_vector() ? std::nullopt : std::optional(Lanes{e, same->value});
    }
    if (const And* both = e.as<And>()) {
      const auto a = lanes_of(both->a), b = lanes_of(both->b);
      return a && b ? std::optional(Lanes{a->condition && b->condition, a->all && b->all}) : std::nullopt;
    }
    if (const LE* le = e.as<LE>()) return compared(le);
    if (const LT* lt = e.as<LT>()) return compared(lt);
    return std::nullopt;
  }
  // The first and the last of consecutive integers, possibly after a narrowing cast.
  struct Ends {
    HExpr first, last;
  };
  static std::optional<Ends> ends_of(const HExpr& x) {
    if (const Cast* cast = x.as<Cast>(); cast != nullptr && x.type().is_int()) {
      const auto ends = ends_of(cast->value);
      const auto fits = [&](const HExpr& end) {
        const auto number = as_const_int(end);
        return number && x.type().can_represent(*number);
      };
      if (!ends || !fits(ends->first) || !fits(ends->last)) return std::nullopt;
      const Halide::Type one = x.type().element_of();
      return Ends{simplify(Cast::make(one, ends->first)), simplify(Cast::make(one, ends->last))};
    }
    const Ramp* ramp = x.as<Ramp>();
    if (ramp == nullptr || !is_const_one(ramp->stride) || ramp->base.type().is_vector()) return std::nullopt;
    return Ends{ramp->base, simplify(ramp->base + make_const(ramp->base.type(), ramp->lanes - 1))};
  }
  // The operand of a saturating cast x, which compares with a number inside x's type as x does; undefined if x is no
  // such cast.
  static HExpr unsaturated(const HExpr& x, const HExpr& number) {
    const Call* call = x.as<Call>();
    const auto value = as_const_int(number);
    const bool same = call != nullptr && call->is_intrinsic(Call::saturating_cast) && value && x.type().is_int() &&
                      call->args[0].type().is_int() && call->args[0].type().bits() > x.type().bits() &&
                      x.type().can_represent(*value - 1) && x.type().can_represent(*value + 1);
    return same ? call->args[0] : HExpr();
  }
  template <class Op>
  static std::optional<Lanes> compared(const Op* op) {
    const auto spread = [](const HExpr& x) {
      const Broadcast* out = x.as<Broadcast>();
      return out != nullptr && !out->value.type().is_vector() ? out : nullptr;
    };
    const auto one = [](const HExpr& a, const HExpr& b) {
      if (const HExpr wide = unsaturated(a, b); wide.defined())
        return simplify(Op::make(wide, Cast::make(wide.type(), b)));
      if (const HExpr wide = unsaturated(b, a); wide.defined())
        return simplify(Op::make(Cast::make(wide.type(), a), wide));
      return simplify(Op::make(a, b));
    };
    if (const Broadcast* a = spread(op->a)) {
      const auto b = ends_of(op->b);
      return b ? std::optional(Lanes{Op::make(op->a, op->b), one(a->value, b->first)}) : std::nullopt;
    }
    if (const Broadcast* b = spread(op->b)) {
      const auto a = ends_of(op->a);
      return a ? std::optional(Lanes{Op::make(op->a, op->b), one(a->last, b->value)}) : std::nullopt;
    }
    return std::nullopt;
  }

  HExpr visit(const Select* op) override {
    HExpr out = WithUsedLets::visit(op);
    const Select* selected = out.as<Select>();
    if (selected == nullptr || !selected->condition.type().is_vector()) return out;
    const Call* guarded = selected->true_value.as<Call>();
    if (guarded == nullptr || !guarded->is_intrinsic(Call::if_then_else)) return out;
    const auto lanes = lanes_of(selected->condition);
    if (!lanes) return out;
    return Call::make(out.type(), Call::if_then_else,
                      {simplify(lanes->all && guarded->args[0]), guarded->args[1],
                       Select::make(lanes->condition, selected->true_value, selected->false_value)},
                      Call::PureIntrinsic);
  }

  HExpr visit(const Load* op) override {
    HExpr load = WithUsedLets::visit(op);
    if (!op->type.is_vector() || !is_const_one(op->predicate)) return load;
    Unclamped unclamped;
    const HExpr index = simplify(unclamped.mutate(simplify(expanded(op->index))));
    const Ramp* ramp = index.as<Ramp>();
    if (!unclamped.any || ramp == nullptr || !is_const_one(ramp->stride)) return load;
    const HExpr contiguous =
        Load::make(op->type, op->name, index, op->image, op->param, const_true(op->type.lanes()), ModulusRemainder());
    return Call::make(op->type, Call::if_then_else, {simplify(unclamped.inside), contiguous, load},
                      Call::PureIntrinsic);
  }
};

}  // namespace

MadePass load_inside(const PassInput&) { return std::make_unique<LoadInside>(); }

}  // namespace hoist::emission
