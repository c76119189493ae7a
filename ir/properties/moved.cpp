#include <algorithm>
#include <cmath>
#include <functional>

#include "ir/properties/formula.h"

namespace hoist {
namespace {

// True for values that are elements of parameters, moved without change; collects these parameters.
class Moved {
 public:
  explicit Moved(const Formula& formula) : formula_(formula) {}

  bool all(int v) {
    if (auto found = known_.find(v); found != known_.end()) return found->second;
    known_[v] = true;  // ends the recursion at a loop's accumulator
    return known_[v] = moves(v);
  }
  std::set<std::string> parameters;

 private:
  bool moves(int v) {
    const Value& value = formula_.at(v);
    switch (value.kind) {
      case Value::load:
        if (const auto* read = formula_.read(v)) {
          parameters.insert(read->parameter);
          return true;
        }
        return false;
      case Value::selection:
        return all(value.b) && all(value.c);
      case Value::operation:
        return (value.function == Function::maximum || value.function == Function::minimum) && all(value.a) &&
               all(value.b);
      case Value::literal:  // initial value of a search for the maximum or minimum
        return std::isinf(formula_.literal(v));
      case Value::accumulator:
        return true;
      case Value::result: {
        const std::vector<int> operands = formula_.operands(v);
        return all(operands[0]) && all(operands[1]);
      }
      default:
        return false;
    }
  }

  const Formula& formula_;
  std::map<int, bool> known_;
};

}  // namespace

std::set<std::string> moved_from(Expr term) {
  const auto formula = element_formula(term);
  if (formula == nullptr) return {};
  const Formula element(*formula);
  Moved moved(element);
  return moved.all(element.root()) ? moved.parameters : std::set<std::string>();
}

std::optional<Concatenation> concatenation_of(Expr term) {
  if (!concatenates(term) || folds(term)) return std::nullopt;
  const auto formula = element_formula(term);
  if (formula == nullptr) return std::nullopt;
  const Formula element(*formula);
  // A chain of selections: each contributes the part that starts at its condition's bound, after the previous parts.
  Concatenation out;
  std::optional<size_t> dimension;
  const auto add = [&](int v, int64_t begin) {
    const auto* read = element.read(v);
    if (read == nullptr || read->at.size() != element.rank()) return false;
    for (size_t d = 0; d < element.rank(); ++d) {
      const bool along = dimension == d;
      const bool single = element.indices()[read->at[d]].terms.empty();
      const auto moved = element.offset_from(read->at[d], d);
      if (along ? !(single || (moved && moved->by == -begin)) : !(moved && moved->by == 0 && !moved->clamped))
        return false;
    }
    out.parts.insert(out.parts.begin(), read->parameter);
    return true;
  };
  int rest = element.root();
  while (element.at(rest).kind == Value::selection) {
    const Value& choice = element.at(rest);
    const Value& condition = element.at(choice.a);
    if (condition.kind != Value::within) return std::nullopt;
    const auto along = element.dimension_of(condition.index);
    if (!along || (dimension && *dimension != *along)) return std::nullopt;
    dimension = along;
    if (!add(choice.b, static_cast<int64_t>(condition.low))) return std::nullopt;
    rest = choice.c;
  }
  if (!dimension || !add(rest, 0)) return std::nullopt;
  out.dimension = *dimension;
  return out;
}

}  // namespace hoist
