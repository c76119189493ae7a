// Loads a vector across a border at a known position: the lanes selected from the array are extracted from contiguous
// vectors, none of which extends beyond these lanes.
#include <algorithm>
#include <optional>
#include <vector>

#include "backends/halide/passes/mutators.h"
#include "backends/halide/passes/passes.h"

namespace hoist::emission {
namespace {

// True if the value of the condition depends on elements. Its lanes are unknown then, and the lets that it names may
// hold the terms of the whole kernel: their expansion takes exponential time for a chain of 100 tanh.
class DependsOnElements : public IRGraphVisitor {
 public:
  static bool holds(const HExpr& condition) {
    DependsOnElements found;
    condition.accept(&found);
    return found.any_;
  }

 private:
  using IRGraphVisitor::visit;
  bool any_ = false;

  void visit(const Load*) override { any_ = true; }
  void visit(const Variable* op) override { any_ |= op->type.is_float(); }
  void visit(const Call* op) override {
    any_ |= op->type.is_float();
    IRGraphVisitor::visit(op);
  }
};

class LoadKnownLanes : public WithUsedLets {
  using WithUsedLets::visit;

  // The range of lanes of a value that may be selected.
  struct Selected {
    int lanes, first, last;
  };

  // The lanes in which the condition may equal `wanted`; empty if all may.
  static std::optional<Selected> selected_lanes(const HExpr& condition, bool wanted) {
    const int lanes = condition.type().lanes();
    Selected out{lanes, lanes, -1};
    bool all = true;
    for (int lane = 0; lane < lanes; ++lane) {
      const HExpr known = simplify(lane_of(condition, lane));
      const bool never = wanted ? is_const_zero(known) : is_const_one(known);
      all = all && !never;
      if (never) continue;
      out.first = std::min(out.first, lane);
      out.last = lane;
    }
    return all || out.last < 0 ? std::nullopt : std::optional(out);
  }

  class Loads : public IRMutator {
   public:
    Loads(const LoadKnownLanes& around, Selected selected) : around_(around), selected_(selected) {}

   private:
    using IRMutator::visit;
    const LoadKnownLanes& around_;
    Selected selected_;

    HExpr visit(const Load* op) override {
      return taken_from(
          op, op->type.lanes(), [](int lane) { return lane; }, op);
    }
    // Lane i of a vector inside these nodes is not lane i of the selection.
    HExpr visit(const VectorReduce* op) override { return op; }
    HExpr visit(const Ramp* op) override { return op; }
    HExpr visit(const Broadcast* op) override { return op; }
    HExpr visit(const Let* op) override { return Let::make(op->name, op->value, mutate(op->body)); }
    // For clamped indices that repeat an end element, Halide's simplifier produces a shorter load and a shuffle of it.
    HExpr visit(const Shuffle* op) override {
      const Load* load = op->vectors.size() == 1 ? op->vectors[0].as<Load>() : nullptr;
      if (load == nullptr) return op;
      const auto place = [&](int lane) { return op->indices[static_cast<size_t>(lane)]; };
      return taken_from(load, op->type.lanes(), place, op);
    }

    // A vector whose lane i is lane `place(i)` of the load, extracted from contiguous vectors; `as_it_is` if the
    // distances are unknown or too large.
    HExpr taken_from(const Load* load, int lanes, const std::function<int(int)>& place, const HExpr& as_it_is) const {
      if (lanes != selected_.lanes || !is_const_one(load->predicate)) return as_it_is;
      const HExpr index = around_.expanded(load->index);
      const auto index_of = [&](int lane) { return lane_of(index, place(lane)); };
      const HExpr base = simplify(index_of(selected_.first));
      std::vector<int> distances;  // distances of each selected lane from the first one
      for (int lane = selected_.first; lane <= selected_.last; ++lane) {
        const auto distance = as_const_int(simplify(index_of(lane) - base));
        if (!distance || *distance < 0 || *distance >= most_vectors * lanes) return as_it_is;
        distances.push_back(static_cast<int>(*distance));
      }
      const int all = *std::max_element(distances.begin(), distances.end()) + 1;
      int width = lanes;
      while (width > all) width /= 2;
      const int count = (all + width - 1) / width;
      if (width == 1 || count > most_vectors) return as_it_is;
      const auto start = [&](int vector) { return std::min(vector * width, all - width); };
      std::vector<HExpr> vectors;
      for (int i = 0; i < count; ++i) {
        const HExpr contiguous = Ramp::make(simplify(base + start(i)), make_const(base.type(), 1), width);
        vectors.push_back(Load::make(load->type.with_lanes(width), load->name, contiguous, load->image, load->param,
                                     const_true(width), ModulusRemainder()));
      }
      std::vector<int> chosen;
      for (int lane = 0; lane < lanes; ++lane) {
        const int known = std::clamp(lane, selected_.first, selected_.last) - selected_.first;
        const int distance = distances[static_cast<size_t>(known)], vector = std::min(distance / width, count - 1);
        chosen.push_back(vector * width + distance - start(vector));
      }
      return Shuffle::make(vectors, chosen);
    }

    static constexpr int most_vectors = 4;
  };

  HExpr visit(const Select* op) override {
    HExpr out = WithUsedLets::visit(op);
    const Select* select = out.as<Select>();
    if (select == nullptr || !select->condition.type().is_vector() || DependsOnElements::holds(select->condition))
      return out;
    const HExpr condition = expanded(select->condition);
    const auto of_lanes = [&](const HExpr& value, bool wanted) {
      const auto selected = selected_lanes(condition, wanted);
      return selected ? Loads(*this, *selected).mutate(value) : value;
    };
    return Select::make(select->condition, of_lanes(select->true_value, true), of_lanes(select->false_value, false));
  }
};

}  // namespace

MadePass load_known_lanes(const PassInput&) { return std::make_unique<LoadKnownLanes>(); }

}  // namespace hoist::emission
