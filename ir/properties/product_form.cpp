#include <algorithm>
#include <functional>

#include "ir/properties/formula.h"

namespace hoist {
namespace {

// The factors of the product that a loop sums: the slot's body is accumulator + product.
std::optional<std::pair<int, int>> factors_of(const Formula& formula, const Loop::Slot& slot) {
  const Value& body = formula.at(slot.body);
  const auto product = [&](int v) -> std::optional<std::pair<int, int>> {
    const Value& value = formula.at(v);
    if (value.kind != Value::operation || value.function != Function::multiply) return std::nullopt;
    return std::pair(value.a, value.b);
  };
  if (body.kind != Value::operation) return std::nullopt;
  if (body.function == Function::fma && formula.at(body.c).kind == Value::accumulator) return std::pair(body.a, body.b);
  if (body.function != Function::add) return std::nullopt;
  if (formula.at(body.a).kind == Value::accumulator) return product(body.b);
  if (formula.at(body.b).kind == Value::accumulator) return product(body.a);
  return std::nullopt;
}

// The single read in a factor that depends on the loop variable, or null.
const ElementFormula::Read* summed_read(const Formula& formula, int factor, AtomId loop) {
  const ElementFormula::Read* found = nullptr;
  for (const ElementFormula::Read* read : formula.reads_in(factor)) {
    const bool changes =
        std::any_of(read->at.begin(), read->at.end(), [&](IndexId i) { return formula.depends(i, loop); });
    if (!changes) continue;
    if (found != nullptr && found->parameter != read->parameter) return nullptr;
    found = read;
  }
  return found;
}

std::optional<ProductForm> form_of(const Formula& formula, const Loop& loop, const ElementFormula::Read& left,
                                   const ElementFormula::Read& right) {
  ProductForm out;
  out.left = left.parameter;
  out.right = right.parameter;
  out.left_rank = left.at.size();
  const AtomId variable = formula.indices()[loop.variable].terms[0].first;
  for (size_t d = 0; d < left.at.size(); ++d) {
    if (formula.depends(left.at[d], variable)) out.left_summed.push_back(d);
  }
  std::optional<size_t> channel, shared;
  std::set<size_t> single;  // dimensions of extent 1, whose index contains no variable
  for (size_t d = 0; d < right.at.size(); ++d) {
    if (formula.depends(right.at[d], variable)) {
      out.summed.push_back(d);
    } else if (const auto output = formula.dimension_of(right.at[d])) {
      const AtomId position = *formula.variable_of(*output);
      const bool in_left =
          std::any_of(left.at.begin(), left.at.end(), [&](IndexId i) { return formula.depends(i, position); });
      if (!in_left)
        channel = d;
      else if (!shared)
        shared = d;
    } else if (formula.indices()[right.at[d]].terms.empty()) {
      single.insert(d);
    }
  }
  // One output channel: the last dimension of a matrix with one column, or the first of filters.
  const size_t last = right.at.size() - 1;
  if (!channel && single.count(last) != 0 && out.summed == std::vector<size_t>{last - 1}) channel = last;
  if (!channel && !shared && !single.empty()) channel = *single.begin();
  if (channel) {
    out.channel_dimension = *channel;
    const auto output = formula.dimension_of(right.at[*channel]);
    // Filters have output channels before the summed dimensions, and images have channels after the batch.
    const bool filters = *channel < out.summed.front() && formula.rank() > 2;
    out.output_dimension = output ? *output : filters ? 1 : formula.rank() - 1;
    return out;
  }
  if (!shared) return std::nullopt;
  // Groups: the number of distinct start positions of output channels along a dimension of `left`.
  out.channel_dimension = *shared;
  out.output_dimension = *formula.dimension_of(right.at[*shared]);
  const AtomId position = *formula.variable_of(out.output_dimension);
  const Atom& channels = formula.indices().atom(position);
  out.groups = channels.high + 1;
  for (IndexId i : left.at) {
    for (const auto& [atom, coefficient] : formula.indices()[i].terms) {
      const Atom& a = formula.indices().atom(atom);
      if (a.kind == Atom::quotient && formula.depends(a.argument, position)) out.groups = a.high + 1;
    }
  }
  return out;
}

}  // namespace

std::optional<ProductForm> product_form(Expr term) {
  if (!folds(term)) return std::nullopt;
  const auto formula = element_formula(term);
  if (formula == nullptr) return std::nullopt;
  const Formula element(*formula);
  std::optional<ProductForm> found;
  for (const Loop& loop : formula->parts.loops) {
    for (const Loop::Slot& slot : loop.slots) {
      const auto factors = factors_of(element, slot);
      if (!factors || element.indices()[loop.variable].terms.empty()) continue;
      const AtomId variable = element.indices()[loop.variable].terms[0].first;
      const auto* left = summed_read(element, factors->first, variable);
      const auto* right = summed_read(element, factors->second, variable);
      if (left == nullptr || right == nullptr) continue;
      if (found) return std::nullopt;  // a term with several sums
      found = form_of(element, loop, *left, *right);
    }
  }
  return found;
}

}  // namespace hoist
