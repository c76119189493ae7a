// hoist_word(a[i], a[i + 1], a[i + 2], a[i + 3]) with i a multiple of 4 becomes the load of a word, as does
// hoist_word(a[i], a[i + 1]) with i even. Any other hoist_word stays a function call that combines the elements.
#include <vector>

#include "backends/halide/passes/mutators.h"
#include "backends/halide/passes/passes.h"

namespace hoist::emission {
namespace {

// Rewrites (x * a + c) % (a * b) as (x % b) * a + c for c less than a, which Halide does not simplify; adjacent indices
// then differ by a constant.
class PlainRemainders : public IRMutator {
  using IRMutator::visit;

  HExpr visit(const Mod* op) override {
    const auto whole = as_const_int(op->b);
    const Add* sum = op->a.as<Add>();
    const Mul* product = sum != nullptr ? sum->a.as<Mul>() : nullptr;
    const auto step = product != nullptr ? as_const_int(product->b) : std::nullopt;
    const auto rest = sum != nullptr ? as_const_int(sum->b) : std::nullopt;
    if (!whole || !step || !rest || *step <= 0 || *rest < 0 || *rest >= *step || *whole % *step != 0)
      return IRMutator::visit(op);
    return mutate(product->a) % make_const(op->type, *whole / *step) * product->b + sum->b;
  }
};

class LoadWords : public WithUsedLets {
  using WithUsedLets::visit;

  // The load and the indices that a value's bytes come from.
  struct Bytes {
    HExpr load;
    HExpr index;

    const Load* operator->() const { return load.as<Load>(); }
  };

  // The origin of a concatenation whose parts are consecutive in memory.
  Bytes joined(const Shuffle* parts) const {
    Bytes out;
    for (const HExpr& part : parts->vectors) {
      const Bytes next = source(part);
      const Ramp *to = next.load.defined() ? next.index.as<Ramp>() : nullptr,
                 *from = out.load.defined() ? out.index.as<Ramp>() : nullptr;
      if (to == nullptr) return {};
      if (from == nullptr) {
        out = next;
        continue;
      }
      const HExpr end = from->base + from->stride * from->lanes;
      if (next->name != out->name || !equal(from->stride, to->stride) || !is_const_zero(simplify(to->base - end)))
        return {};
      out.index = Ramp::make(from->base, from->stride, from->lanes + to->lanes);
    }
    return out;
  }

  // Halide replaces strided loads by wider dense loads and a selection of lanes.
  Bytes source(const HExpr& byte) const {
    HExpr e = expanded(byte);
    if (const Load* load = e.as<Load>()) {
      if (!is_const_one(load->predicate)) return {};
      return {e, simplify(PlainRemainders().mutate(simplify(expanded(load->index))))};
    }
    const Shuffle* shuffle = e.as<Shuffle>();
    if (shuffle != nullptr && shuffle->is_concat() && shuffle->vectors.size() > 1) return joined(shuffle);
    if (shuffle == nullptr || shuffle->vectors.size() != 1 || shuffle->indices.size() < 2) return {};
    Bytes inner = source(shuffle->vectors[0]);
    const Ramp* ramp = inner.load.defined() ? inner.index.as<Ramp>() : nullptr;
    if (ramp == nullptr) return {};
    const int first = shuffle->indices[0], step = shuffle->indices[1] - first;
    for (size_t i = 0; i < shuffle->indices.size(); ++i) {
      if (shuffle->indices[i] != first + static_cast<int>(i) * step) return {};
    }
    inner.index = simplify(
        Ramp::make(ramp->base + ramp->stride * first, ramp->stride * step, static_cast<int>(shuffle->indices.size())));
    return inner;
  }

  HExpr visit(const Call* op) override {
    if (op->name != word_marker) return WithLets::visit(op);
    std::vector<Bytes> bytes;
    for (const HExpr& a : op->args) {
      bytes.push_back(source(a));
      if (!bytes.back().load.defined()) return WithLets::visit(op);
    }
    HExpr first = bytes[0].index;
    for (size_t i = 0; i < bytes.size(); ++i) {
      HExpr distance = simplify(bytes[i].index - first);
      if (const Broadcast* b = distance.as<Broadcast>()) distance = b->value;
      if (bytes[i]->name != bytes[0]->name || !is_const(distance, static_cast<int64_t>(i))) return WithLets::visit(op);
    }
    HExpr together = make_const(first.type(), static_cast<int64_t>(bytes.size()));
    if (!is_const_zero(simplify(first % together))) return WithLets::visit(op);
    return Load::make(op->type, bytes[0]->name, simplify(first / together), bytes[0]->image, bytes[0]->param,
                      const_true(op->type.lanes()), ModulusRemainder());
  }
};

}  // namespace

MadePass load_words(const PassInput&) { return std::make_unique<LoadWords>(); }

}  // namespace hoist::emission
