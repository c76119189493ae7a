// Replaces the quantisation at the end of a layer by one function call: a rounded f32, plus possibly an integer of at
// most 16 bits (the zero point), saturated to a type of 8 or 16 bits. The bounds are integers, so clamping may precede
// rounding, and a clamped number is rounded by an addition. That saves a rounding, a sum, a comparison with itself and
// a conversion. The function returns an int in the type's range, which is converted directly to the type of its use, so
// that widened values are never narrowed first. If there is no integer, or the sum loses it again as between two layers
// of a quantised model, and the result becomes an f32, no int is needed: another function returns the rounded number.
#include <fmt/format.h>

#include <optional>

#include "backends/halide/passes/mutators.h"
#include "backends/halide/passes/passes.h"

namespace hoist::emission {
namespace {

struct QuantisedSum {
  HExpr number;        // before rounding
  HExpr whole;         // at most 16 bits; undefined if none is added
  std::string ending;  // suffix of function names: the type of saturation
};

HExpr once(const HExpr& e) {
  const Broadcast* repeated = e.as<Broadcast>();
  return repeated != nullptr ? repeated->value : e;
}

std::optional<QuantisedSum> sum_of(const HExpr& e) {
  const Call* op = e.as<Call>();
  const Halide::Type type = e.type().element_of();
  if (op == nullptr || type.is_float() || type.bits() > 16) return std::nullopt;
  QuantisedSum out;
  out.ending = fmt::format("{}{}", type.is_int() ? 'i' : 'u', type.bits());
  if (op->name != "hoist_to_" + out.ending) return std::nullopt;
  const Call* rounded = op->args[0].as<Call>();
  if (rounded != nullptr && rounded->is_intrinsic(Call::strict_add)) {
    const HExpr addend = once(rounded->args[1]);
    const Cast* cast = addend.as<Cast>();
    if (cast == nullptr || cast->value.type().is_float() || cast->value.type().bits() > 16) return std::nullopt;
    out.whole = cast->value;
    rounded = rounded->args[0].as<Call>();
  }
  if (rounded == nullptr || rounded->name != "rint" || rounded->type.element_of() != Halide::Float(32))
    return std::nullopt;
  out.number = rounded->args[0];
  return out;
}

// Removes conversions to 32-bit integers, signed or unsigned, which do not change a difference of shorter ones.
HExpr unconverted(HExpr e) {
  for (const Cast* cast = e.as<Cast>();
       cast != nullptr && cast->type.bits() == 32 && cast->value.type().is_int_or_uint(); cast = e.as<Cast>())
    e = cast->value;
  return e;
}

class QuantisedSums : public IRMutator {
  using IRMutator::visit;

  HExpr visit(const Call* op) override {
    const auto sum = sum_of(op);
    return sum ? quantised(*sum, op->type) : IRMutator::visit(op);
  }

  HExpr visit(const Cast* op) override {
    const Halide::Type wide = op->type.element_of();
    const bool to_float = wide == Halide::Float(32);
    if (const auto sum = to_float ? without_whole(op->value) : std::nullopt)
      return call("hoist_rounded_", *sum, op->type);
    const bool widens = to_float || (wide.is_int() && wide.bits() > op->value.type().bits());
    const auto sum = widens ? sum_of(op->value) : std::nullopt;
    return sum ? quantised(*sum, op->type) : IRMutator::visit(op);
  }

  // A sum without an integer, or with the integer subtracted again: the clamped rounded number, which is exact in f32.
  static std::optional<QuantisedSum> without_whole(const HExpr& e) {
    auto sum = sum_of(e);
    if (sum && !sum->whole.defined()) return sum;
    if (e.type().element_of() != Halide::Int(32)) return std::nullopt;
    const HExpr difference = unconverted(e);
    HExpr from, taken;
    if (const Call* call = difference.as<Call>(); call != nullptr && call->is_intrinsic(Call::widening_sub)) {
      from = call->args[0];
      taken = call->args[1];
    } else if (const Sub* sub = difference.as<Sub>(); sub != nullptr && sub->type.bits() == 32) {
      from = unconverted(sub->a);
      taken = unconverted(sub->b);
    } else {
      return std::nullopt;
    }
    sum = sum_of(from);
    if (sum && sum->whole.defined() && equal(sum->whole, unconverted(once(taken)))) return sum;
    return std::nullopt;
  }

  // In the target type, which can represent all values of the saturated type.
  HExpr quantised(const QuantisedSum& sum, const Halide::Type& wanted) {
    const Halide::Type words = Halide::Int(32, wanted.lanes());
    const HExpr out = call("hoist_quantised_", sum, words);
    return wanted == words ? out : Cast::make(wanted, out);
  }

  HExpr call(const char* function, const QuantisedSum& sum, const Halide::Type& type) {
    HExpr whole = sum.whole.defined() ? cast(Halide::Int(32, sum.whole.type().lanes()), mutate(sum.whole)) : HExpr(0);
    if (whole.type().lanes() != type.lanes()) whole = Broadcast::make(whole, type.lanes());
    return Call::make(type, function + sum.ending, {mutate(sum.number), whole}, Call::PureExtern);
  }
};

}  // namespace

MadePass quantised_sums(const PassInput&) { return std::make_unique<QuantisedSums>(); }

}  // namespace hoist::emission
