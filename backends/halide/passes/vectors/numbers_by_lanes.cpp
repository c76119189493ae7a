// Prints vector constants of different widths differently. Halide's OpenCL printer caches the values of a block by
// their text and prints a broadcast as its scalar, whatever its number of lanes. It also creates vectors of 0 and 1 in
// casts of booleans. In kernels with several vector widths every such vector gets a text with its width.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "backends/halide/passes/mutators.h"
#include "backends/halide/passes/passes.h"

namespace hoist::emission {
namespace {

class NumbersByLanes : public IRMutator {
 public:
  Stmt mutate(const Stmt& s) override {
    if (!counted_) {
      counted_ = true;
      Count count(lanes_);
      s.accept(&count);
    }
    return IRMutator::mutate(s);
  }

 protected:
  using IRMutator::mutate;
  using IRMutator::visit;

 private:
  class Count : public IRVisitor {
   public:
    explicit Count(std::set<int>& lanes) : lanes_(lanes) {}

   private:
    using IRVisitor::visit;
    void visit(const Broadcast* op) override {
      lanes_.insert(op->type.lanes());
      IRVisitor::visit(op);
    }
    void visit(const Cast* op) override {
      if (op->type.lanes() > 1) lanes_.insert(op->type.lanes());
      IRVisitor::visit(op);
    }
    std::set<int>& lanes_;
  };

  HExpr visit(const Broadcast* op) override {
    if (lanes_.size() < 2 || op->value.type().lanes() > 1 || op->type.is_bool()) return IRMutator::visit(op);
    return in_lanes(op->type, mutate(op->value));
  }

  HExpr visit(const Cast* op) override {
    const bool of_truth = op->value.type().is_bool() && op->type.lanes() > 1 && !op->type.is_bool();
    if (lanes_.size() < 2 || !of_truth) return IRMutator::visit(op);
    const Halide::Type element = op->type.element_of();
    return Select::make(mutate(op->value), in_lanes(op->type, make_const(element, 1)),
                        in_lanes(op->type, make_const(element, 0)));
  }

  static HExpr in_lanes(const Halide::Type& type, const HExpr& value) {
    const char* whole = type.bits() == 8 ? "char" : type.bits() == 16 ? "short" : type.bits() == 32 ? "int" : "long";
    const char* part = type.bits() == 16 ? "half" : type.bits() == 32 ? "float" : "double";
    const std::string name =
        fmt::format("({}{}{})", type.is_uint() ? "u" : "", type.is_float() ? part : whole, type.lanes());
    return Call::make(type, name, {value}, Call::PureExtern);
  }

  bool counted_ = false;
  std::set<int> lanes_;
};

}  // namespace

MadePass numbers_by_lanes(const PassInput&) { return std::make_unique<NumbersByLanes>(); }

}  // namespace hoist::emission
