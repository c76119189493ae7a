// Loads every second element of a row, as windows with a stride of two require. Halide extracts them from all elements
// that the adjacent vectors span. Here they are a blend and a shuffle of two contiguous vectors, the last of which ends
// with the last needed element. LLVM splits a fused multiply-add into lanes until its optimiser recombines them, and on
// the way turns a whole vector into loads of single elements; loads masked to the needed elements are left alone.
#include <optional>
#include <vector>

#include "backends/halide/passes/mutators.h"
#include "backends/halide/passes/passes.h"

namespace hoist::emission {
namespace {

class LoadSeconds : public WithUsedLets {
  using WithUsedLets::visit;

  // The first index if the indices are a whole vector of every second element.
  static std::optional<int> seconds(const std::vector<int>& indices) {
    for (size_t i = 1; i < indices.size(); ++i) {
      if (indices[i] != indices[i - 1] + 2) return std::nullopt;
    }
    const bool whole_vectors = indices.size() == 4 || indices.size() == 8 || indices.size() == 16;
    return whole_vectors ? std::optional<int>(indices[0]) : std::nullopt;
  }

  HExpr visit(const Call* op) override {
    const bool outside = fused_;
    fused_ = outside || op->name == "fma";
    HExpr out = WithUsedLets::visit(op);
    fused_ = outside;
    return out;
  }

  HExpr visit(const Shuffle* op) override {
    HExpr shuffle = WithUsedLets::visit(op);
    op = shuffle.as<Shuffle>();
    const auto first = op != nullptr && op->vectors.size() == 1 ? seconds(op->indices) : std::nullopt;
    if (!first) return shuffle;
    const HExpr whole = expanded(op->vectors[0]);
    const Load* load = whole.as<Load>();
    const Ramp* ramp = load != nullptr ? load->index.as<Ramp>() : nullptr;
    if (ramp == nullptr || !is_const_one(load->predicate) || !is_const_one(ramp->stride)) return shuffle;
    if (load->type.bits() < 32) return shuffle;  // AVX2 has no masked load of narrower elements
    const auto lanes = static_cast<int>(op->indices.size());
    const Halide::Type numbers = Halide::Int(32);
    const auto contiguous = [&](int from, int wanted) {
      const HExpr places = Ramp::make(make_const(numbers, 0), make_const(numbers, 1), lanes);
      const auto everywhere = [&](int n) { return Broadcast::make(make_const(numbers, n), lanes); };
      return Load::make(load->type.with_lanes(lanes), load->name, Ramp::make(simplify(ramp->base + from), 1, lanes),
                        load->image, load->param,
                        fused_ ? places % everywhere(2) == everywhere(wanted) : const_true(lanes), ModulusRemainder());
    };
    std::vector<int> chosen;
    for (int i = 0; i < lanes; ++i) chosen.push_back(i < lanes / 2 ? 2 * i : 2 * i + 1);
    return Shuffle::make({contiguous(*first, 0), contiguous(*first + lanes - 1, 1)}, chosen);
  }

  bool fused_ = false;  // inside a fused multiply-add
};

}  // namespace

MadePass load_seconds(const PassInput&) { return std::make_unique<LoadSeconds>(); }

}  // namespace hoist::emission
