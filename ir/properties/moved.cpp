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
  if (element.at(element.root()).kind != Value::selection) return std::nullopt;
  const Value& outermost = element.at(element.at(element.root()).a);
  if (outermost.kind != Value::within) return std::nullopt;
  const auto dimension = element.dimension_of(outermost.index);
  if (!dimension) return std::nullopt;
  Concatenation out;
  const Index& own = element.indices()[element.position(*dimension)];
  // True if the index is the position less `begin`, for positions from `begin` up to `end`. Reads of parts are clamped
  // to their bounds, once for each concatenation around them.
  const auto counts_from = [&](IndexId id, int64_t begin, int64_t end) {
    Index index = element.indices()[id];
    int64_t least = 0;  // the index at `begin`, in a concatenation
    while (index.terms != own.terms) {
      if (index.terms.size() != 1 || index.terms[0].second != 1) return false;
      const Atom& atom = element.indices().atom(index.terms[0].first);
      least -= index.constant;
      if (atom.kind != Atom::clamped || atom.a > least || atom.b < least + end - begin - 1) return false;
      index = element.indices()[atom.argument];
    }
    return index.constant - own.constant == least - begin;
  };
  const auto add = [&](int v, int64_t begin, int64_t end) {
    const auto* read = element.read(v);
    if (read == nullptr || read->at.size() != element.rank()) return false;
    for (size_t d = 0; d < element.rank(); ++d) {
      const bool single = element.indices()[read->at[d]].terms.empty();
      const auto moved = element.offset_from(read->at[d], d);
      if (dimension == d ? !(single || counts_from(read->at[d], begin, end))
                         : !(moved && moved->by == 0 && !moved->clamped))
        return false;
    }
    out.parts.push_back(read->parameter);
    return true;
  };
  // A chain of selections: each contributes the part, or the concatenation, that starts at its condition's bound, after
  // the previous parts.
  const std::function<bool(int, int64_t, int64_t)> collect = [&](int rest, int64_t begin, int64_t end) {
    while (element.at(rest).kind == Value::selection) {
      const Value& choice = element.at(rest);
      const Value& condition = element.at(choice.a);
      if (condition.kind != Value::within) return false;
      const int64_t middle = begin + static_cast<int64_t>(condition.low);
      if (!counts_from(condition.index, begin, end) || !collect(choice.b, middle, end)) return false;
      rest = choice.c;
      end = middle;
    }
    return add(rest, begin, end);
  };
  if (!collect(element.root(), 0, shape_of(term->type)[*dimension])) return std::nullopt;
  std::reverse(out.parts.begin(), out.parts.end());
  out.dimension = *dimension;
  return out;
}

}  // namespace hoist
