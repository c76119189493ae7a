#include <algorithm>
#include <bit>
#include <cmath>

#include "ir/properties/formula.h"

namespace hoist {
namespace {

// The power of s by which a value scales when some of its inputs are multiplied by s > 0. `any`: zeros and infinities,
// which do not change.
class Degrees {
 public:
  static constexpr int any = 1 << 20;

  Degrees(const Formula& formula, std::function<bool(const ElementFormula::Read&)> scaled)
      : formula_(formula), scaled_(std::move(scaled)) {}

  std::optional<int> of(int v) {
    if (auto found = known_.find(v); found != known_.end()) return found->second;
    return known_[v] = degree(v);
  }

 private:
  static std::optional<int> same(std::optional<int> a, std::optional<int> b) {
    if (!a || !b) return std::nullopt;
    if (*a == any) return b;
    return *b == any || *a == *b ? a : std::nullopt;
  }

  std::optional<int> degree(int v) {
    const Value& value = formula_.at(v);
    switch (value.kind) {
      case Value::load: {
        const auto* read = formula_.read(v);
        return read != nullptr && scaled_(*read) ? 1 : 0;
      }
      case Value::literal: {
        if (value.scalar == Scalar::boolean) return 0;
        const double number = formula_.literal(v);
        return number == 0 || std::isinf(number) ? any : 0;
      }
      case Value::position:
      case Value::within:
        return 0;
      case Value::operation:
        return of_operation(value);
      case Value::conversion: {
        const auto inner = of(value.a);
        return is_float(value.scalar) && is_float(value.from) && !value.same_bits ? inner : same(inner, 0);
      }
      case Value::selection: {
        if (!same(of(value.a), 0)) return std::nullopt;
        return same(of(value.b), of(value.c));
      }
      case Value::accumulator: {
        auto found = assumed_.find({value.a, value.b});
        return found == assumed_.end() ? std::nullopt : std::optional(found->second);
      }
      case Value::result:
        return of_loop(value);
    }
    return std::nullopt;
  }

  std::optional<int> of_operation(const Value& value) {
    const auto a = of(value.a);
    const auto b = value.b >= 0 ? of(value.b) : std::optional(0);
    if (!a || !b) return std::nullopt;
    switch (value.function) {
      case Function::add:
      case Function::subtract:
      case Function::minimum:
      case Function::maximum:
        return same(a, b);
      case Function::multiply:
        return *a == any || *b == any ? any : *a + *b;
      case Function::divide:
        return *a == any || *b == any ? same(a, b) : *a - *b;
      case Function::negate:
      case Function::absolute:
        return a;
      case Function::equal:
      case Function::not_equal:
      case Function::less:
      case Function::less_equal:
      case Function::greater:
      case Function::greater_equal:
        return same(a, b) ? std::optional(0) : std::nullopt;
      case Function::is_nan:
      case Function::is_infinite:
      case Function::sign:
        return 0;
      case Function::fma: {
        const auto c = of(value.c);
        return same(*a == any || *b == any ? any : *a + *b, c);
      }
      default: {
        const bool fixed = same(a, 0) && same(b, 0) && (value.c < 0 || same(of(value.c), 0));
        return fixed ? std::optional(0) : std::nullopt;
      }
    }
  }

  // The accumulator has the degree of its initial value or, if that is `any`, the degree of the body.
  std::optional<int> of_loop(const Value& value) {
    const Loop& loop = formula_.loop(value.a);
    std::vector<int> degrees;
    for (const Loop::Slot& slot : loop.slots) {
      const auto initial = of(slot.initial);
      if (!initial) return std::nullopt;
      degrees.push_back(*initial);
    }
    for (int round = 0; round < 3; ++round) {
      for (size_t i = 0; i < loop.slots.size(); ++i) assumed_[{value.a, static_cast<int>(i)}] = degrees[i];
      bool settled = true;
      for (size_t i = 0; i < loop.slots.size(); ++i) {
        Degrees inner = *this;  // without memoised results, which depend on other assumptions
        inner.known_.clear();
        const auto body = inner.of(loop.slots[i].body);
        if (!body || !same(degrees[i], body)) return std::nullopt;
        settled = settled && *body == degrees[i];
        if (degrees[i] == any) degrees[i] = *body;
      }
      if (settled) return degrees[static_cast<size_t>(value.b)];
    }
    return std::nullopt;
  }

  const Formula& formula_;
  std::function<bool(const ElementFormula::Read&)> scaled_;
  std::map<int, std::optional<int>> known_;
  std::map<std::pair<int, int>, int> assumed_;  // of accumulators
};

}  // namespace

std::optional<size_t> carries_scale(Expr term, const std::map<std::string, size_t>& dimensions) {
  const auto formula = element_formula(term);
  if (formula == nullptr) return std::nullopt;
  const Formula element(*formula);
  std::optional<size_t> result;
  for (const ElementFormula::Read* read : element.reads_in(element.root())) {
    const auto array = dimensions.find(read->parameter);
    if (array == dimensions.end()) continue;
    const auto along = array->second < read->at.size() ? element.dimension_of(read->at[array->second]) : std::nullopt;
    if (!along || (result && *result != *along)) return std::nullopt;
    result = along;
  }
  Degrees degrees(element, [&](const ElementFormula::Read& read) { return dimensions.count(read.parameter) != 0; });
  return result && degrees.of(element.root()) == 1 ? result : std::nullopt;
}

}  // namespace hoist
