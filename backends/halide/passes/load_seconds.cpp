// Every second of a row's elements, as windows with a stride of two have them. Halide takes them out of all that the
// vectors side by side span; out of two vectors of neighbours, the last of which ends with the last element that is
// wanted, they are two shuffles. A fused product takes elements one by one until LLVM's optimiser puts them together,
// and makes loads of single elements of a whole vector on the way; where only the elements that are wanted are loaded,
// it leaves that alone.
#include <optional>
#include <vector>

#include "backends/halide/passes/mutators.h"
#include "backends/halide/passes/passes.h"

namespace hoist::emission {
namespace {

class LoadSeconds : public WithUsedLets {
  using WithUsedLets::visit;

  // Where the indices begin, if they are so many, two apart.
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
    if (load->type.bits() < 32) return shuffle;  // AVX2 has no masked load of them
    const auto lanes = static_cast<int>(op->indices.size());
    const Halide::Type numbers = Halide::Int(32);
    const auto neighbours = [&](int from, int wanted) {
      const HExpr places = Ramp::make(make_const(numbers, 0), make_const(numbers, 1), lanes);
      const auto everywhere = [&](int n) { return Broadcast::make(make_const(numbers, n), lanes); };
      return Load::make(load->type.with_lanes(lanes), load->name, Ramp::make(simplify(ramp->base + from), 1, lanes),
                        load->image, load->param,
                        fused_ ? places % everywhere(2) == everywhere(wanted) : const_true(lanes), ModulusRemainder());
    };
    std::vector<int> chosen;
    for (int i = 0; i < lanes; ++i) chosen.push_back(i < lanes / 2 ? 2 * i : 2 * i + 1);
    return Shuffle::make({neighbours(*first, 0), neighbours(*first + lanes - 1, 1)}, chosen);
  }

  bool fused_ = false;  // below a fused product
};

}  // namespace

MadePass load_seconds(const PassInput&) { return std::make_unique<LoadSeconds>(); }

}  // namespace hoist::emission
