// Delays the reordering of strided elements until a sum is complete. LoadSeconds extracts every second element of two
// vectors by a blend, which keeps lanes in place, and a shuffle. If everything stored in an array of a work-item is
// computed lane by lane from such elements, from the array itself and from scalars shared by all lanes, the blend alone
// suffices, and uses of the array reorder its lanes: one shuffle per result instead of one per step.
#include <algorithm>
#include <string>
#include <vector>

#include "backends/halide/passes/mutators.h"
#include "backends/halide/passes/passes.h"

namespace hoist::emission {
namespace {

class BlendSeconds : public IRMutator {
  using IRMutator::visit;

  static std::vector<int> places(int lanes, int (*of)(int lane, int lanes)) {
    std::vector<int> out;
    for (int i = 0; i < lanes; ++i) out.push_back(of(i, lanes));
    return out;
  }
  // From two vectors: the even lanes of the first, then the odd lanes of the second.
  static std::vector<int> in_order(int lanes) {
    return places(lanes, [](int i, int n) { return i < n / 2 ? 2 * i : 2 * i + 1; });
  }
  static std::vector<int> blended(int lanes) {
    return places(lanes, [](int i, int n) { return i % 2 == 0 ? i : n + i; });
  }
  static std::vector<int> ordered(int lanes) {
    return places(lanes, [](int i, int n) { return i < n / 2 ? 2 * i : 2 * (i - n / 2) + 1; });
  }
  static bool takes_seconds(const Shuffle* op) {
    const int lanes = op->type.lanes();
    return op->vectors.size() == 2 && op->vectors[0].type().lanes() == lanes && op->vectors[1].type() == op->type &&
           op->vectors[0].type() == op->type && op->indices == in_order(lanes);
  }

  // Checks that an array is accessed in whole vectors of one length and that stored values are computed lane by lane.
  class Lanewise : public IRVisitor {
   public:
    explicit Lanewise(const std::string& array) : array_(array) {}
    bool holds() const { return holds_ && seconds_; }

   private:
    using IRVisitor::visit;
    std::string array_;
    int lanes_ = 0;
    bool holds_ = true, seconds_ = false;

    bool is_vector(const HExpr& index) {
      const Ramp* ramp = index.as<Ramp>();
      if (ramp == nullptr || !is_const_one(ramp->stride) || ramp->base.type().is_vector()) return false;
      if (lanes_ == 0) lanes_ = ramp->lanes;
      return lanes_ == ramp->lanes && modulus_remainder(ramp->base).modulus % lanes_ == 0 &&
             modulus_remainder(ramp->base).remainder % lanes_ == 0;
    }
    bool all(const std::vector<HExpr>& parts) {
      return std::all_of(parts.begin(), parts.end(), [&](const HExpr& part) { return computed_by_lanes(part); });
    }
    bool computed_by_lanes(const HExpr& e) {
      if (e.type().lanes() != lanes_) return false;
      if (const Broadcast* same = e.as<Broadcast>()) return same->value.type().is_scalar();
      if (const Load* load = e.as<Load>())
        return load->name == array_ && is_const_one(load->predicate) && is_vector(load->index);
      if (const Shuffle* shuffle = e.as<Shuffle>()) {
        seconds_ = seconds_ || takes_seconds(shuffle);
        return takes_seconds(shuffle);
      }
      if (const Call* call = e.as<Call>())
        return (call->call_type == Call::PureExtern || call->is_strict_float_intrinsic()) && all(call->args);
      if (const Select* choice = e.as<Select>())
        return all({choice->condition, choice->true_value, choice->false_value});
      return false;
    }

    void visit(const Store* op) override {
      if (op->name == array_)
        holds_ = holds_ && is_const_one(op->predicate) && is_vector(op->index) && computed_by_lanes(op->value);
      IRVisitor::visit(op);
    }
    void visit(const Load* op) override {
      if (op->name == array_) holds_ = holds_ && is_const_one(op->predicate) && is_vector(op->index);
      IRVisitor::visit(op);
    }
    void visit(const Variable* op) override { holds_ = holds_ && op->name != array_; }
  };

  // Leaves values stored in the array blended and reorders loads for all other uses.
  class Blend : public IRMutator {
   public:
    explicit Blend(const std::string& array) : array_(array) {}

   private:
    using IRMutator::visit;
    std::string array_;
    bool stored_ = false;

    Stmt visit(const Store* op) override {
      if (op->name != array_) return IRMutator::visit(op);
      stored_ = true;
      Stmt out = IRMutator::visit(op);
      stored_ = false;
      return out;
    }
    HExpr visit(const Shuffle* op) override {
      return stored_ && takes_seconds(op) ? Shuffle::make(op->vectors, blended(op->type.lanes()))
                                          : IRMutator::visit(op);
    }
    HExpr visit(const Load* op) override {
      if (op->name != array_ || stored_) return IRMutator::visit(op);
      return Shuffle::make({HExpr(op)}, ordered(op->type.lanes()));
    }
  };

  Stmt visit(const Allocate* op) override {
    const Stmt inside = IRMutator::visit(op);
    Lanewise lanewise(op->name);
    inside.accept(&lanewise);
    return lanewise.holds() ? Blend(op->name).mutate(inside) : inside;
  }
};

}  // namespace

MadePass blend_seconds(const PassInput&) { return std::make_unique<BlendSeconds>(); }

}  // namespace hoist::emission
