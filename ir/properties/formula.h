// The formula of an element, from which properties are derived. Only for ir/properties.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/evaluate/evaluate_compile.h"
#include "ir/properties/properties.h"

namespace hoist {

// A formula with the dependencies of its values.
class Formula {
 public:
  explicit Formula(const ElementFormula& formula) : formula_(formula) {
    for (size_t d = 0; d < formula.position.size(); ++d) {
      const Index& index = indices()[formula.position[d]];
      if (!index.terms.empty()) dimensions_[index.terms[0].first] = d;
    }
  }

  const Value& at(int v) const { return formula_.parts.values[static_cast<size_t>(v)]; }
  const Loop& loop(int id) const { return formula_.parts.loops[static_cast<size_t>(id)]; }
  const ElementFormula::Read* read(int v) const {
    auto found = formula_.reads.find(v);
    return found == formula_.reads.end() ? nullptr : &found->second;
  }
  int root() const { return formula_.root; }
  size_t rank() const { return formula_.position.size(); }
  const Indices& indices() const { return formula_.parts.indices; }
  IndexId position(size_t dimension) const { return formula_.position[dimension]; }

  /// The direct operands of a value, including the initial value and the body of its loop slot.
  std::vector<int> operands(int v) const {
    const Value& value = at(v);
    if (value.kind == Value::result) {
      const Loop::Slot& slot = loop(value.a).slots[static_cast<size_t>(value.b)];
      return {slot.initial, slot.body};
    }
    if (value.kind == Value::load || value.kind == Value::accumulator) return {};
    std::vector<int> out;
    for (int operand : {value.a, value.b, value.c}) {
      if (operand >= 0) out.push_back(operand);
    }
    return out;
  }

  /// Reads of parameters in a value, at any depth.
  std::vector<const ElementFormula::Read*> reads_in(int v) const {
    std::vector<const ElementFormula::Read*> out;
    std::set<int> seen;
    std::vector<int> waiting = {v};
    while (!waiting.empty()) {
      const int next = waiting.back();
      waiting.pop_back();
      if (!seen.insert(next).second) continue;
      if (const auto* found = read(next)) out.push_back(found);
      for (int operand : operands(next)) waiting.push_back(operand);
    }
    return out;
  }

  /// True if an index depends on a variable, directly or through other atoms.
  bool depends(IndexId id, AtomId variable) const {
    const Indices& all = indices();
    return std::any_of(all[id].terms.begin(), all[id].terms.end(), [&](const auto& term) {
      if (term.first == variable) return true;
      const Atom& atom = all.atom(term.first);
      return atom.kind != Atom::variable && atom.kind != Atom::computed && depends(atom.argument, variable);
    });
  }

  /// The dimension of the element's position that equals the index, or nothing.
  std::optional<size_t> dimension_of(IndexId id) const {
    const Index& index = indices()[id];
    if (index.constant != 0 || index.terms.size() != 1 || index.terms[0].second != 1) return std::nullopt;
    auto found = dimensions_.find(index.terms[0].first);
    return found == dimensions_.end() ? std::nullopt : std::optional(found->second);
  }

  /// The difference of an index and the position along a dimension; the index may be clamped to the array's bounds.
  struct Offset {
    int64_t by = 0;
    bool clamped = false;
  };
  std::optional<Offset> offset_from(IndexId id, size_t dimension) const {
    const IndexId own = formula_.position[dimension];
    if (id == own) return Offset{};
    Index index = indices()[id];
    Offset out;
    if (index.constant == 0 && index.terms.size() == 1 && index.terms[0].second == 1 &&
        indices().atom(index.terms[0].first).kind == Atom::clamped) {
      out.clamped = true;
      index = indices()[indices().atom(index.terms[0].first).argument];
    }
    if (index.terms != indices()[own].terms) return std::nullopt;
    out.by = index.constant - indices()[own].constant;
    return out;
  }

  std::optional<AtomId> variable_of(size_t dimension) const {
    for (const auto& [variable, d] : dimensions_) {
      if (d == dimension) return variable;
    }
    return std::nullopt;
  }

  double literal(int v) const {
    const Value& value = at(v);
    if (is_integer(value.scalar)) return static_cast<double>(integer_of_word(value.scalar, value.low));
    const uint64_t wide = value.scalar == Scalar::f64 ? value.low : convert(value.scalar, Scalar::f64, value.low);
    return std::bit_cast<double>(wide);
  }

 private:
  const ElementFormula& formula_;
  std::map<AtomId, size_t> dimensions_;  // variables of the position, with their dimensions
};

}  // namespace hoist
