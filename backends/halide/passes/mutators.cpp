#include "backends/halide/passes/mutators.h"

namespace hoist::emission {

bool loads(const Stmt& s) {
  struct Finder : IRGraphVisitor {
    using IRGraphVisitor::visit;
    bool found = false;
    void visit(const Load*) override { found = true; }
  } finder;
  s.accept(&finder);
  return finder.found;
}

namespace {

class LaneOf : public IRGraphMutator {
 public:
  explicit LaneOf(int lane) : lane_(lane) {}

  HExpr mutate(const HExpr& e) override { return e.type().is_scalar() ? e : IRGraphMutator::mutate(e); }

 private:
  using IRMutator::visit;

  HExpr visit(const Broadcast* op) override { return lane_of(op->value, lane_ % op->value.type().lanes()); }
  HExpr visit(const Ramp* op) override {
    const int lanes = op->base.type().lanes();
    const HExpr stride = lane_of(op->stride, lane_ % lanes);
    return lane_of(op->base, lane_ % lanes) + make_const(stride.type(), lane_ / lanes) * stride;
  }
  HExpr visit(const Shuffle* op) override {
    int lane = op->indices[static_cast<size_t>(lane_)];
    for (const HExpr& vector : op->vectors) {
      if (lane < vector.type().lanes()) return lane_of(vector, lane);
      lane -= vector.type().lanes();
    }
    return extracted(op);
  }
  HExpr visit(const Load* op) override {
    return Load::make(op->type.element_of(), op->name, mutate(op->index), op->image, op->param, mutate(op->predicate),
                      ModulusRemainder());
  }
  HExpr visit(const Cast* op) override { return Cast::make(op->type.element_of(), mutate(op->value)); }
  HExpr visit(const Reinterpret* op) override {
    if (op->value.type().lanes() != op->type.lanes()) return extracted(op);
    return Reinterpret::make(op->type.element_of(), mutate(op->value));
  }
  // Calls on vectors are the same call on each lane.
  HExpr visit(const Call* op) override {
    std::vector<HExpr> args;
    for (const HExpr& argument : op->args) args.push_back(mutate(argument));
    return Call::make(op->type.element_of(), op->name, args, op->call_type, op->func, op->value_index, op->image,
                      op->param);
  }
  HExpr visit(const Variable* op) override { return extracted(op); }
  HExpr visit(const VectorReduce* op) override { return extracted(op); }
  HExpr visit(const Let* op) override { return extracted(op); }

  HExpr extracted(const HExpr& e) const { return Shuffle::make_extract_element(e, lane_); }

  int lane_;
};

}  // namespace

HExpr lane_of(const HExpr& vector, int lane) { return LaneOf(lane).mutate(vector); }

}  // namespace hoist::emission
