// Loads vectors in widths that OpenCL has. Halide loads the range of a vector of indices as one vector of exactly that
// length and shuffles it: for example 32 lanes for 16 elements with a stride of two. OpenCL has few widths (a vector of
// three occupies the space of four), so the others are loaded in parts.
#include <algorithm>
#include <vector>

#include "backends/halide/passes/mutators.h"
#include "backends/halide/passes/passes.h"

namespace hoist::emission {
namespace {

class LoadLanes : public WithUsedLets {
  using WithUsedLets::visit;

  static bool has_width(int lanes) { return lanes <= 2 || lanes == 4 || lanes == 8 || lanes == 16; }

  // The vector as parts of widths that OpenCL has, from the first lanes on; empty if it is not a contiguous load.
  std::vector<HExpr> parts_of(const HExpr& vector) const {
    const HExpr whole = expanded(vector);
    const Load* load = whole.as<Load>();
    const Ramp* ramp = load != nullptr ? load->index.as<Ramp>() : nullptr;
    if (ramp == nullptr || !is_const_one(load->predicate)) return {};
    std::vector<HExpr> parts;
    for (int from = 0, lanes = 16; from < ramp->lanes; from += lanes) {
      while (lanes > ramp->lanes - from) lanes /= 2;
      const HExpr base = simplify(ramp->base + ramp->stride * from);
      parts.push_back(Load::make(load->type.with_lanes(lanes), load->name,
                                 lanes == 1 ? base : Ramp::make(base, ramp->stride, lanes), load->image, load->param,
                                 const_true(lanes), ModulusRemainder()));
    }
    return parts;
  }

  HExpr visit(const Shuffle* op) override {
    std::vector<HExpr> vectors;
    for (const HExpr& vector : op->vectors) {
      const HExpr mutated = mutate(vector);
      const std::vector<HExpr> parts = has_width(vector.type().lanes()) ? std::vector<HExpr>{} : parts_of(mutated);
      if (parts.empty())
        vectors.push_back(mutated);
      else
        vectors.insert(vectors.end(), parts.begin(), parts.end());
    }
    return Shuffle::make(vectors, op->indices);
  }
};

}  // namespace

MadePass load_lanes(const PassInput&) { return std::make_unique<LoadLanes>(); }

}  // namespace hoist::emission
