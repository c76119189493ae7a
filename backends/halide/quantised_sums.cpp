// What layers quantise, in one function: a rounded f32, plus a whole number of at most 16 bits perhaps (the zero
// point), saturated to a type of 8 or 16 bits. The bounds are whole numbers, so they may come before the rounding, and
// what lies between them is rounded by an addition; a rounding, a sum, a comparison with itself and a conversion go.
// The function gives an int in the type's range, which is then converted at once to what its value becomes: what is
// widened is never narrow.
#include <fmt/format.h>

#include "backends/halide/emitter.h"

namespace hoist::emission {
namespace {

using namespace Halide::Internal;  // NOLINT: this file is about nothing else
using HExpr = Halide::Expr;

class QuantisedSums : public IRMutator {
  using IRMutator::visit;

  HExpr visit(const Call* op) override {
    if (HExpr sum = quantised(op, op->type); sum.defined()) return sum;
    return IRMutator::visit(op);
  }

  HExpr visit(const Cast* op) override {
    const Call* narrow = op->value.as<Call>();
    const Halide::Type wide = op->type.element_of();
    const bool widens =
        narrow != nullptr && (wide == Halide::Float(32) || (wide.is_int() && wide.bits() > narrow->type.bits()));
    if (HExpr sum = widens ? quantised(narrow, op->type) : HExpr(); sum.defined()) return sum;
    return IRMutator::visit(op);
  }

  static bool is_rounding(const Call* call) {
    return call != nullptr && call->name == "rint" && call->type.element_of() == Halide::Float(32);
  }

  // The call as a value of the wanted type, which holds those of its own; undefined where it is no such sum.
  HExpr quantised(const Call* op, const Halide::Type& wanted) {
    const Halide::Type type = op->type.element_of(), words = Halide::Int(32, op->type.lanes());
    const std::string ending = fmt::format("{}{}", type.is_int() ? 'i' : 'u', type.bits());
    if (type.is_float() || type.bits() > 16 || op->name != "hoist_to_" + ending) return {};
    const Call* rounded = op->args[0].as<Call>();
    HExpr whole = make_zero(words);
    if (rounded != nullptr && rounded->is_intrinsic(Call::strict_add)) {
      const auto* repeated = rounded->args[1].as<Broadcast>();
      const auto* cast = (repeated != nullptr ? repeated->value : rounded->args[1]).as<Cast>();
      if (cast == nullptr || cast->value.type().is_float() || cast->value.type().bits() > 16) return {};
      whole = Cast::make(words.with_lanes(cast->type.lanes()), mutate(cast->value));
      if (repeated != nullptr) whole = Broadcast::make(whole, repeated->lanes);
      rounded = rounded->args[0].as<Call>();
    }
    if (!is_rounding(rounded)) return {};
    const HExpr sum =
        Call::make(words, "hoist_quantised_" + ending, {mutate(rounded->args[0]), whole}, Call::PureExtern);
    return wanted.element_of() == words.element_of() ? sum : Cast::make(wanted, sum);
  }
};

}  // namespace

std::unique_ptr<IRMutator> quantised_sums() { return std::make_unique<QuantisedSums>(); }

}  // namespace hoist::emission
